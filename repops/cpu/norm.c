/* Layer norm, SPEC.md section 7.1. An item of the row operators is a row. */
#include "repops/cpu/levels.h"

static int64_t width(const ro_call *call) {
    return call->output.dim[call->output.ndim - 1];
}

static int64_t rows(const ro_call *call) {
    return ro_shape_numel(&call->output) / width(call);
}

RO_INLINE float rstd_of(float ss, float n, float eps) {
    return ro_canon(1.0f / ro_sqrt(ss / n + eps));
}

static void ln_rstd(const ro_job *job, int64_t first, int64_t last) {
    const float *restrict ss = (const float *)job->in[0] + first;
    float *restrict out = (float *)job->out + first;
    const float n = (float)job->call->attr[0], eps = attr_f32(job, 1);
    for (int64_t i = 0; i < last - first; i++)
        out[i] = rstd_of(ss[i], n, eps);
}

static void layernorm_row(const float *x, float mean, float rstd, const float *gamma,
                          const float *beta, int64_t cols, float *out) {
    RO_SAME_INDEX
    for (int64_t c = 0; c < cols; c++)
        out[c] = ro_canon(ro_fma((x[c] - mean) * rstd, gamma[c], beta[c]));
}

static void layernorm(const ro_job *job, int64_t first, int64_t last) {
    const float *x = job->in[0], *mean = job->in[1], *rstd = job->in[2];
    const int64_t cols = width(job->call);
    for (int64_t r = first; r < last; r++)
        layernorm_row(x + r * cols, mean[r], rstd[r], job->in[3], job->in[4], cols,
                      (float *)job->out + r * cols);
}

typedef struct {
    float mean, rstd, g, gx; /* g = sg / n, gx = sgx / n */
} row_stats;

static void ln_dx_row(const float *dy, const float *gamma, const float *x, row_stats s,
                      int64_t cols, float *out) {
    RO_SAME_INDEX
    for (int64_t c = 0; c < cols; c++) {
        const float g = dy[c] * gamma[c], xh = (x[c] - s.mean) * s.rstd;
        out[c] = ro_canon(s.rstd * ro_fma(-xh, s.gx, g - s.g));
    }
}

static void ln_dx(const ro_job *job, int64_t first, int64_t last) {
    const float *dy = job->in[0], *x = job->in[2], *mean = job->in[3], *rstd = job->in[4];
    const float *sg = job->in[5], *sgx = job->in[6];
    const int64_t cols = width(job->call);
    const float n = (float)cols;
    for (int64_t r = first; r < last; r++) {
        const row_stats s = {mean[r], rstd[r], sg[r] / n, sgx[r] / n};
        ln_dx_row(dy + r * cols, job->in[1], x + r * cols, s, cols, (float *)job->out + r * cols);
    }
}

/* ---- forward, a row at a time: ro_layer_norm ---- */

RO_INLINE float reduce_row(const float *x, int64_t cols, float mean, add_terms *add,
                           add_term *add_one) {
    float part[PARTS];
    int64_t parts = 0;
    part[0] = 0; /* there is at least one part, which compilers do not see */
    for (int64_t from = 0; from < cols; from += RO_REDUCE_BLOCK, parts++)
        part[parts] = lane_reduce(&(terms){.a = x + from, .mean = mean},
                                  min_i64(RO_REDUCE_BLOCK, cols - from), add, add_one);
    return sum_of_parts(part, parts);
}

static void norm_rows(void *user, int64_t first, int64_t last, int worker) {
    const ro_row_job *j = user;
    const float n = (float)j->cols;
    (void)worker;
    for (int64_t r = first; r < last; r++) {
        const float *x = j->x + r * j->cols;
        const float mean = ro_canon(reduce_row(x, j->cols, 0, add_values, add_value) / n);
        const float ss = reduce_row(x, j->cols, mean, add_squares, add_square);
        const float rstd = rstd_of(ss, n, j->eps);
        j->statistic[0][r] = mean, j->statistic[1][r] = rstd;
        layernorm_row(x, mean, rstd, j->gamma, j->beta, j->cols, j->y + r * j->cols);
    }
}

static void layer_norm(ro_ctx *ctx, const ro_row_job *job) {
    ro_pool_for(ro_ctx_pool(ctx), job->rows, 1 + (1 << 14) / job->cols, norm_rows,
                (void *)(uintptr_t)job);
}

void RO_NAME(ro_add_norm)(ro_table *table) {
    table->kernel[RO_OP_LN_RSTD] = (ro_kernel){.range = ln_rstd};
    table->kernel[RO_OP_LAYERNORM] = (ro_kernel){.range = layernorm, .items = rows};
    table->kernel[RO_OP_LN_DX] = (ro_kernel){.range = ln_dx, .items = rows};
    table->layer_norm = layer_norm;
}
