/* The fields of config.json as one table. Private to verde/job. */
#ifndef VD_CONFIG_FIELDS_H
#define VD_CONFIG_FIELDS_H

#include <stddef.h>

#include "verde/commit/json.h"
#include "verde/job/config.h"

/* Families, as bits. */
enum {
    VD_GPT2 = 1,
    VD_LLAMA = 2,
    VD_MISTRAL = 4,
    VD_QWEN2 = 8,
    VD_QWEN3 = 16,
    VD_BERT = 32,
    VD_RESNET = 64,
    VD_QWEN = VD_QWEN2 | VD_QWEN3,
    VD_LLAMAS = VD_LLAMA | VD_MISTRAL | VD_QWEN,
    VD_ALL = 127,
};

typedef enum {
    VD_CONFIG_IGNORED, /* has no influence on what is computed, or is read elsewhere */
    VD_CONFIG_SIZE,    /* a whole number */
    VD_CONFIG_REAL,
    VD_CONFIG_FLAG,
    VD_CONFIG_ACTIVATION,
    VD_CONFIG_TRUE, /* must be this: nothing else is computed here */
    VD_CONFIG_FALSE,
    VD_CONFIG_ZERO,
    VD_CONFIG_ONE,
    VD_CONFIG_THREE,
    VD_CONFIG_EMPTY, /* an object or a list without members */
    VD_CONFIG_TEXT,
    VD_CONFIG_SAME, /* as the field whose name is `text` */
} vd_config_rule;

typedef struct {
    const char *name;
    int families;
    vd_config_rule rule;
    size_t offset; /* in vd_model */
    int64_t least; /* of sizes, up to `most` */
    int64_t most;
    int needed;        /* families that have no default */
    int64_t otherwise; /* a size's default */
    float real;        /* a number's default */
    const char *text;  /* of VD_CONFIG_TEXT and VD_CONFIG_SAME; an activation's default */
} vd_config_field;

/* What is computed, and what has no influence on it. Each ends with a NULL name. */
extern const vd_config_field vd_config_fields[], vd_config_unused[];

/* A file that is being read. */
typedef struct {
    const json_t *root;
    const char *name; /* before every error */
    int family;
    const vd_config_choice *choice;
    vd_model *out;
} vd_config;

/* The text as an object, without white space around it. VD_ERR_USAGE; `name` stands before it. */
VD_MUST_USE vd_status vd_config_parse(const void *text, size_t size, const char *name,
                                      json_t **root, vd_err *err);
/* "NAME: FIELD must be EXPECTED, got VALUE". */
vd_status vd_config_refuse(const vd_config *c, const char *field, const char *expected,
                           vd_err *err);
/* NULL: the file has no such field, or null. */
const json_t *vd_config_value(const vd_config *c, const char *field);
/* What no row of the table says: dropout, rotary positions, windows, classes, stages. */
VD_MUST_USE vd_status vd_config_more(const vd_config *c, vd_err *err);

#endif
