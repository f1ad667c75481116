/* Functions of one element of each input, with bounds. SPEC.md sections 6 and 9. */
#include "repops/free/activations.h"
#include "repops/free/norms.h"
#include "repops/free/updates.h"
#include "repops/ref/bounded.h"
#include "repops/op_elementwise.h"
#include "repops/op_image.h"
#include "repops/op_optimizer.h"

/* ---- one operation ---- */

/* A correctly rounded operator has the same value in every profile, and counts as exact (SPEC
 * 14.3). */
#define ARITHMETIC(name, expression)                                                               \
    static approx name##_exact(const ro_call *call, int64_t e, const ro_access *in) {              \
        const real a = (real)loadf(in, 0, e), b = (real)loadf(in, 1, e % numel(call, 1));          \
        return ap_exact(expression);                                                               \
    }                                                                                              \
    RO_BOUNDED(name, .element = name##_exact)
ARITHMETIC(add, a + b)
ARITHMETIC(sub, a - b)
ARITHMETIC(mul, (a * b))
ARITHMETIC(div, a / b)
#undef ARITHMETIC

static approx div_const(const ro_call *call, int64_t e, const ro_access *in) {
    return ap_exact((real)loadf(in, 0, e) / (real)attrf(call, RO_DIV_CONST_DIVISOR));
}
RO_BOUNDED(div_const, .element = div_const)

static approx scale(const ro_call *call, int64_t e, const ro_access *in) {
    return ap_exact((real)loadf(in, 0, e) * (real)attrf(call, RO_SCALE_FACTOR));
}
RO_BOUNDED(scale, .element = scale)

static approx square_root(const ro_call *call, int64_t e, const ro_access *in) {
    (void)call;
    return ap_exact(ap_sqrt_of((real)loadf(in, 0, e)));
}
RO_BOUNDED(sqrt, .element = square_root)

/* ---- formulas ---- */

/* Evaluates a formula for element e of the first `tensors` inputs. */
static approx at_element(formula *f, int64_t e, const ro_access *in, int tensors, operands o) {
    float x[3] = {0, 0, 0};
    for (int i = 0; i < tensors; i++)
        x[i] = loadf(in, i, e);
    o.a = &x[0], o.b = &x[1], o.c = &x[2];
    return f(o, 0, ro_plain);
}

/* Defines the operator `name` by the formula name_of, for element e of each input. */
#define FUNCTION(name)                                                                             \
    static approx name##_bounded(const ro_call *call, int64_t e, const ro_access *in) {            \
        return at_element(name##_of, e, in, call->input_count, (operands){0});                     \
    }                                                                                              \
    RO_BOUNDED(name, .element = name##_bounded)
FUNCTION(rsqrt)
FUNCTION(exp)
FUNCTION(log)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(sigmoid)
FUNCTION(silu)
FUNCTION(gelu)
FUNCTION(gelu_erf)
FUNCTION(tanh_grad)
FUNCTION(sigmoid_grad)
FUNCTION(erf_grad)
FUNCTION(silu_grad)
FUNCTION(gelu_grad)
FUNCTION(gelu_erf_grad)
#undef FUNCTION

static approx bn_running(const ro_call *call, int64_t e, const ro_access *in) {
    return at_element(bn_running_of, e, in, 2,
                      (operands){.p = attr_at(call, RO_BN_RUNNING_MOMENTUM),
                                 .q = attr_at(call, RO_BN_RUNNING_DIVISOR)});
}
RO_BOUNDED(bn_running, .element = bn_running)

static approx moment(formula *f, const ro_call *call, int64_t e, const ro_access *in) {
    const approx beta = attr_at(call, RO_MOMENT_BETA);
    operands o = {.p = input_at(in, 2, 0), .q = beta, .r = ap_sub(ap_exact(1), beta)};
    return at_element(f, e, in, 2, o);
}

static approx adamw_m(const ro_call *call, int64_t e, const ro_access *in) {
    return moment(adamw_m_of, call, e, in);
}
RO_BOUNDED(adamw_m, .element = adamw_m)

static approx adamw_v(const ro_call *call, int64_t e, const ro_access *in) {
    return moment(adamw_v_of, call, e, in);
}
RO_BOUNDED(adamw_v, .element = adamw_v)

static approx adamw_w(const ro_call *call, int64_t e, const ro_access *in) {
    operands o = {.p = input_at(in, 3, 0),
                  .q = input_at(in, 4, 0),
                  .r = ap_negative(input_at(in, 5, 0)),
                  .s = attr_at(call, RO_ADAMW_W_EPS),
                  .t = attr_at(call, RO_ADAMW_W_DECAY)};
    return at_element(adamw_w_of, e, in, 3, o);
}
RO_BOUNDED(adamw_w, .element = adamw_w)

static operands sgd_operands(const ro_call *call, const ro_access *in) {
    return (operands){.p = input_at(in, 3, 0),
                      .q = attr_at(call, RO_SGD_MOMENTUM),
                      .r = attr_at(call, RO_SGD_DECAY)};
}

static approx sgd_m(const ro_call *call, int64_t e, const ro_access *in) {
    return at_element(sgd_m_of, e, in, 3, sgd_operands(call, in));
}
RO_BOUNDED(sgd_m, .element = sgd_m)

static approx sgd_w(const ro_call *call, int64_t e, const ro_access *in) {
    (void)call;
    return at_element(sgd_w_of, e, in, 2, (operands){.s = ap_negative(input_at(in, 2, 0))});
}
RO_BOUNDED(sgd_w, .element = sgd_w)

static approx sgd_nesterov(const ro_call *call, int64_t e, const ro_access *in) {
    operands o = sgd_operands(call, in);
    o.s = ap_negative(input_at(in, 4, 0));
    return at_element(sgd_nesterov_of, e, in, 3, o);
}
RO_BOUNDED(sgd_nesterov, .element = sgd_nesterov)

/* The cosine and sine are those of SPEC 13; only the turn is computed with bounds. */
static approx rope(const ro_call *call, int64_t e, const ro_access *in) {
    const ro_ref_turn t = ro_ref_turn_of(call, e, in);
    const approx product = ap_mul(input_at(in, 0, t.other), ap_exact((real)t.sine));
    return ap_mul_add(input_at(in, 0, e), ap_exact((real)t.cosine),
                      t.second ? product : ap_negative(product), ro_plain);
}
RO_BOUNDED(rope, .element = rope)
