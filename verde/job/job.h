/* Job files: YAML in, a checked training job out, and the data that it names.
 *
 * docs/jobs.md has every key of the format with its meaning. The reader is strict: what it does not
 * know, or would have to guess, is an error "FILE:LINE: `key` must be ..., got ...".
 * All functions may be called from any thread; a vd_job may be copied, and points at nothing but
 * the data that was loaded for it. */
#ifndef VD_JOB_H
#define VD_JOB_H

#include "models/models.h"
#include "verde/log/log.h"
#include "verde/weights/weights.h"

enum {
    VD_JOB_BYTES_MAX = 64 << 10,  /* the scanner's time grows faster than the file */
    VD_JOB_PATH_SIZE = 1024,      /* with the final NUL */
    VD_TOKENS_HEADER_SIZE = 1024, /* 256 int32: magic, version, count, zeros */
    VD_DATA_FILES_MAX = VD_SHARDS_MAX + 1,
    VD_CIFAR_SIZE = 32, /* height and width; a record is a label and three planes */
    VD_PROMPTS_MAX = 1 << 20,
    VD_PROMPT_LINE_MAX = 1 << 20, /* bytes of a line in a file of prompts */
    VD_JOB_PRETRAINED = 100,      /* model.kind while the model's files are not loaded yet */
    VD_JOB_GIVEN_PROGRAM = 101,   /* model.kind of a job whose program lies in model_dir */
};

/* Most bytes of files that are copied into one tensor, on disk. Other files have a tensor's limit.
 */
#define VD_JOINED_BYTES_MAX (UINT64_C(4) << 30)

/* Files of tokens as llm.c writes them: what their headers begin with, and what a token takes. */
#define VD_TOKENS16_MAGIC   20240520
#define VD_TOKENS16_VERSION 1
#define VD_TOKENS32_MAGIC   20240801
#define VD_TOKENS32_VERSION 7

typedef enum {
    VD_DATA_TEXT = 1,    /* bytes are tokens: RO_U8 */
    VD_DATA_TOKENS = 2,  /* .bin files of llm.c: RO_U16 or RO_I32 */
    VD_DATA_CIFAR10 = 3, /* binary files of CIFAR-10, one after the other: RO_U8 */
} vd_data_kind;

typedef enum {
    VD_JOB_TRAINS = 0,
    VD_JOB_EVALUATES = 1,
    VD_JOB_GENERATES = 2, /* goes on with prompts */
    VD_JOB_SCORES = 3,    /* tells how likely texts are */
} vd_job_task;

/* What of a state a job goes on from. */
typedef enum {
    VD_START_ALL = 0,
    VD_START_WEIGHTS = 1, /* without what the optimizer keeps */
} vd_job_start;

/* Names as they stand in a list, each with a NUL behind it. */
typedef struct {
    char text[VD_JOB_BYTES_MAX];
    int64_t count;
    size_t size;
} vd_job_names;

enum { VD_JOB_KEYS_MAX = 96 };

