/* `verde run` of a job with prompts. */
#ifndef VD_RUN_PROMPTS_H
#define VD_RUN_PROMPTS_H

#include "verde/cli/cli.h"

enum {
    VD_TOGETHER = 8,        /* prompts that run together if nobody says how many */
    VD_TOGETHER_ROWS = 128, /* tokens of prompts that a pass takes in beside those that it makes */
};

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

/* ---- results.c ---- */

/* Sums over all tokens of a job that scores; and of any job how many log-probabilities are no
 * numbers. */
typedef struct {
    double log_probability;
    uint64_t tokens, not_finite;
} vd_score_sum;

/* Appends a line of results.jsonl: what the last state of a prompt's run holds, in host memory, and
 * adds it to `sum`. */
VD_MUST_USE vd_status vd_result_line(const vd_program *program, const vd_state *state, int64_t key,
                                     vd_score_sum *sum, vd_buf *out, vd_err *err);
/* Loss and perplexity, if there is anything to tell: for people, and as members of `out`. Both warn
 * of log-probabilities that are no numbers. */
void vd_score_text(const vd_score_sum *sum);
void vd_score_json(const vd_score_sum *sum, json_t *out);
/* Tokens that a state has made; 0 of a program that scores. */
int64_t vd_tokens_made(const vd_program *program, const vd_state *state);

#endif
