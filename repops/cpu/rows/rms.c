/* RMS norm, SPEC.md section 7.3. An item is a row. */
#include "repops/cpu/isa.h"

static int64_t width(const ro_call *call) {
    return call->output.dim[call->output.ndim - 1];
}

static int64_t rows(const ro_call *call) {
    return ro_shape_numel(&call->output) / width(call);
}

static void rmsnorm_row(const float *x, float rstd, const float *gamma, int64_t cols, float *out) {
    RO_SAME_INDEX
    for (int64_t c = 0; c < cols; c++)
        out[c] = ro_canon((x[c] * rstd) * gamma[c]);
}

static void rmsnorm(const ro_job *job, int64_t first, int64_t last) {
    const float *x = job->in[0], *rstd = job->in[1];
    const int64_t cols = width(job->call);
    for (int64_t r = first; r < last; r++)
        rmsnorm_row(x + r * cols, rstd[r], job->in[2], cols, (float *)job->out + r * cols);
}

/* gx = sgx / n */
static void rms_dx_row(const float *dy, const float *gamma, const float *x, float rstd, float gx,
                       int64_t cols, float *out) {
    RO_SAME_INDEX
    for (int64_t c = 0; c < cols; c++)
        out[c] = ro_canon(rstd * ro_fma(-(x[c] * rstd), gx, dy[c] * gamma[c]));
}

static void rms_dx(const ro_job *job, int64_t first, int64_t last) {
    const float *dy = job->in[0], *x = job->in[2], *rstd = job->in[3], *sgx = job->in[4];
    const int64_t cols = width(job->call);
    const float n = (float)cols;
    for (int64_t r = first; r < last; r++)
        rms_dx_row(dy + r * cols, job->in[1], x + r * cols, rstd[r], sgx[r] / n, cols,
                   (float *)job->out + r * cols);
}

void RO_NAME(ro_add_rms)(ro_table *table) {
    table->kernel[RO_OP_RMSNORM] = (ro_kernel){.range = rmsnorm, .items = rows};
    table->kernel[RO_OP_RMS_DX] = (ro_kernel){.range = rms_dx, .items = rows};
}
