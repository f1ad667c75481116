/* Job files: YAML in, a checked training job out, and the data that it names.
 *
 * docs/jobs.md has every key of the format with its meaning. The reader is strict: it refuses what
 * it does not know or would have to guess, with an error "FILE:LINE: `key` must be ..., got ...".
 * All functions may be called from any thread. A vd_job may be copied; it points only at data that
 * was loaded for it. */
#ifndef VD_JOB_H
#define VD_JOB_H

#include "models/models.h"
#include "verde/log/log.h"
#include "verde/weights/weights.h"

enum {
    VD_JOB_BYTES_MAX = 64 << 10,  /* libyaml's time grows faster than the file */
    VD_JOB_PATH_SIZE = 1024,      /* with the final NUL */
    VD_TOKENS_HEADER_SIZE = 1024, /* 256 int32: magic, version, count, zeros */
    VD_DATA_FILES_MAX = VD_SHARDS_MAX + 1,
    VD_CIFAR_SIZE = 32, /* height and width; a record has a label and three planes */
    VD_PROMPTS_MAX = 1 << 20,
    VD_PROMPT_LINE_MAX = 1 << 20, /* bytes of a line in a file of prompts */
    VD_JOB_PRETRAINED = 100,      /* model.kind until the model's files are loaded */
    VD_JOB_GIVEN_PROGRAM = 101,   /* model.kind of a job whose program is in model_dir */
};

/* Limit on files that are copied into one tensor, in bytes. Others have a tensor's limit. */
#define VD_JOINED_BYTES_MAX (UINT64_C(4) << 30)

/* Token files of llm.c: magic and version of files with 16 and with 32 bits per token. */
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
    VD_JOB_GENERATES = 2, /* continues prompts */
    VD_JOB_SCORES = 3,    /* computes how likely texts are */
} vd_job_task;

/* Which part of a state a job goes on from. */
typedef enum {
    VD_START_ALL = 0,
    VD_START_WEIGHTS = 1, /* leaves out what the optimizer keeps */
} vd_job_start;

/* Names of a list, each with its NUL. */
typedef struct {
    char text[VD_JOB_BYTES_MAX];
    int64_t count;
    size_t size;
} vd_job_names;

enum { VD_JOB_KEYS_MAX = 96 };

typedef struct {
    char path[VD_JOB_PATH_SIZE];      /* the job file; begins all errors */
    uint32_t line[VD_JOB_KEYS_MAX];   /* line of each key (vd_job_place); 0: the key is missing */
    char data_path[VD_JOB_PATH_SIZE]; /* relative names start at the job file's directory */
    vd_job_names data_files;          /* data.files; if it has none, data_path is the only file */
    int64_t version;                  /* of the format: 1 */
    vd_job_task task;                 /* training.evaluates follows from it */
    struct {
        char path[VD_JOB_PATH_SIZE]; /* a file of JSON Lines */
        uint8_t sha256[32];
    } prompts;                /* of jobs that generate or score, which have no data */
    vd_generation generation; /* of jobs that generate */
    bool says_stops;          /* the job has generation.stop, even if it is empty */
    float top_p;              /* generation.top_p as the job states it */
    bool pretrained;          /* model_dir holds the model */
    bool packed;              /* model_dir holds a pack of programs */
    bool program;             /* model_dir holds the program, and the job says nothing else */
    char model_dir[VD_JOB_PATH_SIZE]; /* a folder of Hugging Face; DIR.manifest may stand for it */
    uint8_t model_sha256[32];         /* of its manifest; of a given program: its hash */
    struct {
        char run[VD_JOB_PATH_SIZE]; /* a run's folder; RUN.proof.json may stand for it; "": none */
        uint8_t root[32];           /* the state's S (PROTOCOL.md section 2.3) */
        char dir[VD_JOB_PATH_SIZE]; /* files of weights, in place of a run; or DIR.manifest */
        uint8_t sha256[32];         /* of their manifest */
        int32_t what;               /* vd_job_start */
        int64_t first_step;         /* -1: the state's if all of it is used, else 0 */
    } start;                        /* the state that the job goes on from */
    struct {
        char path[VD_JOB_PATH_SIZE]; /* has the data's kind */
        uint8_t sha256[32];
        int64_t every; /* steps; 0: never */
    } evaluate; /* data on which losses are reported during the run; no part of the program */
    vd_data_kind data_kind;
    int64_t image_means, image_stds; /* lengths of data.mean and data.std; 0: not given */
    uint8_t data_sha256[32];         /* of the data file, or of all files in order */
    struct {
        int64_t bits; /* 0: the run is in fixed order */
        vd_log_encoding encoding;
        char thresholds_path[VD_JOB_PATH_SIZE]; /* for symbols */
        uint8_t thresholds_sha256[32];
    } rounding;
    vd_training training; /* data_dtype, data_count and data_root are zero until data is loaded */
} vd_job;

