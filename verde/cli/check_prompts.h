/* What is known of the folder of a job with prompts. */
#ifndef VD_CHECK_PROMPTS_H
#define VD_CHECK_PROMPTS_H

#include "verde/cli/cli.h"

/* Is told of each prompt's run, once it fits. */
typedef void (*vd_note_prompt_run)(void *user, uint32_t item, const vd_run_log *log);
/* Every byte of every prompt's states and data, and the lines of the results. `data`: where the
 * runs' data files are now; NULL: where they were. `note` may be NULL. */
VD_MUST_USE vd_status vd_check_prompt_runs(const char *dir, const char *data,
                                           const vd_common *common, const vd_items *items,
                                           vd_note_prompt_run note, void *user, vd_err *err);

/* `verde check DIR`: every byte of every prompt's states and data, their roots against
 * DIR/run.json, and DIR/results.jsonl against the last states. `job` may be NULL, or must have
 * these programs. */
VD_MUST_USE vd_status vd_check_prompts(const char *dir, const char *job, const vd_common *common,
                                       vd_err *err);
/* `verde inspect DIR`: prints what DIR/run.json says, once it agrees with itself. */
VD_MUST_USE vd_status vd_show_prompts(const char *dir, const vd_common *common, vd_err *err);

#endif
