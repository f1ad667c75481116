/* The keys of a job file as a table: path, type, range, place in vd_job. Private to verde/job. */
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
    VD_FIELD_INTEGERS, /* a list: int64_t[most], and its length */
    VD_FIELD_REALS,    /* a list: float[most], and its length */
    VD_FIELD_FILES,    /* a list: vd_job_names */
    VD_FIELD_TARGETS,  /* a list: char[most][VD_LORA_TARGET_SIZE], and its length */
} vd_field_type;

/* When a key is allowed, and required unless its row says otherwise. */
typedef enum {
    VD_WHEN_ALWAYS,
    VD_WHEN_BUILT, /* models whose sizes the job states: all but pretrained ones */
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
    VD_WHEN_VOCAB,  /* models that read tokens, except pretrained ones */
    VD_WHEN_TOKENS, /* models that read tokens */
    VD_WHEN_RESNET, /* resnet, pretrained */
    VD_WHEN_BLOCKS, /* resnet */
    VD_WHEN_IMAGES, /* data of images */
    VD_WHEN_ONE_FILE,
    VD_WHEN_FILES, /* data that comes in a list */
    VD_WHEN_SYMBOLS,
    VD_WHEN_TRAINS,  /* jobs that train */
    VD_WHEN_DATA,    /* jobs that train or evaluate */
    VD_WHEN_PROMPTS, /* jobs that generate or score */
    VD_WHEN_GENERATES,
    VD_WHEN_DRAWS, /* jobs that generate, except greedily */
    VD_WHEN_RUN,   /* jobs with `weights` of a run */
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
    const char *range;       /* words for low..high, or for a mapping */
    const vd_choice *choice; /* of choices */
    int parts;     /* of a choice: number of fields that it sets, and a mapping may set singly */
    size_t number; /* of lists: offset in vd_job of the int64_t length */
    int64_t most;  /* of lists: largest length */
    uint64_t otherwise; /* an integer's default; 0: the key is required */
    bool optional;      /* may be left out; so may a mapping with all of its keys */
    bool spare;         /* may be left out for pretrained models */
    bool may_be_empty;  /* of lists */
    bool of_program;    /* is allowed in a job with a given program, as other keys are not */
} vd_field;

enum { VD_FIELD_COUNT = 87, VD_FIELD_PATH_SIZE = 48, VD_EXPECTED_SIZE = 128 };

extern const vd_field vd_fields[VD_FIELD_COUNT];

/* Index of the field of this path, or -1. */
int vd_field_find(const char *path);

/* The known field nearest to a mistyped path, by edit distance; NULL if none is near. */
const vd_field *vd_field_nearest(const char *path);

/* Describes the values that a field accepts: "a whole number 1..64 in plain decimal digits". */
void vd_field_expected(const vd_field *field, char text[VD_EXPECTED_SIZE]);

bool vd_field_is_list(const vd_field *field);

/* Returns whether the field applies to the job's model, data and schedule. */
bool vd_field_applies(const vd_field *field, const vd_job *job);
const char *vd_field_reason(const vd_field *field, const vd_job *job); /* why it does not apply */

/* Stores or, in a list, appends a value. VD_ERR_USAGE: the text is not exactly one valid value. */
VD_MUST_USE vd_status vd_field_store(const vd_field *field, const char *text, vd_job *job);

/* Makes the path of a file that a job names; relative names start at the job's directory.
 * VD_ERR_USAGE: the path is too long, or the name is empty. */
VD_MUST_USE vd_status vd_field_path(const char *text, const char *job_path,
                                    char place[VD_JOB_PATH_SIZE]);

/* Checks the file's version before any other key, because other versions may have other keys.
 * VD_ERR_VERSION: the file is of another version. Text that is no YAML or has no version passes:
 * the reader of the file reports that. */
VD_MUST_USE vd_status vd_job_check_version(const void *text, size_t size, const char *name,
                                           vd_err *err);

/* Stores an integer that is known to be valid. */
void vd_field_set(const vd_field *field, uint64_t value, vd_job *job);

#endif
