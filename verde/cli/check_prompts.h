/* What is known of the folder of a job with prompts. */
#ifndef VD_CHECK_PROMPTS_H
#define VD_CHECK_PROMPTS_H

#include "verde/cli/cli.h"

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

typedef struct {
    const char *dir;
    const char *data;              /* where the runs' data files are now; NULL: where they were */
    const char *job;               /* must have these programs; may be NULL */
    const char *verdict, *referee; /* must accept the job root; whose it must be; may be NULL */
    const vd_common *common;
} vd_prompt_check_options;

/* `verde check DIR`: every byte of every prompt's states and data, their roots against
 * DIR/run.json, and DIR/results.jsonl against the last states. */
VD_MUST_USE vd_status vd_check_prompts(const vd_prompt_check_options *options, vd_err *err);
/* `verde inspect DIR`: prints what DIR/run.json says, once it agrees with itself. */
VD_MUST_USE vd_status vd_show_prompts(const char *dir, const vd_common *common, vd_err *err);

/* ---- check_items.c ---- */

/* VD_ERR_PEER: DIR has runs of other programs than the job in this file. */
VD_MUST_USE vd_status vd_check_items_job(const char *dir, const char *job, const vd_items *items,
                                         vd_err *err);
/* Is it the job root that the verdict of the options accepts, if they have one? VD_ERR_PEER: no, or
 * the verdict is about other programs than those of this collection hash. */
VD_MUST_USE vd_status vd_check_job_root(const vd_prompt_check_options *options,
                                        const vd_hash *collection, const vd_hash *job_root,
                                        vd_err *err);

/* ---- check_results.c ---- */

/* Is it a folder of results that were downloaded: with results.proof, and without runs? */
bool vd_results_are_in(const char *dir);
/* `verde check DIR` of such a folder: results.proof, whose records lead to the job root, against
 * the programs of the job, and each line of results.jsonl against its record. */
VD_MUST_USE vd_status vd_check_results(const vd_prompt_check_options *options, vd_err *err);
/* The same of a job that is loaded (vd_load_prompts), and nothing is printed. *items are the job's,
 * with the run roots that are proven; the caller's, also after a failure. */
VD_MUST_USE vd_status vd_prove_results(const vd_prompt_check_options *options, vd_loaded *job,
                                       vd_items *items, vd_hash *job_root, vd_err *err);

#endif
