/* The fields of config.json as a table. Private to verde/job. */
#ifndef VD_CONFIG_FIELDS_H
#define VD_CONFIG_FIELDS_H

#include <stddef.h>

#include "verde/commit/json.h"
#include "verde/job/config.h"

/* Families of models, as bits. */
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
    VD_CONFIG_IGNORED, /* no influence on results, or read elsewhere */
    VD_CONFIG_SIZE,    /* a whole number */
    VD_CONFIG_REAL,
    VD_CONFIG_FLAG,
    VD_CONFIG_ACTIVATION,
    VD_CONFIG_TRUE, /* must be true: nothing else is computed; likewise below */
    VD_CONFIG_FALSE,
    VD_CONFIG_ZERO,
    VD_CONFIG_ONE,
    VD_CONFIG_THREE,
    VD_CONFIG_EMPTY, /* must be an object or a list without members */
    VD_CONFIG_TEXT,
    VD_CONFIG_SAME, /* must equal the field whose name is `text` */
} vd_config_rule;

typedef struct {
    const char *name;
    int families;
    vd_config_rule rule;
    size_t offset; /* in vd_model */
    int64_t least; /* of sizes: least..most */
    int64_t most;
    int needed;        /* families without a default for the field */
    int64_t otherwise; /* a size's default */
    float real;        /* a number's default */
    const char *text;  /* expected text, or other field's name; an activation's default */
} vd_config_field;

/* Fields that decide what is computed, and fields without influence; a NULL name ends each list. */
extern const vd_config_field vd_config_fields[], vd_config_unused[];

/* A config.json that is being read. */
typedef struct {
    const json_t *root;
    const char *name; /* begins every error */
    int family;
    const vd_config_choice *choice;
    vd_model *out;
} vd_config;

/* Parses a JSON object without white space around it. VD_ERR_USAGE; errors begin with `name`. */
VD_MUST_USE vd_status vd_config_parse(const void *text, size_t size, const char *name,
                                      json_t **root, vd_err *err);
/* Fails with "NAME: FIELD must be EXPECTED, got VALUE". */
vd_status vd_config_refuse(const vd_config *c, const char *field, const char *expected,
                           vd_err *err);
/* Returns NULL if the file lacks the field, or has null. */
const json_t *vd_config_value(const vd_config *c, const char *field);
/* Reads what no row of the table covers: dropout, rotary positions, windows, classes, stages. */
VD_MUST_USE vd_status vd_config_more(const vd_config *c, vd_err *err);

#endif
