/* Functions of one element, and their gradients, SPEC.md section 6. */
#include "repops/cpu/elements/functions.h"
#include "repops/op_function.h"

/* ---- functions ---- */

/* Defines `name`##_of, which computes the expression of a vector x. */
#define FUNCTION(name, expression)                                                                 \
    RO_INLINE wide name##_of(wide x, constants s) {                                                \
        (void)s;                                                                                   \
        return expression;                                                                         \
    }                                                                                              \
    static void name##_all(const ro_job *job, int64_t first, int64_t last) {                       \
        map(name##_of, (constants){0}, (const float *)job->in[0] + first, last - first,            \
            (float *)job->out + first);                                                            \
    }                                                                                              \
    RO_KERNEL(name, .range = name##_all)
FUNCTION(exp, fast_exp(x))
FUNCTION(log, fast_log(x))
FUNCTION(tanh, wide_tanh(x))
FUNCTION(erf, wide_erf(x))
FUNCTION(sigmoid, wide_sigmoid(x))
FUNCTION(silu, wide_canon(wide_silu(x)))
FUNCTION(relu, wide_relu(x))
FUNCTION(gelu, wide_canon(wide_gelu(x)))
FUNCTION(gelu_erf, wide_gelu_erf(x))
#undef FUNCTION

RO_INLINE void map_each(float (*f)(float), const ro_job *job, int64_t first, int64_t last) {
    const float *x = (const float *)job->in[0] + first;
    float *out = (float *)job->out + first;
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++)
        out[i] = ro_canon(f(x[i]));
}

static void sqrt_all(const ro_job *job, int64_t first, int64_t last) {
    map_each(ro_sqrt, job, first, last);
}
RO_KERNEL(sqrt, .range = sqrt_all)

static void rsqrt_all(const ro_job *job, int64_t first, int64_t last) {
    map_each(ro_rsqrt, job, first, last);
}
RO_KERNEL(rsqrt, .range = rsqrt_all)

static void abs_all(const ro_job *job, int64_t first, int64_t last) {
    map_each(ro_abs, job, first, last);
}
RO_KERNEL(abs, .range = abs_all)

/* ---- gradients: dy times the slope at input 0 ---- */

#define GRADIENT(name, ahead)                                                                      \
    RO_INLINE wide name##_chain(wide x, wide dy, constants s) {                                    \
        (void)s;                                                                                   \
        return wide_canon(wide_mul(dy, wide_##name##_slope(x)));                                   \
    }                                                                                              \
    static void name##_grad(const ro_job *job, int64_t first, int64_t last) {                      \
        map2(name##_chain, (constants){0}, (const float *)job->in[0] + first,                      \
             (const float *)job->in[1] + first, last - first, (float *)job->out + first, ahead);   \
    }                                                                                              \
    RO_KERNEL(name##_grad, .range = name##_grad)
GRADIENT(gelu, 1)
GRADIENT(tanh, 0)
GRADIENT(erf, 1)
GRADIENT(sigmoid, 0)
GRADIENT(silu, 1)
GRADIENT(gelu_erf, 1)
#undef GRADIENT

/* A gradient that passes keeps its bits even if it is a NaN. The test of x for NaN comes first;
 * otherwise dy is loaded under a mask, which has to wait for x. */
RO_INLINE wide relu_chain(wide x, wide dy, constants s) {
    const wide zero = wide_set1(0.0f);
    (void)s;
    return wide_if_ge(zero, x, zero, wide_unless_nan(x, dy));
}

static void relu_grad(const ro_job *job, int64_t first, int64_t last) {
    map2(relu_chain, (constants){0}, (const float *)job->in[0] + first,
         (const float *)job->in[1] + first, last - first, (float *)job->out + first, 0);
}
RO_KERNEL(relu_grad, .range = relu_grad)

/* ---- leaky_relu: s.a is the slope ---- */

RO_INLINE wide leaky_slope(wide x, constants s) {
    return wide_if_ge(wide_set1(0.0f), x, wide_set1(s.a), wide_set1(1.0f));
}

RO_INLINE wide leaky_of(wide x, constants s) {
    return wide_canon(wide_mul(x, leaky_slope(x, s)));
}

RO_INLINE wide leaky_chain(wide x, wide dy, constants s) {
    return wide_unless_nan(x, wide_canon(wide_mul(dy, leaky_slope(x, s))));
}

static void leaky_relu(const ro_job *job, int64_t first, int64_t last) {
    const constants s = {.a = attr_f32(job, RO_LEAKY_SLOPE)};
    map(leaky_of, s, (const float *)job->in[0] + first, last - first, (float *)job->out + first);
}
RO_KERNEL(leaky_relu, .range = leaky_relu)

static void leaky_relu_grad(const ro_job *job, int64_t first, int64_t last) {
    const constants s = {.a = attr_f32(job, RO_LEAKY_SLOPE)};
    map2(leaky_chain, s, (const float *)job->in[0] + first, (const float *)job->in[1] + first,
         last - first, (float *)job->out + first, 0);
}
RO_KERNEL(leaky_relu_grad, .range = leaky_relu_grad)

/* ---- soft_shrink: s.a is lambd ---- */

RO_INLINE wide shrunk(wide x, constants s) {
    const wide lambd = wide_set1(s.a), least = wide_set1(-s.a);
    const wide inside = wide_mul(x, wide_set1(0.0f));
    const wide up = wide_if_ge(x, least, inside, wide_sub(x, least));
    return wide_canon(wide_if_ge(lambd, x, up, wide_sub(x, lambd)));
}

RO_INLINE wide shrunk_chain(wide x, wide dy, constants s) {
    const wide zero = wide_set1(0.0f), d = wide_canon(dy);
    const wide up = wide_if_ge(x, wide_set1(-s.a), zero, d);
    return wide_if_ge(wide_set1(s.a), x, up, d);
}

static void soft_shrink(const ro_job *job, int64_t first, int64_t last) {
    const constants s = {.a = attr_f32(job, RO_SOFT_SHRINK_LAMBD)};
    map(shrunk, s, (const float *)job->in[0] + first, last - first, (float *)job->out + first);
}
RO_KERNEL(soft_shrink, .range = soft_shrink)

static void soft_shrink_grad(const ro_job *job, int64_t first, int64_t last) {
    const constants s = {.a = attr_f32(job, RO_SOFT_SHRINK_GRAD_LAMBD)};
    const float *x = job->in[0], *dy = job->in[1];
    map2(shrunk_chain, s, x + first, dy + first, last - first, (float *)job->out + first, 0);
}
RO_KERNEL(soft_shrink_grad, .range = soft_shrink_grad)
