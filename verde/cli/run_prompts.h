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

/* ---- run_together.c: prompts at the same time, by the batch's executor ---- */

typedef struct {
    vd_loaded *loaded; /* the job; `program` and `placed` become those of one prompt or other */
    const char *dir;
    const vd_items *items;
    uint32_t together;
    /* Tokens that were made since the call before, and how many prompts have ended. */
    void (*made)(void *user, int64_t tokens, uint32_t ended);
    /* A prompt has ended: its last state, and its run's root. */
    vd_status (*ended)(void *user, uint32_t prompt, const vd_program *program,
                       const vd_state *state, const vd_hash *run_root, vd_err *err);
    void *user;
} vd_together;

/* Whether the job's prompts can run so: they make tokens, in host memory. */
bool vd_can_run_together(const vd_loaded *loaded);
VD_MUST_USE vd_status vd_run_together(const vd_together *t, vd_err *err);

/* ---- results.c ---- */

/* Sums over all tokens of a job that scores. */
typedef struct {
    double log_probability;
    uint64_t tokens;
} vd_score_sum;

/* Appends a line of results.jsonl: what the last state of a prompt's run holds, in host memory.
 * `sum` is added to if the program scores. */
VD_MUST_USE vd_status vd_result_line(const vd_program *program, const vd_state *state, int64_t key,
                                     vd_score_sum *sum, vd_buf *out, vd_err *err);
/* Tokens that a state has made; 0 of a program that scores. */
int64_t vd_tokens_made(const vd_program *program, const vd_state *state);

#endif
