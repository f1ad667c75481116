/* Elementwise operators and optimizers, SPEC.md sections 6 and 9. */
#include "repops/ref/ref.h"
#include "repops/src/half.h"
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_optimizer.h"
#include "repops/src/schedule.h"
#include "repops/op_function.h"

/* Defines operator `name` as an expression of two numbers a and b. */
#define ARITHMETIC(name, expression)                                                               \
    static uint32_t name##_of(const ro_call *call, int64_t e, const ro_acc *acc,                   \
                              const ro_access *in) {                                               \
        float a = loadf(in, 0, e), b = loadf(in, 1, e % numel(call, 1));                           \
        (void)acc;                                                                                 \
        return result(expression);                                                                 \
    }                                                                                              \
    RO_REFERENCE(name, .finish = name##_of)
ARITHMETIC(add, a + b)
ARITHMETIC(sub, a - b)
ARITHMETIC(mul, (a * b))
ARITHMETIC(div, a / b)
ARITHMETIC(max, ro_max(a, b))
ARITHMETIC(min, ro_min(a, b))
#undef ARITHMETIC

/* Defines operator `name` as ro_name of math.h. */
#define FUNCTION(name)                                                                             \
    static uint32_t name##_of(const ro_call *call, int64_t e, const ro_acc *acc,                   \
                              const ro_access *in) {                                               \
        (void)call, (void)acc;                                                                     \
        return result(ro_##name(loadf(in, 0, e)));                                                 \
    }                                                                                              \
    RO_REFERENCE(name, .finish = name##_of)
FUNCTION(exp)
FUNCTION(abs)
FUNCTION(log)
FUNCTION(sqrt)
FUNCTION(rsqrt)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(sigmoid)
FUNCTION(silu)
FUNCTION(gelu)
FUNCTION(gelu_erf)
#undef FUNCTION

/* Defines the gradient of `name`: dy times ro_name_slope of math.h at x. */
#define GRADIENT(name)                                                                             \
    static uint32_t name##_grad(const ro_call *call, int64_t e, const ro_acc *acc,                 \
                                const ro_access *in) {                                             \
        (void)call, (void)acc;                                                                     \
        return result(loadf(in, 1, e) * ro_##name##_slope(loadf(in, 0, e)));                       \
    }                                                                                              \
    RO_REFERENCE(name##_grad, .finish = name##_grad)
GRADIENT(tanh)
GRADIENT(erf)
GRADIENT(sigmoid)
GRADIENT(silu)
GRADIENT(gelu)
GRADIENT(gelu_erf)
#undef GRADIENT

static uint32_t scale(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return result(loadf(in, 0, e) * attrf(call, RO_SCALE_FACTOR));
}
RO_REFERENCE(scale, .finish = scale)

static uint32_t div_const(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return result(loadf(in, 0, e) / attrf(call, RO_DIV_CONST_DIVISOR));
}
RO_REFERENCE(div_const, .finish = div_const)

static uint32_t relu(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc;
    float x = loadf(in, 0, e);
    return x > 0 ? ro_to_bits(x) : x != x ? RO_QNAN_BITS : 0;
}
RO_REFERENCE(relu, .finish = relu)

static uint32_t relu_grad(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc;
    float x = loadf(in, 0, e);
    uint32_t dy = load(in, 1, e);
    return x > 0 ? dy : x != x ? RO_QNAN_BITS : 0;
}
RO_REFERENCE(relu_grad, .finish = relu_grad)

static uint32_t compare(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    const int64_t kind = call->attr[RO_COMPARE_KIND];
    uint32_t a = load(in, 0, e), b = load(in, 1, e % numel(call, 1));
    return call->input[0].dtype == RO_F32 ? RO_HOLDS(kind, ro_from_bits(a), ro_from_bits(b))
                                          : RO_HOLDS(kind, (int32_t)a, (int32_t)b);
}
RO_REFERENCE(compare, .finish = compare)

static uint32_t where(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc;
    uint32_t c = load(in, 0, e), a = load(in, 1, e), b = load(in, 2, e);
    return c ? a : b;
}
RO_REFERENCE(where, .finish = where)

static uint32_t iadd(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return load(in, 0, e) + load(in, 1, e % numel(call, 1));
}
RO_REFERENCE(iadd, .finish = iadd)

static uint32_t leaky_relu(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float x = loadf(in, 0, e);
    return result(x > 0 ? x : x * attrf(call, RO_LEAKY_SLOPE));
}
RO_REFERENCE(leaky_relu, .finish = leaky_relu)

static uint32_t leaky_relu_grad(const ro_call *call, int64_t e, const ro_acc *acc,
                                const ro_access *in) {
    (void)acc;
    float x = loadf(in, 0, e), dy = loadf(in, 1, e);
    return x != x ? RO_QNAN_BITS : result(x > 0 ? dy : dy * attrf(call, RO_LEAKY_SLOPE));
}
RO_REFERENCE(leaky_relu_grad, .finish = leaky_relu_grad)

static uint32_t soft_shrink(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    (void)acc;
    const float x = loadf(in, 0, e), lambd = attrf(call, RO_SOFT_SHRINK_LAMBD);
    return result(lambd >= x ? x >= -lambd ? x * 0 : x + lambd : x - lambd);
}
RO_REFERENCE(soft_shrink, .finish = soft_shrink)

static uint32_t soft_shrink_grad(const ro_call *call, int64_t e, const ro_acc *acc,
                                 const ro_access *in) {
    (void)acc;
    const float x = loadf(in, 0, e), dy = loadf(in, 1, e);
    const float lambd = attrf(call, RO_SOFT_SHRINK_GRAD_LAMBD);
    return lambd >= x && x >= -lambd ? 0 : result(dy);
}
RO_REFERENCE(soft_shrink_grad, .finish = soft_shrink_grad)

static uint32_t dropout(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    uint32_t word[4];
    (void)acc;
    float x = loadf(in, 0, e);
    ro_philox_block((uint64_t)call->attr[RO_DROPOUT_SEED], (uint64_t)e / 4, load(in, 1, 0),
                    (uint32_t)call->attr[RO_DROPOUT_STREAM], word);
    return word[e % 4] >= (uint32_t)call->attr[RO_DROPOUT_THRESHOLD]
               ? result(x * attrf(call, RO_DROPOUT_SCALE))
               : 0;
}
RO_REFERENCE(dropout, .finish = dropout)

/* A block of Philox rounds eight elements, with half a word each, the lower half first. */
static uint32_t cast_stochastic(const ro_call *call, int64_t e, const ro_acc *acc,
                                const ro_access *in) {
    uint32_t word[4];
    (void)acc;
    const float x = loadf(in, 0, e);
    ro_philox_block((uint64_t)call->attr[RO_CAST_STOCHASTIC_SEED], (uint64_t)e / 8, load(in, 1, 0),
                    (uint32_t)call->attr[RO_CAST_STOCHASTIC_STREAM], word);
    return ro_to_bf16_at_random(x, word[e / 2 % 4] >> 16 * (e % 2) & 0xffff);
}
RO_REFERENCE(cast_stochastic, .finish = cast_stochastic)

static uint32_t lr_schedule(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    (void)e, (void)acc;
    return result(ro_learning_rate(call->attr, (int32_t)load(in, 0, 0)));
}
RO_REFERENCE(lr_schedule, .finish = lr_schedule)

static uint32_t bias_correction(const ro_call *call, int64_t e, const ro_acc *acc,
                                const ro_access *in) {
    (void)acc;
    float beta = attrf(call, RO_BIAS_CORRECTION_BETA);
    return result(ro_fma(beta, loadf(in, 0, e), 1.0f - beta));
}
RO_REFERENCE(bias_correction, .finish = bias_correction)

static uint32_t clip_scale(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return result(ro_clip_scale(loadf(in, 0, e), attrf(call, RO_CLIP_SCALE_MAX_NORM)));
}
RO_REFERENCE(clip_scale, .finish = clip_scale)

static uint32_t adamw_m(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float beta = attrf(call, RO_ADAMW_M_BETA), g = loadf(in, 1, e) * loadf(in, 2, 0);
    return result(ro_fma(beta, loadf(in, 0, e), (1.0f - beta) * g));
}
RO_REFERENCE(adamw_m, .finish = adamw_m)

static uint32_t adamw_v(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float beta = attrf(call, RO_ADAMW_V_BETA), g = loadf(in, 1, e) * loadf(in, 2, 0);
    return result(ro_fma(beta, loadf(in, 0, e), (1.0f - beta) * (g * g)));
}
RO_REFERENCE(adamw_v, .finish = adamw_v)

static uint32_t adamw_w(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    ro_adamw_scalars s = {1.0f / loadf(in, 3, 0), 1.0f / loadf(in, 4, 0), loadf(in, 5, 0),
                          attrf(call, RO_ADAMW_W_EPS), attrf(call, RO_ADAMW_W_DECAY)};
    return result(ro_adamw_w(loadf(in, 0, e), loadf(in, 1, e), loadf(in, 2, e), s));
}
RO_REFERENCE(adamw_w, .finish = adamw_w)

/* Returns the clipped gradient plus the decay of the weight. */
static float sgd_direction(const ro_call *call, float w, float g, float clip) {
    return ro_fma(attrf(call, RO_SGD_DECAY), w, g * clip);
}

static uint32_t sgd_m(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float d = sgd_direction(call, loadf(in, 2, e), loadf(in, 1, e), loadf(in, 3, 0));
    return result(ro_fma(attrf(call, RO_SGD_M_MOMENTUM), loadf(in, 0, e), d));
}
RO_REFERENCE(sgd_m, .finish = sgd_m)

static uint32_t sgd_w(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc;
    return result(ro_fma(-loadf(in, 2, 0), loadf(in, 1, e), loadf(in, 0, e)));
}
RO_REFERENCE(sgd_w, .finish = sgd_w)

static uint32_t sgd_nesterov(const ro_call *call, int64_t e, const ro_acc *acc,
                             const ro_access *in) {
    (void)acc;
    float w = loadf(in, 0, e);
    float d = sgd_direction(call, w, loadf(in, 2, e), loadf(in, 3, 0));
    return result(ro_fma(-loadf(in, 4, 0),
                         ro_fma(attrf(call, RO_SGD_NESTEROV_MOMENTUM), loadf(in, 1, e), d), w));
}
RO_REFERENCE(sgd_nesterov, .finish = sgd_nesterov)
