/* Checked arguments of library functions that are not operators, in the form that backends take. */
#ifndef REPOPS_JOBS_H
#define REPOPS_JOBS_H

#include "repops/layers.h"
#include "repops/packed.h"

/* A batch of products for ro_sgemm (SPEC.md section 3.1), none of them empty. Element (i, j) of an
 * operand is at i * row + j * col; one of these strides is 1, for c the column's. */
typedef struct {
    int64_t m, n, k; /* k = 0: every dot product is +0 */
    const float *a, *b;
    float *c;
    int64_t a_row, a_col, b_row, b_col, c_row;
    int64_t batch, a_next, b_next, c_next; /* offsets between products */
    float alpha, beta;
} ro_products;

/* The arguments of ro_linear, whose output is not empty. */
typedef struct {
    ro_linear_layer layer;
    const float *x, *w, *bias;
    float *z, *y;
} ro_linear_job;

/* The arguments of ro_linear_pack and ro_linear_pack_x. */
typedef enum { RO_PACKED_X, RO_PACKED_W } ro_packed_operand;
typedef struct {
    ro_linear_layer layer;
    ro_packed_operand side;
    const float *from;
    int transposed_x;
    void *to;
} ro_pack_job;

/* Where the rows of a head lie: from element `first` on, `step` elements apart. */
typedef struct {
    int64_t first, step;
} ro_head_rows;

/* Returns the rows of head `head` (over all of the batch), where each sequence has `heads` heads of
 * `tokens` rows. `row` is the tensor's row distance in ro_attention. */
static inline ro_head_rows ro_rows_of_head(int64_t head, int64_t heads, int64_t tokens,
                                           int64_t size, int64_t row) {
    if (row == 0)
        return (ro_head_rows){head * tokens * size, size};
    return (ro_head_rows){head / heads * tokens * row + head % heads * size, row};
}

/* The tensors of ro_attention_forward and ro_attention_backward; kv_rows is filled in. */
typedef struct {
    const ro_attention *a;
    const float *q, *k, *v;
    float *out, *m, *l; /* m and l may be NULL */
} ro_attention_job;

typedef struct {
    const ro_attention *a;
    const float *q, *k, *v, *out, *m, *l, *dout;
    float *dq, *dk, *dv;
} ro_attention_grad_job;

/* The arguments of ro_cross_entropy. */
typedef struct {
    int64_t rows, cols;
    const float *x;
    const int32_t *ids;
    int64_t ignore;
    const float *dloss;
    float *loss, *m, *l, *dx;
} ro_cross_entropy_job;

/* The arguments of ro_layer_norm, ro_rms_norm, ro_softmax or ro_log_softmax. Statistics are mean
 * and rstd, or m and l; ro_rms_norm has no beta, and rstd is its only statistic. */
typedef struct {
    int64_t rows, cols;
    float eps;
    const float *x, *gamma, *beta;
    float *y, *statistic[2];
} ro_row_job;

/* The arguments of ro_layer_norm_backward, or of ro_softmax_backward and ro_log_softmax_backward,
 * whose y is in member x. */
typedef struct {
    int64_t rows, cols;
    const float *x, *gamma, *statistic[2], *dy; /* statistics: mean and rstd */
    float *dx, *dgamma, *dbeta;
} ro_row_grad_job;

/* The arguments of ro_embedding_backward. */
typedef struct {
    int64_t rows, cols, positions;
    const float *dy;
    const int32_t *ids;
    ro_gradient table;
} ro_embedding_job;

/* The arguments of ro_rms_norm_backward. */
typedef struct {
    int64_t rows, cols;
    const float *x, *gamma, *rstd, *dy;
    ro_gradient dx, dgamma;
} ro_rms_grad_job;

/* The arguments of ro_rotary, or with `inverse` of ro_rotary_backward, from dy to dx. */
typedef struct {
    ro_rotary_layer layer;
    const float *from;
    const int32_t *position, *turns;
    ro_gradient to;
    int inverse;
} ro_rotary_job;

/* One parameter of ro_adamw_all. A device passes 256 of them as arguments of one kernel. */
typedef struct {
    int64_t count;
    float beta1, beta2, eps, decay;
    const float *clip, *c1, *c2, *rate;
    const float *w, *m, *v, *gradient;
    float *w_out, *m_out, *v_out;
} ro_adamw_job;

/* The arguments of ro_adamw_bf16. */
typedef struct {
    ro_adamw_step step;
    ro_adamw_rounding rounding;
    const uint16_t *w, *m, *v;
    const float *gradient;
    uint16_t *w_out, *m_out, *v_out;
} ro_adamw_bf16_job;

/* The arguments of ro_sgd. */
typedef struct {
    ro_sgd_step step;
    const float *w, *m, *gradient;
    float *w_out, *m_out;
} ro_sgd_job;

#endif
