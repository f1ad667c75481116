/* Functions of one element, and their gradients, SPEC.md section 6. Compilers inline the function
 * and vectorise the loop. */
#include "repops/cpu/isa.h"

typedef float function(float x);

/* f gives the canonical NaN. */
RO_INLINE void map(function *f, const ro_job *job, int64_t first, int64_t last) {
    const float *x = (const float *)job->in[0] + first;
    float *out = (float *)job->out + first;
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++)
        out[i] = f(x[i]);
}

/* dy times the slope at input 0. */
RO_INLINE void chain(function *slope, const ro_job *job, int64_t first, int64_t last) {
    const float *x = (const float *)job->in[0] + first;
    const float *dy = (const float *)job->in[1] + first;
    float *out = (float *)job->out + first;
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++)
        out[i] = ro_canon(dy[i] * slope(x[i]));
}

RO_INLINE float canon_sqrt(float x) {
    return ro_canon(ro_sqrt(x));
}

RO_INLINE float canon_silu(float x) {
    return ro_canon(ro_silu(x));
}

RO_INLINE float canon_gelu_erf(float x) {
    return ro_canon(ro_gelu_erf(x));
}

static void exp_all(const ro_job *job, int64_t first, int64_t last) {
    map(ro_exp, job, first, last);
}

static void log_all(const ro_job *job, int64_t first, int64_t last) {
    map(ro_log, job, first, last);
}

static void sqrt_all(const ro_job *job, int64_t first, int64_t last) {
    map(canon_sqrt, job, first, last);
}

static void rsqrt_all(const ro_job *job, int64_t first, int64_t last) {
    map(ro_rsqrt, job, first, last);
}

static void tanh_all(const ro_job *job, int64_t first, int64_t last) {
    map(ro_tanh, job, first, last);
}

static void erf_all(const ro_job *job, int64_t first, int64_t last) {
    map(ro_erf, job, first, last);
}

static void sigmoid_all(const ro_job *job, int64_t first, int64_t last) {
    map(ro_sigmoid, job, first, last);
}

static void silu_all(const ro_job *job, int64_t first, int64_t last) {
    map(canon_silu, job, first, last);
}

static void gelu_erf_all(const ro_job *job, int64_t first, int64_t last) {
    map(canon_gelu_erf, job, first, last);
}

static void tanh_grad(const ro_job *job, int64_t first, int64_t last) {
    chain(ro_tanh_slope, job, first, last);
}

static void erf_grad(const ro_job *job, int64_t first, int64_t last) {
    chain(ro_erf_slope, job, first, last);
}

static void sigmoid_grad(const ro_job *job, int64_t first, int64_t last) {
    chain(ro_sigmoid_slope, job, first, last);
}

static void silu_grad(const ro_job *job, int64_t first, int64_t last) {
    chain(ro_silu_slope, job, first, last);
}

static void gelu_erf_grad(const ro_job *job, int64_t first, int64_t last) {
    chain(ro_gelu_erf_slope, job, first, last);
}

void RO_NAME(ro_add_functions)(ro_table *table) {
    table->kernel[RO_OP_EXP] = (ro_kernel){.range = exp_all};
    table->kernel[RO_OP_LOG] = (ro_kernel){.range = log_all};
    table->kernel[RO_OP_SQRT] = (ro_kernel){.range = sqrt_all};
    table->kernel[RO_OP_RSQRT] = (ro_kernel){.range = rsqrt_all};
    table->kernel[RO_OP_TANH] = (ro_kernel){.range = tanh_all};
    table->kernel[RO_OP_ERF] = (ro_kernel){.range = erf_all};
    table->kernel[RO_OP_SIGMOID] = (ro_kernel){.range = sigmoid_all};
    table->kernel[RO_OP_SILU] = (ro_kernel){.range = silu_all};
    table->kernel[RO_OP_GELU_ERF] = (ro_kernel){.range = gelu_erf_all};
    table->kernel[RO_OP_TANH_GRAD] = (ro_kernel){.range = tanh_grad};
    table->kernel[RO_OP_ERF_GRAD] = (ro_kernel){.range = erf_grad};
    table->kernel[RO_OP_SIGMOID_GRAD] = (ro_kernel){.range = sigmoid_grad};
    table->kernel[RO_OP_SILU_GRAD] = (ro_kernel){.range = silu_grad};
    table->kernel[RO_OP_GELU_ERF_GRAD] = (ro_kernel){.range = gelu_erf_grad};
}
