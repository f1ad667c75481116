/* Loads what commands work on: jobs, packs, runs and their data, from files. */
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
    const char *path; /* NULL: the bytes are only in memory */
    uint64_t offset;
} vd_data_place;

typedef struct {
    vd_data_place *place; /* one for each data tensor of the program; paths are borrowed */
    const void **tensor;  /* one for each data tensor; exec.data points here */
    vd_map *file;         /* mapped files of a run directory */
    uint32_t file_count;
} vd_placed_data;

/* The programs of a job that came in a pack (packed_job.c). */
typedef struct {
    vd_map file;
    vd_pack pack;               /* count 0: there is no pack */
    vd_placed_data shared;      /* data tensors that all programs share, from index pack.own on */
    void *own[VD_PACK_OWN_MAX]; /* data tensors of the loaded item alone */
} vd_given;

/* The state that a job goes on from: of another run, or of files of weights for a program job. */
typedef struct {
    vd_program program; /* program of the other run */
    int64_t step;
    vd_weights file;      /* a state's tensors, exported ones, or any files of weights */
    bool present;         /* the file exists; else only its proof or manifest was read */
    bool exported;        /* tensors in `file` have names, and some of the state may be missing */
    vd_manifest manifest; /* of files of weights */
    vd_hash *commitment;
    vd_file_tensor *tensor; /* in the form of vd_training.start */
    uint32_t *at;           /* index in `file` of each tensor */
    uint32_t count;
    uint32_t left_out; /* number of tensors in files that the program job's state has not */
    uint32_t inserted; /* nodes inserted before the step of a program job, which number its steps */
} vd_start;

typedef struct {
    vd_job job;             /* zero unless there is a job file */
    vd_job_weights weights; /* of a pretrained model */
    vd_start start;
    vd_dataset data;
    vd_prompts prompts;    /* of jobs that generate or score, which have no `data` */
    vd_given given;        /* of jobs that have a pack, which have no `prompts` */
    const char *prompt;    /* key of the prompt whose program is loaded; NULL: none was named */
    int32_t words[2];      /* the key's two words, as the program's data tensor */
    bool packed;           /* the program came in a pack, without a job */
    bool bare;             /* the caller needs no data, if the program can be built without it */
    vd_known_data *known;  /* list of data that need not be hashed again, or NULL */
    vd_placed_data placed; /* where each data tensor of the program is */
    vd_program program;
    ro_ctx *ro;
    vd_exec exec;
} vd_loaded;

/* Loads a job file, or a folder with a program: its data and program. If the job has prompts, the
 * program is that of out->prompt; VD_ERR_USAGE: out->prompt names none. */
VD_MUST_USE vd_status vd_load_job(const char *path, vd_loaded *out, vd_err *err);
/* Like vd_load_job, but leaves out the program if the job has prompts; vd_load_prompt then loads
 * that of prompt `index`. */
VD_MUST_USE vd_status vd_load_prompts(const char *path, vd_loaded *out, vd_err *err);
VD_MUST_USE vd_status vd_load_prompt(vd_loaded *out, uint32_t index, vd_err *err);
/* program_job.c: jobs whose program is given. vd_folder_job makes a job from a folder.
 * vd_load_program_job loads the program, compares its hash with the job's, then loads its data and
 * compares their hashes with the program's. */
bool vd_is_folder(const char *path);
VD_MUST_USE vd_status vd_folder_job(const char *path, vd_job *out, vd_err *err);
VD_MUST_USE vd_status vd_load_program_job(vd_loaded *loaded, vd_err *err);
bool vd_is_program_file(const char *path); /* by its first bytes */
/* Reads `places.json` beside the program: its list `step` says where each node of the step comes
 * from, for people only. The caller frees *out, which is NULL if there is no such file. */
enum { VD_NODE_PLACES_BYTES_MAX = 16 << 20 };
VD_MUST_USE vd_status vd_load_node_places(const vd_loaded *loaded, json_t **out, vd_err *err);
/* packed_job.c: the same for jobs of many programs that are given in a pack. */
bool vd_has_pack(const char *dir);
VD_MUST_USE vd_status vd_load_packed_job(vd_loaded *loaded, vd_err *err);
VD_MUST_USE vd_status vd_list_packed(const vd_loaded *loaded, vd_items *out, vd_err *err);
VD_MUST_USE vd_status vd_load_packed(vd_loaded *loaded, uint32_t item, vd_err *err);
/* Loads a pack that a client has sent: a daemon has written `pack` and `data.json` to DIR. */
VD_MUST_USE vd_status vd_load_sent_pack(const char *dir, vd_loaded *out, vd_err *err);
void vd_given_free(vd_given *given);
/* The number of a job's prompts, or of programs of its pack; the key of one. */
uint32_t vd_prompt_count(const vd_loaded *loaded);
int64_t vd_prompt_key(const vd_loaded *loaded, uint32_t index);
/* The word for prompts in texts and JSON: "prompt", or "batch" for a pack; plural unless count is
 * 1. */
const char *vd_prompt_word(const vd_loaded *loaded, uint64_t count);
/* The number of data tensors that belong to a prompt's own program, which come first: the prompt,
 * and its key if tokens are drawn. */