/* Reads a job file; checks values alone and together. VD_ERR_USAGE: it is not a valid job. */
VD_MUST_USE vd_status vd_job_read(const char *path, vd_job *out, vd_err *err);

/* Like vd_job_read, from memory. `name` is the file's path in errors and for relative names. */
VD_MUST_USE vd_status vd_job_parse(const void *text, size_t size, const char *name, vd_job *out,
                                   vd_err *err);

/* Writes "JOB:LINE" of a key such as "data.sha256", for errors; without a line if it is missing. */
enum { VD_JOB_PLACE_SIZE = VD_JOB_PATH_SIZE + 16 };
const char *vd_job_place(const vd_job *job, const char *key, char place[VD_JOB_PLACE_SIZE]);
/* Replaces the job's data by the data of `evaluate`. */
void vd_job_take_evaluate(vd_job *job);

/* Training data as a tensor: [N] of RO_U8, RO_U16 or RO_I32. */
typedef struct {
    ro_tensor tensor;
    const char *path; /* has the bytes from `offset` on; NULL: joined files */
    uint64_t offset;
} vd_data_tensor;

typedef struct {
    vd_data_tensor *list; /* one for each file, or a single joined one */
    uint32_t count;
    vd_map *file;
    uint32_t file_count;
    vd_map joined;   /* files of images, joined */
    vd_shard *shard; /* list[1], ... in the form of vd_training.shard */
} vd_dataset;

/* How data is hashed: by all threads of `ro`, or the caller's thread if it is NULL. `progress` may
 * be NULL. For data files another thread calls it, before vd_job_load_data returns. */
typedef struct {
    ro_ctx *ro;
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} vd_data_reader;

/* The files of a pretrained model, or only its manifest. */
typedef struct {
    vd_weights files;
    bool present; /* the files exist; else only their manifest was read */
    vd_manifest manifest;
    vd_file_tensor *tensor; /* in the form of vd_training.file */
    vd_buf meaning;         /* what config.json means: the bytes of VD_CONFIG_TENSOR */
} vd_job_weights;

/* Opens and hashes a job's pretrained model, and compares its manifest with the job's. Sets
 * training.model, training.file and, where the job does not state it, generation.stop. Without a
 * folder it reads DIR.manifest, which is enough to know the program. Call it before
 * vd_job_load_data. After a failure `out` is empty. */
VD_MUST_USE vd_status vd_job_load_weights(vd_job *job, const vd_data_reader *reader,
                                          vd_job_weights *out, vd_err *err);

void vd_job_weights_free(vd_job_weights *weights);

/* Maps the data files, checks their SHA-256, form and values, and sets training.data_dtype to
 * training.shard_count. `reader` may be NULL. After a failure `out` is empty. */
VD_MUST_USE vd_status vd_job_load_data(vd_job *job, const vd_data_reader *reader, vd_dataset *out,
                                       vd_err *err);

void vd_dataset_free(vd_dataset *dataset);

/* ---- jobs that generate or score ---- */

bool vd_job_has_prompts(const vd_job *job);

typedef struct {
    int64_t key;        /* 0 or more, and unique in a job */
    uint64_t first;     /* index of its first token in vd_prompts.token */
    int64_t count;      /* 1 or more */
    int64_t max_tokens; /* of jobs that generate; at most the job's */
} vd_prompt;

typedef struct {
    vd_prompt *list; /* in the order of the file; list[i] is on line i + 1 */
    uint32_t count, capacity;
    int32_t *token;
    uint64_t tokens, tokens_capacity;
} vd_prompts;

/* Reads the job's prompts: lines of JSON such as {"key": 7, "ids": [15, 2, 901]}, perhaps with
 * "max_tokens". Checks the file's SHA-256, all keys and all tokens. Call it after
 * vd_job_load_weights. VD_ERR_USAGE names the line. After a failure `out` is empty. */
VD_MUST_USE vd_status vd_job_load_prompts(const vd_job *job, vd_prompts *out, vd_err *err);
/* Like vd_job_load_prompts, from memory, without the SHA-256. `name` is the file's in errors. */
VD_MUST_USE vd_status vd_prompts_parse(const vd_job *job, const char *name, const void *text,
                                       size_t size, vd_prompts *out, vd_err *err);
void vd_prompts_free(vd_prompts *prompts);
/* The low and the high word of a key, as the program's data tensor `key` has them. */
void vd_prompt_words(const vd_prompt *prompt, int32_t word[2]);
/* Builds the program of one prompt; errors name the file and the line. */
VD_MUST_USE vd_status vd_job_prompt_program(const vd_job *job, const vd_prompts *prompts,
                                            uint32_t index, vd_program *out, vd_err *err);

/* Like vd_training_program, for a job whose data was loaded, and with its rounding. Reads the
 * thresholds' file; errors name it. */
VD_MUST_USE vd_status vd_job_program(const vd_job *job, vd_program *out, vd_err *err);

#endif
