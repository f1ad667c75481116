/* `verde run` of a job with prompts. */
#ifndef VD_RUN_PROMPTS_H
#define VD_RUN_PROMPTS_H

#include "verde/cli/cli.h"

typedef struct {
    const char *job, *dir;
    const char
        *fault; /* "KEY/KIND..." in the prompt of this key, "KIND..." in the first; or NULL */
    uint32_t together; /* prompts at a time, 1 or more */
    vd_common common;
} vd_prompt_options;

/* Runs every prompt of the job that vd_load_prompts loaded, each into DIR/prompts/KEY, and writes
 * DIR/run.json and, at the end, DIR/results.jsonl; until then its lines are in
 * DIR/results.jsonl.part. What is finished there already stays as it
 * is. */
VD_MUST_USE vd_status vd_run_prompts(const vd_prompt_options *options, vd_loaded *loaded,
                                     vd_err *err);

#endif
