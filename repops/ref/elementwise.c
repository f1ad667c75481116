/* SPEC.md sections 6 and 9. */
#include "repops/ref/ref.h"
#include "repops/src/half.h"

uint32_t ro_ref_arithmetic(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float a = loadf(in, 0, e), b = loadf(in, 1, e % numel(call, 1));
    switch (call->op) {
    case RO_OP_ADD: return result(a + b);
    case RO_OP_SUB: return result(a - b);
    case RO_OP_MUL: return result(a * b);
    case RO_OP_DIV: return result(a / b);
    case RO_OP_MAX: return result(ro_max(a, b));
    case RO_OP_MIN: return result(ro_min(a, b));
    default: return result(no_such_operator());
    }
}

uint32_t ro_ref_scale(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return result(loadf(in, 0, e) * attrf(call, RO_SCALE_FACTOR));
}

static float function_of(int op, float x) {
    switch (op) {
    case RO_OP_EXP: return ro_exp(x);
    case RO_OP_ABS: return ro_abs(x);
    case RO_OP_LOG: return ro_log(x);
    case RO_OP_SQRT: return ro_sqrt(x);
    case RO_OP_RSQRT: return ro_rsqrt(x);
    case RO_OP_TANH: return ro_tanh(x);
    case RO_OP_ERF: return ro_erf(x);
    case RO_OP_SIGMOID: return ro_sigmoid(x);
    case RO_OP_SILU: return ro_silu(x);
    case RO_OP_GELU_ERF: return ro_gelu_erf(x);
    default: return no_such_operator();
    }
}

uint32_t ro_ref_function(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return result(function_of(call->op, loadf(in, 0, e)));
}

static float slope_of(int op, float x) {
    switch (op) {
    case RO_OP_TANH_GRAD: return ro_tanh_slope(x);
    case RO_OP_ERF_GRAD: return ro_erf_slope(x);
    case RO_OP_SIGMOID_GRAD: return ro_sigmoid_slope(x);
    case RO_OP_SILU_GRAD: return ro_silu_slope(x);
    case RO_OP_GELU_ERF_GRAD: return ro_gelu_erf_slope(x);
    default: return no_such_operator();
    }
}

uint32_t ro_ref_slope(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return result(loadf(in, 1, e) * slope_of(call->op, loadf(in, 0, e)));
}

uint32_t ro_ref_div_const(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return result(loadf(in, 0, e) / attrf(call, RO_DIV_CONST_DIVISOR));
}

uint32_t ro_ref_gelu(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc;
    return result(ro_gelu(loadf(in, 0, e)));
}

uint32_t ro_ref_gelu_grad(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc;
    return result(loadf(in, 1, e) * ro_gelu_slope(loadf(in, 0, e)));
}

uint32_t ro_ref_relu(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc;
    float x = loadf(in, 0, e);
    return x > 0 ? ro_to_bits(x) : x != x ? RO_QNAN_BITS : 0;
}

uint32_t ro_ref_relu_grad(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc;
    float x = loadf(in, 0, e);
    uint32_t dy = load(in, 1, e);
    return x > 0 ? dy : x != x ? RO_QNAN_BITS : 0;
}

uint32_t ro_ref_compare(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    const int64_t kind = call->attr[RO_COMPARE_KIND];
    uint32_t a = load(in, 0, e), b = load(in, 1, e % numel(call, 1));
    return call->input[0].dtype == RO_F32 ? RO_HOLDS(kind, ro_from_bits(a), ro_from_bits(b))
                                          : RO_HOLDS(kind, (int32_t)a, (int32_t)b);
}

uint32_t ro_ref_where(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc;
    uint32_t c = load(in, 0, e), a = load(in, 1, e), b = load(in, 2, e);
    return c ? a : b;
}

uint32_t ro_ref_iadd(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return load(in, 0, e) + load(in, 1, e % numel(call, 1));
}

uint32_t ro_ref_leaky_relu(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float x = loadf(in, 0, e);
    return result(x > 0 ? x : x * attrf(call, RO_LEAKY_SLOPE));
}

uint32_t ro_ref_leaky_relu_grad(const ro_call *call, int64_t e, const ro_acc *acc,
                                const ro_access *in) {
    (void)acc;
    float x = loadf(in, 0, e), dy = loadf(in, 1, e);
    return x != x ? RO_QNAN_BITS : result(x > 0 ? dy : dy * attrf(call, RO_LEAKY_SLOPE));
}

