/* What is known of the folder of a job with prompts. */
#ifndef VD_CHECK_PROMPTS_H
#define VD_CHECK_PROMPTS_H

#include "verde/cli/cli.h"

/* `verde check DIR`: every byte of every prompt's states and data, their roots against
 * DIR/run.json, and DIR/results.jsonl against the last states. `job` may be NULL, or must have
 * these programs. */
VD_MUST_USE vd_status vd_check_prompts(const char *dir, const char *job, const vd_common *common,
                                       vd_err *err);
/* `verde inspect DIR`: prints what DIR/run.json says, once it agrees with itself. */
VD_MUST_USE vd_status vd_show_prompts(const char *dir, const vd_common *common, vd_err *err);

#endif
