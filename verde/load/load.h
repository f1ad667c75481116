/* What commands work on: jobs, packs, runs and their data, as they lie in files. */
#ifndef VD_LOAD_H
#define VD_LOAD_H

#include "repops/repops.h"
#include "verde/commit/json.h"
#include "verde/exec/backend.h"
#include "verde/exec/check.h"
#include "verde/exec/item_pack.h"
#include "verde/exec/items.h"
#include "verde/exec/run.h"
#include "verde/exec/source.h"
#include "verde/job/job.h"
#include "verde/load/known_data.h"
#include "verde/tell/tell.h"

typedef struct {
    int threads;         /* 0: one per core */
    const char *backend; /* NULL: the best */
    bool json;
} vd_common;

/* Where a data tensor's bytes lie in a file. */
typedef struct {
    const char *path; /* NULL: in memory alone */
    uint64_t offset;
} vd_data_place;

typedef struct {
    vd_data_place *place; /* of each data tensor of the program; paths are borrowed */
    const void **tensor;  /* what exec.data is */
    vd_map *file;         /* of a run directory: what it reads */
    uint32_t file_count;
} vd_placed_data;

/* The programs of a job that came in a pack (packed_job.c). */
typedef struct {
    vd_map file;
    vd_pack pack;               /* count 0: there is none */
    vd_placed_data shared;      /* data tensors of all programs, from number pack.own on */
    void *own[VD_PACK_OWN_MAX]; /* of the item that is loaded */
} vd_given;

/* The state that a job goes on from: of another run, or of a program job perhaps of files alone. */
typedef struct {
    vd_program program; /* of that run */
    int64_t step;
    vd_weights file;      /* a state's tensors, or exported ones, or any files */
    bool present;         /* the file is there; else only what a proof or a manifest tells */
    bool exported;        /* `file` has names, and perhaps not all of the state */
    vd_manifest manifest; /* of files alone */
    vd_hash *commitment;
    vd_file_tensor *tensor; /* as vd_training.start wants them */
    uint32_t *at;           /* where each of them is in `file` */
    uint32_t count;
    uint32_t left_out; /* tensors of files that are no part of a program job's state */
    uint32_t inserted; /* nodes at the beginning of the step of a program job, which number it */
} vd_start;

typedef struct {
    vd_job job;             /* only from a job file */
    vd_job_weights weights; /* of a pretrained model */
    vd_start start;
    vd_dataset data;
    vd_prompts prompts;    /* of a job that generates or scores: in place of data */
    vd_given given;        /* of a job that has a pack: in place of prompts */
    const char *prompt;    /* the key of the one that the program is about; NULL: none was named */
    int32_t words[2];      /* of its key, as the program's data has it */
    bool packed;           /* the program is one of many, which came without a job */
    bool bare;             /* whoever loads it needs no data, if the program alone can be had */
    vd_known_data *known;  /* what need not be hashed again when a run's data are loaded, or NULL */
    vd_placed_data placed; /* where each data tensor of the program lies */
    vd_program program;
    ro_ctx *ro;
    vd_exec exec;
} vd_loaded;

/* From a job file, or a folder with a program: data, program. Of a job with prompts the program is
 * that of out->prompt, which must be named: VD_ERR_USAGE. */
VD_MUST_USE vd_status vd_load_job(const char *path, vd_loaded *out, vd_err *err);
/* The same without the program of a job with prompts: that of prompt `index` then follows. */
VD_MUST_USE vd_status vd_load_prompts(const char *path, vd_loaded *out, vd_err *err);
VD_MUST_USE vd_status vd_load_prompt(vd_loaded *out, uint32_t index, vd_err *err);
/* program_job.c: a job whose program is given. A folder as the job; then its program, whose hash is
 * compared with the job's, and its data, whose hashes are compared with the program's. */
bool vd_is_folder(const char *path);
VD_MUST_USE vd_status vd_folder_job(const char *path, vd_job *out, vd_err *err);
VD_MUST_USE vd_status vd_load_program_job(vd_loaded *loaded, vd_err *err);
bool vd_is_program_file(const char *path); /* does it begin as a program does? */
/* The file `places.json` beside the program: where each node of the step comes from, as a list
 * `step`, for people alone. *out: the caller's, or NULL if there is no such file. */
enum { VD_NODE_PLACES_BYTES_MAX = 16 << 20 };
VD_MUST_USE vd_status vd_load_node_places(const vd_loaded *loaded, json_t **out, vd_err *err);
/* packed_job.c: a job of many programs that are given. Its data likewise. */
bool vd_has_pack(const char *dir);
VD_MUST_USE vd_status vd_load_packed_job(vd_loaded *loaded, vd_err *err);
VD_MUST_USE vd_status vd_list_packed(const vd_loaded *loaded, vd_items *out, vd_err *err);
VD_MUST_USE vd_status vd_load_packed(vd_loaded *loaded, uint32_t item, vd_err *err);
/* The pack that a client has sent, of which a daemon has written `pack` and `data.json` to DIR. */
VD_MUST_USE vd_status vd_load_sent_pack(const char *dir, vd_loaded *out, vd_err *err);
void vd_given_free(vd_given *given);
/* How many prompts, or programs of a pack, a job has; the key of one. */
uint32_t vd_prompt_count(const vd_loaded *loaded);
int64_t vd_prompt_key(const vd_loaded *loaded, uint32_t index);
/* What people, and members of JSON, call them: "prompt", or "batch" of a pack; in the plural but
 * for 1. */