uint32_t ro_ref_dropout(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    uint32_t word[4];
    (void)acc;
    float x = loadf(in, 0, e);
    ro_philox_block((uint64_t)call->attr[RO_DROPOUT_SEED], (uint64_t)e / 4, load(in, 1, 0),
                    (uint32_t)call->attr[RO_DROPOUT_STREAM], word);
    return word[e % 4] >= (uint32_t)call->attr[RO_DROPOUT_THRESHOLD]
               ? result(x * attrf(call, RO_DROPOUT_SCALE))
               : 0;
}

/* A block of Philox rounds eight elements, each by half a word, the lower half first. */
uint32_t ro_ref_cast_stochastic(const ro_call *call, int64_t e, const ro_acc *acc,
                                const ro_access *in) {
    uint32_t word[4];
    (void)acc;
    const float x = loadf(in, 0, e);
    ro_philox_block((uint64_t)call->attr[RO_CAST_STOCHASTIC_SEED], (uint64_t)e / 8, load(in, 1, 0),
                    (uint32_t)call->attr[RO_CAST_STOCHASTIC_STREAM], word);
    return ro_to_bf16_at_random(x, word[e / 2 % 4] >> 16 * (e % 2) & 0xffff);
}

uint32_t ro_ref_lr_schedule(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    (void)e, (void)acc;
    return result(ro_learning_rate(call->attr, (int32_t)load(in, 0, 0)));
}

uint32_t ro_ref_bias_correction(const ro_call *call, int64_t e, const ro_acc *acc,
                                const ro_access *in) {
    (void)acc;
    float beta = attrf(call, RO_BIAS_CORRECTION_BETA);
    return result(ro_fma(beta, loadf(in, 0, e), 1.0f - beta));
}

uint32_t ro_ref_clip_scale(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return result(ro_clip_scale(loadf(in, 0, e), attrf(call, RO_CLIP_SCALE_MAX_NORM)));
}

uint32_t ro_ref_adamw_m(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float beta = attrf(call, RO_ADAMW_M_BETA), g = loadf(in, 1, e) * loadf(in, 2, 0);
    return result(ro_fma(beta, loadf(in, 0, e), (1.0f - beta) * g));
}

uint32_t ro_ref_adamw_v(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float beta = attrf(call, RO_ADAMW_V_BETA), g = loadf(in, 1, e) * loadf(in, 2, 0);
    return result(ro_fma(beta, loadf(in, 0, e), (1.0f - beta) * (g * g)));
}

uint32_t ro_ref_adamw_w(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    ro_adamw_scalars s = {1.0f / loadf(in, 3, 0), 1.0f / loadf(in, 4, 0), loadf(in, 5, 0),
                          attrf(call, RO_ADAMW_W_EPS), attrf(call, RO_ADAMW_W_DECAY)};
    return result(ro_adamw_w(loadf(in, 0, e), loadf(in, 1, e), loadf(in, 2, e), s));
}

/* The gradient as clipped, with the decay of the weights in it. */
static float sgd_direction(const ro_call *call, float w, float g, float clip) {
    return ro_fma(attrf(call, RO_SGD_DECAY), w, g * clip);
}

uint32_t ro_ref_sgd_m(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float d = sgd_direction(call, loadf(in, 2, e), loadf(in, 1, e), loadf(in, 3, 0));
    return result(ro_fma(attrf(call, RO_SGD_M_MOMENTUM), loadf(in, 0, e), d));
}

uint32_t ro_ref_sgd_w(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)acc;
    return result(ro_fma(-loadf(in, 2, 0), loadf(in, 1, e), loadf(in, 0, e)));
}

uint32_t ro_ref_sgd_nesterov(const ro_call *call, int64_t e, const ro_acc *acc,
                             const ro_access *in) {
    (void)acc;
    float w = loadf(in, 0, e);
    float d = sgd_direction(call, w, loadf(in, 2, e), loadf(in, 3, 0));
    return result(ro_fma(-loadf(in, 4, 0),
                         ro_fma(attrf(call, RO_SGD_NESTEROV_MOMENTUM), loadf(in, 1, e), d), w));
}
