/* Functions of one element of each input, with bounds. SPEC.md sections 6 and 9. */
#include "repops/free/activations.h"
#include "repops/free/norms.h"
#include "repops/free/updates.h"
#include "repops/ref/bounded.h"

/* One correctly rounded operation, the same in every profile, counts as exact: SPEC 14.3. */
approx ro_bounded_arithmetic(const ro_call *call, int64_t e, const ro_access *in) {
    const real a = (real)loadf(in, 0, e), b = (real)loadf(in, 1, e % numel(call, 1));
    switch (call->op) {
    case RO_OP_ADD: return ap_exact(a + b);
    case RO_OP_SUB: return ap_exact(a - b);
    case RO_OP_MUL: return ap_exact(a * b);
    case RO_OP_DIV: return ap_exact(a / b);
    default: return ap_exact((real)no_such_operator());
    }
}

approx ro_bounded_single(const ro_call *call, int64_t e, const ro_access *in) {
    const real x = (real)loadf(in, 0, e);
    switch (call->op) {
    case RO_OP_DIV_CONST: return ap_exact(x / (real)attrf(call, RO_DIV_CONST_DIVISOR));
    case RO_OP_SCALE: return ap_exact(x * (real)attrf(call, RO_SCALE_FACTOR));
    case RO_OP_SQRT: return ap_exact(ap_sqrt_of(x));
    default: return ap_exact((real)no_such_operator());
    }
}

/* ---- formulas ---- */

static formula *const functions[RO_OP_END] = {
    [RO_OP_RSQRT] = rsqrt_of,
    [RO_OP_EXP] = exp_of,
    [RO_OP_LOG] = log_of,
    [RO_OP_TANH] = tanh_of,
    [RO_OP_ERF] = erf_of,
    [RO_OP_SIGMOID] = sigmoid_of,
    [RO_OP_SILU] = silu_of,
    [RO_OP_GELU] = gelu_of,
    [RO_OP_GELU_ERF] = gelu_erf_of,
    [RO_OP_TANH_GRAD] = tanh_grad_of,
    [RO_OP_SIGMOID_GRAD] = sigmoid_grad_of,
    [RO_OP_ERF_GRAD] = erf_grad_of,
    [RO_OP_SILU_GRAD] = silu_grad_of,
    [RO_OP_GELU_GRAD] = gelu_grad_of,
    [RO_OP_GELU_ERF_GRAD] = gelu_erf_grad_of,
    [RO_OP_ADAMW_M] = adamw_m_of,
    [RO_OP_ADAMW_V] = adamw_v_of,
    [RO_OP_ADAMW_W] = adamw_w_of,
    [RO_OP_SGD_M] = sgd_m_of,
    [RO_OP_SGD_W] = sgd_w_of,
    [RO_OP_SGD_NESTEROV] = sgd_nesterov_of,
    [RO_OP_BN_RUNNING] = bn_running_of,
};

/* Element e of the first `tensors` inputs. */
static approx at_element(const ro_call *call, int64_t e, const ro_access *in, int tensors,
                         operands o) {
    float x[3] = {0, 0, 0};
    for (int i = 0; i < tensors; i++)
        x[i] = loadf(in, i, e);
    o.a = &x[0], o.b = &x[1], o.c = &x[2];
    return functions[call->op](o, 0, ro_plain);
}

approx ro_bounded_function(const ro_call *call, int64_t e, const ro_access *in) {
    return at_element(call, e, in, call->input_count, (operands){0});
}

approx ro_bounded_bn_running(const ro_call *call, int64_t e, const ro_access *in) {
    return at_element(call, e, in, 2,
                      (operands){.p = attr_at(call, RO_BN_RUNNING_MOMENTUM),
                                 .q = attr_at(call, RO_BN_RUNNING_DIVISOR)});
}

approx ro_bounded_adamw(const ro_call *call, int64_t e, const ro_access *in) {
    const approx a0 = attr_at(call, RO_MOMENT_BETA);
    operands o = {.p = input_at(in, 2, 0), .q = a0, .r = ap_sub(ap_exact(1), a0)};
    return at_element(call, e, in, 2, o);
}

approx ro_bounded_adamw_w(const ro_call *call, int64_t e, const ro_access *in) {
    operands o = {.p = input_at(in, 3, 0),
                  .q = input_at(in, 4, 0),
                  .r = ap_negative(input_at(in, 5, 0)),
                  .s = attr_at(call, RO_ADAMW_W_EPS),
                  .t = attr_at(call, RO_ADAMW_W_DECAY)};
    return at_element(call, e, in, 3, o);
}

approx ro_bounded_sgd(const ro_call *call, int64_t e, const ro_access *in) {
    if (call->op == RO_OP_SGD_W)
        return at_element(call, e, in, 2, (operands){.s = ap_negative(input_at(in, 2, 0))});
    operands o = {.p = input_at(in, 3, 0),
                  .q = attr_at(call, RO_SGD_MOMENTUM),
                  .r = attr_at(call, RO_SGD_DECAY)};
    if (call->op == RO_OP_SGD_NESTEROV)
        o.s = ap_negative(input_at(in, 4, 0));
    return at_element(call, e, in, 3, o);
}

/* The turn is computed with SPEC's cosine and sine. */
approx ro_bounded_rope(const ro_call *call, int64_t e, const ro_access *in) {
    const ro_ref_turn t = ro_ref_turn_of(call, e, in);
    const approx product = ap_mul(input_at(in, 0, t.other), ap_exact((real)t.sine));
    return ap_mul_add(input_at(in, 0, e), ap_exact((real)t.cosine),
                      t.second ? product : ap_negative(product), ro_plain);
}
