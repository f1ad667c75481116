/* What `verde check` finds of folders and files: runs, states, models, and results. */
#ifndef VD_CHECKS_H
#define VD_CHECKS_H

#include "verde/load/load.h"
#include "verde/load/verdict_file.h"

typedef struct {
    const char *path;              /* a folder, or one state's file */
    const char *data;              /* where data files are now; NULL: where they were */
    const char *job;               /* must have these programs; may be NULL */
    const char *verdict, *referee; /* must accept it; whose it must be; may be NULL */
    long step;                     /* that a model must be of; -1: the last one */
    const vd_common *common;
} vd_check_options;

/* Whatever lies there: hashes it, compares it, and tells what it came to. */
vd_exit vd_check_path(const vd_check_options *options);

/* ---- check_accepted.c: against the verdict of the options ---- */

/* What a verdict may be about. */
typedef struct {
    const char *subject; /* "program", or "job" of many */
    const char *owner;   /* "the run in ", before the path */
    const char *kind;    /* whose root is accepted: "run" or "job" */
    const vd_hash *program, *root;
} vd_check_claim;
/* Is the claim what the verdict accepts, if there is one? VD_ERR_PEER: no, or it is about something
 * else. */
VD_MUST_USE vd_status vd_check_accepted(const vd_check_options *options,
                                        const vd_check_claim *claim, vd_verdict *out, vd_err *err);
json_t *vd_accepted_json(const vd_check_options *options, const vd_verdict *verdict);
void vd_accepted_text(vd_buf *out, const vd_verdict *verdict);

/* ---- check_model.c: what `verde export` wrote ---- */

bool vd_is_model(const char *dir);
/* *rounded: its weights are, so that nothing can be said. */
VD_MUST_USE vd_status vd_check_model(const vd_check_options *options, bool *rounded, vd_err *err);

/* ---- check_prompts.c: the folder of a job with prompts ---- */

/* Is told of each prompt's run, once it fits. */
typedef void (*vd_note_prompt_run)(void *user, uint32_t item, const vd_program *program,
                                   const vd_run_log *log);
/* How `verde serve` has the runs hashed. */
typedef struct {
    const char *dir, *data; /* `data`: where the runs' data files are now; NULL: where they were */
    const vd_common *common;
    const vd_items *items;
    vd_note_prompt_run note;
    void *user;
    const atomic_bool *stop; /* set by another thread: VD_ERR_TIMEOUT */
} vd_prompt_runs;
/* Every byte of every prompt's states and data, and the lines of the results. */
VD_MUST_USE vd_status vd_check_prompt_runs(const vd_prompt_runs *runs, vd_err *err);

/* VD_ERR_PEER names what lies in DIR/prompts and is no run of these. */
VD_MUST_USE vd_status vd_check_entries(const char *dir, const vd_items *items, vd_err *err);

/* Every byte of every prompt's states and data, their roots against DIR/run.json, and
 * DIR/results.jsonl against the last states. */
VD_MUST_USE vd_status vd_check_prompts(const vd_check_options *options, vd_err *err);
/* `verde inspect DIR`: prints what DIR/run.json says, once it agrees with itself. */
VD_MUST_USE vd_status vd_show_prompts(const char *dir, const vd_common *common, vd_err *err);

/* ---- check_items.c ---- */

/* VD_ERR_PEER: DIR has runs of other programs than the job in this file. */
VD_MUST_USE vd_status vd_check_items_job(const char *dir, const char *job, const vd_items *items,
                                         vd_err *err);

/* ---- check_results.c ---- */

/* Is it a folder of results that were downloaded: with results.proof, and without runs? */
bool vd_results_are_in(const char *dir);
/* `verde check DIR` of such a folder: results.proof, whose records lead to the job root, against
 * the programs of the job, and each line of results.jsonl against its record. */
VD_MUST_USE vd_status vd_check_results(const vd_check_options *options, vd_err *err);
/* The same of a job that is loaded (vd_load_prompts), and nothing is printed. *items are the job's,
 * with the run roots that are proven; the caller's, also after a failure. */
VD_MUST_USE vd_status vd_prove_results(const vd_check_options *options, vd_loaded *job,
                                       vd_items *items, vd_hash *job_root, vd_err *err);

#endif
