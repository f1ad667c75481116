/* The parts of `verde run`. */
#ifndef VD_RUN_COMMAND_H
#define VD_RUN_COMMAND_H

#include "verde/cli/cli.h"
#include "verde/cli/rounded.h"
#include "verde/exec/guard.h"
#include "verde/job/profile.h"
#include "verde/run/faults.h"
#include "verde/run/progress.h"
#include "verde/run/run_processes.h"

/* ---- run_role.c ---- */

/* Options of --backend log; NULL, 0 and false: not given. */
typedef struct {
    const char *role, *profile, *encoding, *thresholds, *trainer, *key, *trainer_key;
    long bits; /* 0: as the job says, or 32 */
    bool contest;
} vd_log_options;

/* A role; `backend` and `rounding` point into this structure. */
typedef struct {
    vd_run_backend backend;
    vd_run_rounding rounding;
    vd_log_result result;
    ro_profile profile;
    vd_thresholds thresholds;
    vd_key *key; /* owned */
    vd_public_key trainer_key;
} vd_log_role;

typedef struct {
    const char *dir, *fault;
    long keep;  /* 0: all checkpoints */
    long batch; /* prompts that run together; 0: not given */
    bool guard;
    bool dry; /* estimate, and run nothing */
    vd_log_options log;
    vd_common common;
} vd_run_arguments;

bool vd_has_log_options(const vd_log_options *options);
/* Makes a role of options and the job's own settings. VD_ERR_USAGE: an option contradicts the job
 * or another option. *out must not move afterwards. */
VD_MUST_USE vd_status vd_take_role(const vd_log_options *options, const vd_program_rounding *job,
                                   vd_log_role *out, vd_err *err);

/* ---- run_lead.c ---- */

/* Runs the job into o->dir, which no other process may write meanwhile, and prints the result. A
 * run that is refused leaves no directory behind. */
VD_MUST_USE vd_status vd_lead_run(const char *job, const vd_run_arguments *o,
                                  const vd_run_backend *backend, const vd_run_processes *processes,
                                  vd_loaded *loaded, vd_err *err);

/* ---- run_tell.c ---- */

/* Print what is about to run. */
void vd_announce_run(const char *job, const vd_loaded *loaded);
void vd_announce_prompts(const char *job, uint32_t prompts, const vd_loaded *loaded);
/* Prints the bytes of the checkpoints, and warns if the file system has fewer left. `keep` is the
 * number of checkpoints to keep; 0: all. */
void vd_tell_disk(const char *dir, const vd_program *program, long keep);
/* Prints the result of a run. `backend` is NULL without a rounding log, and `score` NULL unless the
 * job evaluates. */
void vd_print_result(const vd_run_result *result, const vd_loaded *loaded, const vd_common *common,
                     const vd_run_backend *backend, const vd_score *score);

typedef struct {
    const char *dir;
    const vd_items *items;
    const vd_score_sum *score;
    int64_t void_choices; /* tokens made that do not follow from their logits */
    double seconds;
    vd_hash collection, job_root;
} vd_prompts_result;
/* Prints the result of a job with prompts, and warns of void choices. */
void vd_print_prompts(const vd_prompts_result *result, const vd_loaded *loaded, bool json);

/* ---- run_guard.c ---- */

typedef struct {
    vd_guard guard;
    vd_machine machine;
    bool json;
} vd_run_guard;

/* Switches the guard on if `wanted`. VD_ERR_USAGE: this run cannot have one. *g must not move until
 * vd_run_guard_close, which comes before the context is freed. */
VD_MUST_USE vd_status vd_run_guard_open(vd_run_guard *g, bool wanted, bool logs, bool json,
                                        vd_loaded *loaded, vd_err *err);
void vd_run_guard_close(vd_run_guard *g, vd_loaded *loaded);

/* ---- run_prompts.c ---- */

typedef struct {
    const char *job, *dir;
    const char
        *fault; /* "KEY/KIND..." in the prompt of this key, "KIND..." in the first; or NULL */
    uint32_t together; /* prompts at a time, 1 or more */
    vd_common common;
} vd_prompt_options;

/* Runs every prompt of the job that vd_load_prompts loaded, each into DIR/prompts/KEY, and writes
 * DIR/run.json and, at the end, DIR/results.jsonl; until then its lines are in
 * DIR/results.jsonl.part. Prompts that have been finished before are not run again. */
VD_MUST_USE vd_status vd_run_prompts(const vd_prompt_options *options, vd_loaded *loaded,
                                     vd_err *err);

#endif