uint32_t vd_prompt_own_data(const vd_loaded *loaded);
/* Lists keys and program hashes of all prompts; it builds each program for this. */
VD_MUST_USE vd_status vd_list_prompts(const vd_loaded *loaded, vd_items *out, vd_err *err);
/* Finds the prompt whose key is given in decimal digits. */
VD_MUST_USE vd_status vd_find_prompt(const vd_loaded *loaded, const char *key, uint32_t *index,
                                     vd_err *err);
/* Loads the state that a job goes on from, if the job has `weights`, and sets training.start. It
 * checks the state's bytes, or, without the run's directory, the proof RUN.proof.json. */
VD_MUST_USE vd_status vd_load_start(vd_job *job, const vd_data_reader *reader, vd_start *out,
                                    vd_err *err);
void vd_start_free(vd_start *start);
/* Lists the tensors of start->program, with their commitments, as the job's start. */
VD_MUST_USE vd_status vd_list_start(vd_job *job, vd_start *start, vd_err *err);
/* start_files.c: as vd_load_start, from files of weights: `weights.dir` or DIR.manifest. */
VD_MUST_USE vd_status vd_load_start_files(vd_job *job, const vd_data_reader *reader, vd_start *out,
                                          vd_err *err);
/* program_start.c: gives a job's program the first state that its `weights` name, and places the
 * state's tensors as data; called after both were loaded. */
VD_MUST_USE vd_status vd_begin_program(vd_loaded *loaded, vd_err *err);
/* program_weights.c: gives an evaluating program the weights that the job names, and places them;
 * called after both were loaded. vd_is_wanted: whether a data tensor is still to be given so. */
VD_MUST_USE vd_status vd_give_weights(vd_loaded *loaded, vd_err *err);
bool vd_is_wanted(const vd_data *d);
/* Maps the file of a state, without reading its bytes. */
VD_MUST_USE vd_status vd_map_state(const char *dir, const vd_program *program, const vd_hash *state,
                                   vd_weights *out, vd_err *err);
/* Opens and hashes the file of checkpoint `index` of the run in DIR, and compares it with what the
 * run commits to. `commitment` has room for one entry per leaf. VD_ERR_USAGE: the state was not
 * kept; VD_ERR_PEER: the file has changed. */
VD_MUST_USE vd_status vd_open_state(const char *dir, const vd_program *program,
                                    const vd_run_log *log, uint32_t index,
                                    const vd_weights_hashing *how, vd_weights *out,
                                    vd_hash *commitment, vd_err *err);
/* Loads program, log and fault from a run directory; checks that program and log fit together. */
VD_MUST_USE vd_status vd_load_run(const char *dir, vd_loaded *out, vd_run_log *log, vd_err *err);
enum { VD_PLACES_BYTES_MAX = VD_DATA_MAX << 10 }; /* size of data.json: 1 KiB for each tensor */
/* Loads the data of a finished run, to execute its steps again, from the files that DIR/data.json
 * names, or from files of the same names in directory `moved`, unless it is NULL. VD_ERR_USAGE: a
 * file is missing; VD_ERR_PEER: it is not what the program commits to. */
VD_MUST_USE vd_status vd_load_data(const char *dir, const char *moved, vd_loaded *out, vd_err *err);
/* Like vd_load_data, for a folder of somebody else: data.json may name only plain files in it. */
VD_MUST_USE vd_status vd_load_own_data(const char *dir, vd_loaded *out, vd_err *err);
/* Loads the data that a pack's programs share: those of its first program after its `own` tensors.
 * `own_files`: somebody else wrote the folder, as for vd_load_own_data. */
VD_MUST_USE vd_status vd_load_shared_data(const char *dir, uint32_t own, bool own_files,
                                          vd_loaded *out, vd_err *err);
/* Writes DIR/data.json, so that a run directory is usable without its job file. Small tensors, and
 * those that are in no file, are copied to DIR/data. */
VD_MUST_USE vd_status vd_save_data(const char *dir, const vd_loaded *loaded, vd_err *err);
VD_MUST_USE vd_status vd_place_data(vd_loaded *loaded, vd_err *err); /* places the job's data */
/* Places the data of a job with prompts whose program is that of `prompt`. */
VD_MUST_USE vd_status vd_place_prompt(vd_loaded *loaded, const vd_prompt *prompt, vd_err *err);
void vd_placed_data_free(vd_placed_data *data);
/* Checks that the files of the job's model exist: a manifest alone is not enough to run. */
VD_MUST_USE vd_status vd_need_weights(const vd_loaded *loaded, vd_err *err);
VD_MUST_USE vd_status vd_load_backend(vd_loaded *loaded, const vd_common *common, vd_err *err);
/* Opens a profile's device, so that a missing device is noticed before any work. */
VD_MUST_USE vd_status vd_load_device(const vd_loaded *loaded, const ro_profile *profile,
                                     vd_err *err);
void vd_loaded_free(vd_loaded *loaded);
/* Reads the public key that an option gives. VD_ERR_USAGE names the option. */
VD_MUST_USE vd_status vd_read_key(const char *option, const char *hex, vd_public_key *out,
                                  vd_err *err);
/* Loads the key in a directory, and creates it if there is none. */
VD_MUST_USE vd_status vd_load_key(const char *dir, vd_key **out, vd_err *err);

#endif