const char *vd_prompt_word(const vd_loaded *loaded, uint64_t count);
/* Data tensors that each prompt's program has for itself, which come first: the prompt, and its key
 * if tokens are drawn. */
uint32_t vd_prompt_own_data(const vd_loaded *loaded);
/* Keys and program hashes of all prompts; each program is built for it. */
VD_MUST_USE vd_status vd_list_prompts(const vd_loaded *loaded, vd_items *out, vd_err *err);
/* The prompt of a key in decimal digits. */
VD_MUST_USE vd_status vd_find_prompt(const vd_loaded *loaded, const char *key, uint32_t *index,
                                     vd_err *err);
/* Finds the state that a job goes on from, if it has `weights`: checks its bytes, or without the
 * run's directory the proof RUN.proof.json, and sets training.start. */
VD_MUST_USE vd_status vd_load_start(vd_job *job, const vd_data_reader *reader, vd_start *out,
                                    vd_err *err);
void vd_start_free(vd_start *start);
/* Lists the tensors of start->program, with their commitments, as the job's start. */
VD_MUST_USE vd_status vd_list_start(vd_job *job, vd_start *start, vd_err *err);
/* start_files.c: the same of files alone, `weights.dir` of a program job, or of DIR.manifest. */
VD_MUST_USE vd_status vd_load_start_files(vd_job *job, const vd_data_reader *reader, vd_start *out,
                                          vd_err *err);
/* program_start.c: gives the program of a job the first state that its `weights` name, and its data
 * the places of that; after both were loaded. */
VD_MUST_USE vd_status vd_begin_program(vd_loaded *loaded, vd_err *err);
/* program_weights.c: gives a program that evaluates the weights that the job names, and their
 * places; after both were loaded. Does a data tensor wait for that? */
VD_MUST_USE vd_status vd_give_weights(vd_loaded *loaded, vd_err *err);
bool vd_is_wanted(const vd_data *d);
/* Maps the file of a state, whose bytes are not looked at. */
VD_MUST_USE vd_status vd_map_state(const char *dir, const vd_program *program, const vd_hash *state,
                                   vd_weights *out, vd_err *err);
/* Opens the file of checkpoint `index` of the run in DIR, hashes it, and compares it with what the
 * run commits to. `commitment` has room for each leaf. VD_ERR_USAGE: the state was not kept;
 * VD_ERR_PEER: it has changed. */
VD_MUST_USE vd_status vd_open_state(const char *dir, const vd_program *program,
                                    const vd_run_log *log, uint32_t index,
                                    const vd_weights_hashing *how, vd_weights *out,
                                    vd_hash *commitment, vd_err *err);
/* From a run directory: program and fault; program and log fit together. */
VD_MUST_USE vd_status vd_load_run(const char *dir, vd_loaded *out, vd_run_log *log, vd_err *err);
enum { VD_PLACES_BYTES_MAX = VD_DATA_MAX << 10 }; /* of data.json: 1 KiB for each tensor */
/* The data of a finished run, to execute its steps again: from where DIR/data.json says, or from
 * files of the same names in the directory `moved`, if it is not NULL. VD_ERR_USAGE: a file
 * is not there; VD_ERR_PEER: it is not the program's. */
VD_MUST_USE vd_status vd_load_data(const char *dir, const char *moved, vd_loaded *out, vd_err *err);
/* The same of a folder that somebody else wrote, which may name plain files in itself alone. */
VD_MUST_USE vd_status vd_load_own_data(const char *dir, vd_loaded *out, vd_err *err);
/* Of a pack's first program, which has `own` tensors more than the folder; `own_files`: somebody
 * else wrote it, as above. */
VD_MUST_USE vd_status vd_load_shared_data(const char *dir, uint32_t own, bool own_files,
                                          vd_loaded *out, vd_err *err);
/* DIR/data.json, so that a run directory serves without its job file. Copies small tensors, and
 * those that lie in no file, to DIR/data. */
VD_MUST_USE vd_status vd_save_data(const char *dir, const vd_loaded *loaded, vd_err *err);
VD_MUST_USE vd_status vd_place_data(vd_loaded *loaded, vd_err *err); /* that of the job */
/* That of a job with prompts, whose program is the one of `prompt`. */
VD_MUST_USE vd_status vd_place_prompt(vd_loaded *loaded, const vd_prompt *prompt, vd_err *err);
void vd_placed_data_free(vd_placed_data *data);
/* Are the files there that a job's model starts from? Its manifest alone lets nothing run. */
VD_MUST_USE vd_status vd_need_weights(const vd_loaded *loaded, vd_err *err);
VD_MUST_USE vd_status vd_load_backend(vd_loaded *loaded, const vd_common *common, vd_err *err);
/* Opens the device that a profile computes on, before anything is computed. */
VD_MUST_USE vd_status vd_load_device(const vd_loaded *loaded, const ro_profile *profile,
                                     vd_err *err);
void vd_loaded_free(vd_loaded *loaded);
/* The public key of an option. VD_ERR_USAGE: it is none, with the option's name. */
VD_MUST_USE vd_status vd_read_key(const char *option, const char *hex, vd_public_key *out,
                                  vd_err *err);
/* The key in a directory; made there if there is none yet. */
VD_MUST_USE vd_status vd_load_key(const char *dir, vd_key **out, vd_err *err);

#endif
