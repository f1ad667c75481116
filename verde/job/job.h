/* Job files: YAML in, a checked training job out, and the data that it names.
 *
 * models/jobs/demo.yaml shows every key of the format with its meaning. The reader is strict: what
 * it does not know, or would have to guess, is an error "FILE:LINE: `key` must be ..., got ...".
 * All functions may be called from any thread; a vd_job holds no pointers and may be copied. */
#ifndef VD_JOB_H
#define VD_JOB_H

#include "models/models.h"
#include "verde/log/log.h"

enum {
    VD_JOB_BYTES_MAX = 64 << 10,  /* the scanner's time grows faster than the file */
    VD_JOB_PATH_SIZE = 1024,      /* with the final NUL */
    VD_TOKENS_HEADER_SIZE = 1024, /* 256 int32: magic, version, count, zeros */
    VD_TOKENS_MAGIC = 20240520,
    VD_TOKENS_VERSION = 1,
    VD_RECORD_FILES_MAX = 8,
    VD_CIFAR_SIZE = 32, /* height and width; a record is a label and three planes */
};

#define VD_DATASET_BYTES_MAX (UINT64_C(4) << 30)

typedef enum {
    VD_DATA_TEXT = 1,    /* bytes are tokens: RO_U8 */
    VD_DATA_TOKENS = 2,  /* .bin file of llm.c, version 1: RO_U16 */
    VD_DATA_CIFAR10 = 3, /* binary files of CIFAR-10, one after the other: RO_U8 */
} vd_data_kind;

typedef struct {
    char path[VD_JOB_PATH_SIZE];      /* the job file; errors are named after it */
    char data_path[VD_JOB_PATH_SIZE]; /* relative names start at the job file's directory */
    char record_path[VD_RECORD_FILES_MAX][VD_JOB_PATH_SIZE]; /* of cifar10; data_path: the first */
    int64_t record_files;
    int64_t version; /* of the format: 1 */
    vd_data_kind data_kind;
    uint8_t data_sha256[32]; /* of the whole data file, or all files one after the other */
    struct {
        int64_t bits; /* 0: the job is run in fixed order */
        vd_log_encoding encoding;
        char thresholds_path[VD_JOB_PATH_SIZE]; /* symbols */
        uint8_t thresholds_sha256[32];
    } rounding;
    vd_training training; /* data_dtype, data_count, data_root: zero until the data is loaded */
} vd_job;

/* Reads a job file and checks its numbers, each alone and against each other. VD_ERR_USAGE: the
 * file is not a valid job. */
VD_MUST_USE vd_status vd_job_read(const char *path, vd_job *out, vd_err *err);

/* As vd_job_read, from memory. `name` stands for the file's path in errors and before data.file. */
VD_MUST_USE vd_status vd_job_parse(const void *text, size_t size, const char *name, vd_job *out,
                                   vd_err *err);

/* The data tensor, [N] of RO_U8 or RO_U16, inside the file that it came from. */
typedef struct {
    ro_tensor tensor; /* points into `file` */
    vd_buf file;
    size_t record_bytes[VD_RECORD_FILES_MAX]; /* of cifar10: what each file has of it */
} vd_dataset;

/* Reads the data file into memory, checks its SHA-256, form and token values, and sets
 * training.data_dtype, data_count and data_root. On failure `out` is empty. */
VD_MUST_USE vd_status vd_job_load_data(vd_job *job, vd_dataset *out, vd_err *err);

void vd_dataset_free(vd_dataset *dataset);

/* vd_training_program of a job whose data was loaded, with its rounding, whose thresholds are read
 * here; errors name the file. */
VD_MUST_USE vd_status vd_job_program(const vd_job *job, vd_program *out, vd_err *err);

#endif
