/* Checks of `verde check`, for folders and files: runs, states, models and results. */
#ifndef VD_CHECKS_H
#define VD_CHECKS_H

#include "verde/load/load.h"
#include "verde/load/verdict_file.h"

typedef struct {
    const char *path;              /* a folder, or one state's file */
    const char *data;              /* directory of data files; NULL: their recorded place */
    const char *job;               /* job file that must have these programs; may be NULL */
    const char *verdict, *referee; /* must accept it; the referee's key; may be NULL */
    long step;                     /* step that a model must be of; -1: the last one */
    const vd_common *common;
} vd_check_options;

/* Checks whatever is at the path, by hashing and comparing, and prints the result. */
vd_exit vd_check_path(const vd_check_options *options);

/* ---- check_accepted.c: comparison with the verdict of the options ---- */

/* What a verdict is compared with. */
typedef struct {
    const char *subject; /* "program", or "job" of many programs */
    const char *owner;   /* "the run in ", before the path */
    const char *kind;    /* whose root it is: "run" or "job" */
    const vd_hash *program, *root;
} vd_check_claim;
/* Checks that the verdict, if there is one, accepts the claim. VD_ERR_PEER: it does not, or is
 * about something else. */
VD_MUST_USE vd_status vd_check_accepted(const vd_check_options *options,
                                        const vd_check_claim *claim, vd_verdict *out, vd_err *err);
json_t *vd_accepted_json(const vd_check_options *options, const vd_verdict *verdict);
void vd_accepted_text(vd_buf *out, const vd_verdict *verdict);

/* ---- check_model.c: exported models ---- */

bool vd_is_model(const char *dir);
/* *rounded: the weights are rounded, so they cannot be checked. */
VD_MUST_USE vd_status vd_check_model(const vd_check_options *options, bool *rounded, vd_err *err);

/* ---- check_prompts.c: the folder of a job with prompts ---- */

/* Called for each prompt's run that passes its checks. */
typedef void (*vd_note_prompt_run)(void *user, uint32_t item, const vd_program *program,
                                   const vd_run_log *log);
/* How `verde serve` checks the runs. */
typedef struct {
    const char *dir, *data; /* directory of the runs' data; NULL: as recorded */
    const vd_common *common;
    const vd_items *items;
    vd_note_prompt_run note;
    void *user;
    const atomic_bool *stop; /* set by another thread to stop, with VD_ERR_TIMEOUT */
} vd_prompt_runs;
/* Checks all bytes of all prompts' states and data, and the lines of the results. */
VD_MUST_USE vd_status vd_check_prompt_runs(const vd_prompt_runs *runs, vd_err *err);

/* Checks that DIR/prompts holds only these runs. VD_ERR_PEER names anything else. */
VD_MUST_USE vd_status vd_check_entries(const char *dir, const vd_items *items, vd_err *err);

/* Checks all bytes of all prompts' states and data, their roots against DIR/run.json, and
 * DIR/results.jsonl against the last states. */
VD_MUST_USE vd_status vd_check_prompts(const vd_check_options *options, vd_err *err);
/* `verde inspect DIR`: prints DIR/run.json after checking that it is consistent. */
VD_MUST_USE vd_status vd_show_prompts(const char *dir, const vd_common *common, vd_err *err);

/* ---- check_items.c ---- */

/* Checks that the runs in DIR have the programs of the job file. VD_ERR_PEER: they do not. */
VD_MUST_USE vd_status vd_check_items_job(const char *dir, const char *job, const vd_items *items,
                                         vd_err *err);

/* ---- check_results.c ---- */

/* Returns whether a folder holds downloaded results: results.proof, and no runs. */
bool vd_results_are_in(const char *dir);
/* `verde check DIR` for downloaded results: checks results.proof, whose records lead to the job
 * root, against the job's programs, and the lines of results.jsonl against the records. */
VD_MUST_USE vd_status vd_check_results(const vd_check_options *options, vd_err *err);
/* The same check for a loaded job (vd_load_prompts), without output. *items receives the job's
 * items with the proven run roots; the caller frees it, also after a failure. */
VD_MUST_USE vd_status vd_prove_results(const vd_check_options *options, vd_loaded *job,
                                       vd_items *items, vd_hash *job_root, vd_err *err);

#endif
