/* Lines of results.jsonl. */
#ifndef VD_RESULTS_H
#define VD_RESULTS_H

#include "verde/load/load.h"

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
void vd_score_text(vd_buf *out, const vd_score_sum *sum);
void vd_score_json(const vd_score_sum *sum, json_t *out);

#endif
