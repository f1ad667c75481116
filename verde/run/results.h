/* Lines of results.jsonl. */
#ifndef VD_RESULTS_H
#define VD_RESULTS_H

#include "verde/load/load.h"

/* Sums over all tokens of a job that scores; `not_finite` counts, for any job, log-probabilities
 * that are NaN. */
typedef struct {
    double log_probability;
    uint64_t tokens, not_finite;
} vd_score_sum;

/* Appends the line of a prompt's last state, which is in host memory, and adds it to `sum`. */
VD_MUST_USE vd_status vd_result_line(const vd_program *program, const vd_state *state, int64_t key,
                                     vd_score_sum *sum, vd_buf *out, vd_err *err);
/* Loss and perplexity, if there are any, as text and as members of `out`. Both warn of
 * log-probabilities that are NaN. */
void vd_score_text(vd_buf *out, const vd_score_sum *sum);
void vd_score_json(const vd_score_sum *sum, json_t *out);

#endif