typedef struct {
    char path[VD_JOB_PATH_SIZE];      /* the job file; errors are named after it */
    uint32_t line[VD_JOB_KEYS_MAX];   /* where its keys stand (vd_job_place); 0: nowhere */
    char data_path[VD_JOB_PATH_SIZE]; /* relative names start at the job file's directory */
    vd_job_names data_files;          /* data.files; none: data_path is the only one */
    int64_t version;                  /* of the format: 1 */
    vd_job_task task;                 /* training.evaluates follows from it */
    struct {
        char path[VD_JOB_PATH_SIZE]; /* JSON Lines */
        uint8_t sha256[32];
    } prompts;                        /* of jobs that generate or score: in place of data */
    vd_generation generation;         /* of jobs that generate */
    bool says_stops;                  /* generation.stop stands in the job, even if it is empty */
    float top_p;                      /* generation.top_p as it stands in the job */
    bool pretrained;                  /* the model is that of model_dir */
    bool packed;                      /* there is a pack of programs in model_dir */
    bool program;                     /* the program is that of model_dir; nothing else is said */
    char model_dir[VD_JOB_PATH_SIZE]; /* a folder of Hugging Face, or what has DIR.manifest */
    uint8_t model_sha256[32];         /* of its manifest; the program's hash */
    struct {
        char run[VD_JOB_PATH_SIZE]; /* a run's folder, or what has RUN.proof.json; "": none */
        uint8_t root[32];           /* the state's S (PROTOCOL.md section 2.3) */
        char dir[VD_JOB_PATH_SIZE]; /* in place of a run: files of weights, or what has DIR.manifest
                                     */
        uint8_t sha256[32];         /* of their manifest */
        int32_t what;               /* vd_job_start */
        int64_t first_step; /* number of the first step; -1: with all of a state its step, else 0 */
    } start;                /* the state that the job goes on from */
    struct {
        char path[VD_JOB_PATH_SIZE]; /* of the kind that the data is */
        uint8_t sha256[32];
        int64_t every; /* steps; 0: never */
    } evaluate;        /* what the loss is told on while the job runs; no part of its program */
    vd_data_kind data_kind;
    int64_t image_means, image_stds; /* numbers of data.mean and data.std; 0: they are not there */
    uint8_t data_sha256[32];         /* of the whole data file, or all files one after the other */
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

/* "JOB:LINE" of a key, "data.sha256", for an error about it; without a line if it is not there. */
enum { VD_JOB_PLACE_SIZE = VD_JOB_PATH_SIZE + 16 };
const char *vd_job_place(const vd_job *job, const char *key, char place[VD_JOB_PLACE_SIZE]);
/* Puts the data of `evaluate` in place of the job's own. */
void vd_job_take_evaluate(vd_job *job);

/* A tensor, [N] of RO_U8, RO_U16 or RO_I32, of what is learnt from. */
typedef struct {
    ro_tensor tensor;
    const char *path; /* of the file that has its bytes from `offset` on; NULL: it was joined */
    uint64_t offset;
} vd_data_tensor;

typedef struct {
    vd_data_tensor *list; /* one for each file, or one of joined files */
    uint32_t count;
    vd_map *file;
    uint32_t file_count;
    vd_map joined;   /* several files of records, one after the other */
    vd_shard *shard; /* list[1], ... as vd_training.shard wants them */
} vd_dataset;

/* How data is hashed: by all threads of `ro`; NULL: by the caller's. `progress` may be NULL; of
 * data files it is called by a thread beside the caller's, before vd_job_load_data returns. */
typedef struct {
    ro_ctx *ro;
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} vd_data_reader;

/* The files of a pretrained model, or its manifest alone. */
typedef struct {
    vd_weights files;
    bool present; /* the files are there; else only what their manifest tells */
    vd_manifest manifest;
    vd_file_tensor *tensor; /* as vd_training.file wants them */
    vd_buf meaning;         /* of config.json: the bytes of VD_CONFIG_TENSOR */
} vd_job_weights;

/* Opens the model of a job that has one, hashes its files, compares their manifest with the job's,
 * and sets training.model and training.file, and generation.stop where the job does not say it, by
 * config.json; without a folder, reads DIR.manifest, which is enough
 * to know the program. Before vd_job_load_data. On failure `out` is empty. */
VD_MUST_USE vd_status vd_job_load_weights(vd_job *job, const vd_data_reader *reader,
                                          vd_job_weights *out, vd_err *err);

void vd_job_weights_free(vd_job_weights *weights);

/* Maps the data files, checks their SHA-256, forms and token values, and sets training.data_dtype
 * to training.shard_count. `reader` may be NULL. On failure `out` is empty. */
VD_MUST_USE vd_status vd_job_load_data(vd_job *job, const vd_data_reader *reader, vd_dataset *out,
                                       vd_err *err);

void vd_dataset_free(vd_dataset *dataset);

/* ---- jobs that generate or score ---- */

bool vd_job_has_prompts(const vd_job *job);

typedef struct {
    int64_t key;        /* 0 or more; no two prompts of a job have the same */
    uint64_t first;     /* of its tokens, in vd_prompts.token */
    int64_t count;      /* 1 or more */
    int64_t max_tokens; /* of jobs that generate: the job's, or fewer */
} vd_prompt;

typedef struct {
    vd_prompt *list; /* in the order of the file; line i + 1 holds list[i] */
    uint32_t count, capacity;
    int32_t *token;
    uint64_t tokens, tokens_capacity;
} vd_prompts;

/* Reads the job's prompts, a JSON object {"key": 7, "ids": [15, 2, 901]} on each line, perhaps with
 * "max_tokens", and checks
 * the file's SHA-256, every key and every token; after vd_job_load_weights. VD_ERR_USAGE names the
 * line. On failure `out` is empty. */
VD_MUST_USE vd_status vd_job_load_prompts(const vd_job *job, vd_prompts *out, vd_err *err);
/* As vd_job_load_prompts, from memory, whatever its hash. `name` stands for the file's in errors.
 */
VD_MUST_USE vd_status vd_prompts_parse(const vd_job *job, const char *name, const void *text,
                                       size_t size, vd_prompts *out, vd_err *err);
void vd_prompts_free(vd_prompts *prompts);
/* The low and the high word of a key: the program's data tensor `key`. */
void vd_prompt_words(const vd_prompt *prompt, int32_t word[2]);
/* The program of one prompt; errors name the file and the line. */
VD_MUST_USE vd_status vd_job_prompt_program(const vd_job *job, const vd_prompts *prompts,
                                            uint32_t index, vd_program *out, vd_err *err);

/* vd_training_program of a job whose data was loaded, with its rounding, whose thresholds are read
 * here; errors name the file. */
VD_MUST_USE vd_status vd_job_program(const vd_job *job, vd_program *out, vd_err *err);

#endif
