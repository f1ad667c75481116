/* Layer norm, SPEC.md section 7.1. An item of the row operators is a row. */
#include "repops/cpu/isa.h"

static int64_t width(const ro_call *call) {
    return call->output.dim[call->output.ndim - 1];
}

static int64_t rows(const ro_call *call) {
    return ro_shape_numel(&call->output) / width(call);
}

static void ln_rstd(const ro_job *job, int64_t first, int64_t last) {
    const float *restrict ss = (const float *)job->in[0] + first;
    float *restrict out = (float *)job->out + first;
    const float n = (float)job->call->attr[0], eps = attr_f32(job, 1);
    for (int64_t i = 0; i < last - first; i++)
        out[i] = ro_canon(1.0f / ro_sqrt(ss[i] / n + eps));
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

void RO_NAME(ro_add_norm)(ro_table *table) {
    table->kernel[RO_OP_LN_RSTD] = (ro_kernel){.range = ln_rstd};
    table->kernel[RO_OP_LAYERNORM] = (ro_kernel){.range = layernorm, .items = rows};
    table->kernel[RO_OP_LN_DX] = (ro_kernel){.range = ln_dx, .items = rows};
}
