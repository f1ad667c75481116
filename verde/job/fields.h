/* The keys of a job file as one table: path, type, range, place in vd_job. Private to verde/job. */
#ifndef VD_JOB_FIELDS_H
#define VD_JOB_FIELDS_H

#include "verde/job/job.h"

typedef enum {
    VD_FIELD_MAPPING = 1,
    VD_FIELD_INTEGER,  /* int64_t or uint64_t */
    VD_FIELD_REAL,     /* float */
    VD_FIELD_CHOICE,   /* an enum, through a table of names */
    VD_FIELD_FILE,     /* char[VD_JOB_PATH_SIZE] */
    VD_FIELD_DIGEST,   /* 32 bytes */
    VD_FIELD_INTEGERS, /* a list: int64_t[most], and their number */
    VD_FIELD_REALS,    /* a list: float[most], and their number */
    VD_FIELD_FILES,    /* a list: vd_job_names */
    VD_FIELD_TARGETS,  /* a list: char[most][VD_LORA_TARGET_SIZE], and their number */
} vd_field_type;

/* When a key must be there; otherwise it must not be. */
typedef enum {
    VD_WHEN_ALWAYS,
    VD_WHEN_BUILT, /* models whose sizes stand in the job: all but pretrained ones */
    VD_WHEN_PRETRAINED,
    VD_WHEN_FOLDER,    /* pretrained models, programs */
    VD_WHEN_DROPOUT,   /* gpt2, bert, pretrained */
    VD_WHEN_POSITIONS, /* gpt2, bert */
    VD_WHEN_BERT,      /* bert, pretrained */
    VD_WHEN_LLAMA,
    VD_WHEN_HEADS,  /* gpt2, bert, llama */
    VD_WHEN_HIDDEN, /* mlp, llama */
    VD_WHEN_ADAMW,
    VD_WHEN_SGD,
    VD_WHEN_DECAY,
    VD_WHEN_VOCAB,  /* models that read tokens, but for pretrained ones */
    VD_WHEN_TOKENS, /* models that read tokens */
    VD_WHEN_RESNET, /* resnet, pretrained */
    VD_WHEN_BLOCKS, /* resnet */
    VD_WHEN_IMAGES, /* data of images */
    VD_WHEN_ONE_FILE,
    VD_WHEN_FILES, /* data that comes in a list */
    VD_WHEN_SYMBOLS,
    VD_WHEN_TRAINS,  /* jobs that train */
    VD_WHEN_DATA,    /* that train or evaluate */
    VD_WHEN_PROMPTS, /* that generate or score */
    VD_WHEN_GENERATES,
    VD_WHEN_DRAWS, /* that generate, and not greedily */
    VD_WHEN_RUN,   /* `weights` of a run */
    VD_WHEN_FILES_OF_WEIGHTS,
} vd_field_when;

typedef struct {
    const char *name; /* NULL ends the list */
    int32_t value;
} vd_choice;

typedef struct {
    const char *path; /* "model.layers"; the part before the dot is a mapping's path */
    vd_field_type type;
    vd_field_when when;
    size_t offset;           /* in vd_job */
    uint64_t min, max;       /* of integers */
    float low, high;         /* of reals, after rounding to binary32 */
    const char *range;       /* low..high, or such a mapping, in words */
    const vd_choice *choice; /* of choices */
    int parts;               /* of a choice that a mapping may make for so many fields singly */
    size_t number;           /* of lists: offset of their int64_t length, */
    int64_t most;            /* and the most there may be */
    uint64_t otherwise;      /* an integer's value if the key is not there; 0: it must be there */
    bool optional;           /* may be left out, a mapping with all that is in it */
    bool spare;              /* may be left out if the model is pretrained */
    bool may_be_empty;       /* of lists */
    bool of_program;         /* belongs to a job whose program is given, too; no other key does */
} vd_field;

enum { VD_FIELD_COUNT = 87, VD_FIELD_PATH_SIZE = 48, VD_EXPECTED_SIZE = 128 };

extern const vd_field vd_fields[VD_FIELD_COUNT];

/* Index of the field of this path, or -1. */
int vd_field_find(const char *path);

/* The field that an unknown path is a slip of, by edit distance; NULL: it is near to none. */
const vd_field *vd_field_nearest(const char *path);

/* Writes what a value must be: "a whole number 1..64 in plain decimal digits". */
void vd_field_expected(const vd_field *field, char text[VD_EXPECTED_SIZE]);

bool vd_field_is_list(const vd_field *field);

/* Does the job's model, data or schedule have this key? */
bool vd_field_applies(const vd_field *field, const vd_job *job);
const char *vd_field_reason(const vd_field *field, const vd_job *job); /* why it does not */

/* Stores the value at its place, of a list at the next one, if text is exactly one valid value.
 * VD_ERR_USAGE: it is not. */
VD_MUST_USE vd_status vd_field_store(const vd_field *field, const char *text, vd_job *job);

/* The path of a file that a job names: its directory before a relative name. VD_ERR_USAGE: it has
 * no room, or there is no name. */
VD_MUST_USE vd_status vd_field_path(const char *text, const char *job_path,
                                    char place[VD_JOB_PATH_SIZE]);

/* Before any other key is looked at, as another version may have others. VD_ERR_VERSION: the file
 * is of another version; what is no version, or no YAML, is for whoever reads the file. */
VD_MUST_USE vd_status vd_job_check_version(const void *text, size_t size, const char *name,
                                           vd_err *err);

/* Stores an integer that is known to be valid. */
void vd_field_set(const vd_field *field, uint64_t value, vd_job *job);

#endif
