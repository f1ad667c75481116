/* GELU by tanh, and ReLU, SPEC.md section 6. Compilers vectorise these loops. */
#include "repops/cpu/isa.h"

/* A range of elements, with the inputs advanced to it. */
typedef struct {
    const float *x, *y; /* y: the second input, NULL if there is none */
    float *out;
    int64_t count;
} span;

static span span_of(const ro_job *job, int64_t first, int64_t last) {
    return (span){(const float *)job->in[0] + first,
                  job->call->input_count > 1 ? (const float *)job->in[1] + first : NULL,
                  (float *)job->out + first, last - first};
}

/* ---- gelu ---- */

#define GELU_C0  0x1.988454p-1f
#define GELU_C1  0x1.6e4e26p-5f
#define GELU_3C1 (3.0f * GELU_C1)

/* The argument's tanh; x2 is x * x. */
RO_INLINE float gelu_tanh(float x, float x2) {
    return ro_tanh_any((GELU_C0 * x) * ro_fma(GELU_C1, x2, 1.0f));
}

static void gelu(const ro_job *job, int64_t first, int64_t last) {
    const span s = span_of(job, first, last);
    const float *x = s.x;
    float *out = s.out;
    RO_SAME_INDEX
    for (int64_t i = 0; i < s.count; i++) {
        const float t = gelu_tanh(x[i], x[i] * x[i]);
        out[i] = ro_canon((0.5f * x[i]) * (1.0f + t));
    }
}

RO_INLINE float gelu_slope(float x) {
    const float x2 = x * x, t = gelu_tanh(x, x2);
    const float s = ro_fma(-t, t, 1.0f), v = GELU_C0 * ro_fma(GELU_3C1, x2, 1.0f);
    return ro_fma((0.5f * x) * s, v, 0.5f * (1.0f + t));
}

static void gelu_grad(const ro_job *job, int64_t first, int64_t last) {
    const span s = span_of(job, first, last);
    const float *x = s.x, *dy = s.y;
    float *out = s.out;
    RO_SAME_INDEX
    for (int64_t i = 0; i < s.count; i++)
        out[i] = ro_canon(dy[i] * gelu_slope(x[i]));
}

/* ---- relu: a comparison with NaN is false, so the NaN case stands apart ---- */

static void relu(const ro_job *job, int64_t first, int64_t last) {
    const span s = span_of(job, first, last);
    const float *x = s.x;
    float *out = s.out;
    RO_SAME_INDEX
    for (int64_t i = 0; i < s.count; i++) {
        const float positive = x[i] > 0 ? x[i] : 0.0f;
        out[i] = x[i] != x[i] ? ro_from_bits(RO_QNAN_BITS) : positive;
    }
}

/* Integers, because dy keeps its bits even if it is a NaN. */
static void relu_grad(const ro_job *job, int64_t first, int64_t last) {
    const float *x = (const float *)job->in[0] + first;
    const uint32_t *dy = (const uint32_t *)job->in[1] + first;
    uint32_t *out = (uint32_t *)job->out + first;
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++) {
        const uint32_t passed = x[i] > 0 ? dy[i] : 0;
        out[i] = x[i] != x[i] ? RO_QNAN_BITS : passed;
    }
}

void RO_NAME(ro_add_elementwise)(ro_table *table) {
    table->kernel[RO_OP_GELU] = (ro_kernel){.range = gelu};
    table->kernel[RO_OP_GELU_GRAD] = (ro_kernel){.range = gelu_grad};
    table->kernel[RO_OP_RELU] = (ro_kernel){.range = relu};
    table->kernel[RO_OP_RELU_GRAD] = (ro_kernel){.range = relu_grad};
}
