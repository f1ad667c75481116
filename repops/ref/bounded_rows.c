/* Norms, softmax and cross-entropy with bounds: elements of rows. SPEC.md section 7. */
#include "repops/free/norms.h"
#include "repops/free/probabilities.h"
#include "repops/ref/bounded.h"
#include "repops/op_norm.h"

/* ---- norms ---- */

static approx ln_rstd(const ro_call *call, int64_t e, const ro_access *in) {
    const float ss = loadf(in, 0, e);
    const operands o = {.a = &ss,
                        .p = ap_exact((real)call->attr[RO_LN_RSTD_N]),
                        .q = attr_at(call, RO_LN_RSTD_EPS)};
    return ln_rstd_of(o, 0, ro_plain);
}
RO_BOUNDED(ln_rstd, .element = ln_rstd)

static approx layernorm(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t cols = last_dim(&call->input[0]), r = e / cols, c = e % cols;
    const float x = loadf(in, 0, e), gamma = loadf(in, 3, c), beta = loadf(in, 4, c);
    const operands o = {
        .a = &x, .b = &gamma, .c = &beta, .p = input_at(in, 1, r), .q = input_at(in, 2, r)};
    return layernorm_of(o, 0, ro_plain);
}
RO_BOUNDED(layernorm, .element = layernorm)

static approx ln_dx(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t cols = last_dim(&call->input[0]), r = e / cols;
    const float dy = loadf(in, 0, e), gamma = loadf(in, 1, e % cols), x = loadf(in, 2, e);
    const operands o = {.a = &dy,
                        .b = &gamma,
                        .c = &x,
                        .p = input_at(in, 3, r),
                        .q = input_at(in, 4, r),
                        .r = ap_div_exact(input_at(in, 5, r), (real)cols),
                        .s = ap_div_exact(input_at(in, 6, r), (real)cols)};
    return ln_dx_of(o, 0, ro_plain);
}
RO_BOUNDED(ln_dx, .element = ln_dx)

static approx rms_dx(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t cols = last_dim(&call->input[0]), r = e / cols;
    const float dy = loadf(in, 0, e), gamma = loadf(in, 1, e % cols), x = loadf(in, 2, e);
    const operands o = {.a = &dy,
                        .b = &gamma,
                        .c = &x,
                        .q = input_at(in, 3, r),
                        .s = ap_div_exact(input_at(in, 4, r), (real)cols)};
    return rms_dx_of(o, 0, ro_plain);
}
RO_BOUNDED(rms_dx, .element = rms_dx)

static approx rmsnorm(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t cols = last_dim(&call->input[0]);
    const float x = loadf(in, 0, e), gamma = loadf(in, 2, e % cols);
    const operands o = {.a = &x, .b = &gamma, .q = input_at(in, 1, e / cols)};
    return rmsnorm_of(o, 0, ro_plain);
}
RO_BOUNDED(rmsnorm, .element = rmsnorm)

/* ---- softmax ---- */

static approx softmax(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t r = e / last_dim(&call->input[0]);
    const float x = loadf(in, 0, e);
    const operands o = {.a = &x, .p = input_at(in, 1, r), .q = inverse(input_at(in, 2, r))};
    return softmax_of(o, 0, ro_plain);
}
RO_BOUNDED(softmax, .element = softmax)

static approx log_softmax(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t r = e / last_dim(&call->input[0]);
    const float x = loadf(in, 0, e);
    const operands o = {
        .a = &x, .p = input_at(in, 1, r), .q = log_at(input_at(in, 2, r), ro_plain)};
    return log_softmax_of(o, 0, ro_plain);
}
RO_BOUNDED(log_softmax, .element = log_softmax)

/* Computes both gradients, whose inputs are (y, dy, a sum of the row). */
static approx gradient(formula *f, const ro_call *call, int64_t e, const ro_access *in) {
    const float y = loadf(in, 0, e), dy = loadf(in, 1, e);
    const operands o = {.a = &y, .b = &dy, .p = input_at(in, 2, e / last_dim(&call->input[0]))};
    return f(o, 0, ro_plain);
}

static approx softmax_grad(const ro_call *call, int64_t e, const ro_access *in) {
    return gradient(softmax_grad_of, call, e, in);
}
RO_BOUNDED(softmax_grad, .element = softmax_grad)

static approx log_softmax_grad(const ro_call *call, int64_t e, const ro_access *in) {
    return gradient(log_softmax_grad_of, call, e, in);
}
RO_BOUNDED(log_softmax_grad, .element = log_softmax_grad)

/* ---- cross-entropy ---- */

static approx xent(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t vocab = last_dim(&call->input[0]);
    const int32_t id = (int32_t)load(in, 3, e);
    if (ro_ref_ignored(call, id))
        return ap_exact(0);
    if (id < 0 || id >= vocab)
        return ap_exact(REAL_NAN);
    return xent_of(input_at(in, 0, e * vocab + id), input_at(in, 1, e), input_at(in, 2, e),
                   ro_plain);
}
RO_BOUNDED(xent, .element = xent)
RO_BOUNDED(xent_ignore, .element = xent)

static approx xent_grad(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t vocab = last_dim(&call->input[0]), r = e / vocab;
    const int32_t id = (int32_t)load(in, 3, r);
    if (ro_ref_ignored(call, id))
        return ap_exact(0);
    const float x = loadf(in, 0, e);
    const operands o = {.a = &x,
                        .p = input_at(in, 1, r),
                        .q = inverse(input_at(in, 2, r)),
                        .r = input_at(in, 4, r)};
    return id == e % vocab ? xent_grad_hit(o, 0, ro_plain) : xent_grad_of(o, 0, ro_plain);
}
RO_BOUNDED(xent_grad, .element = xent_grad)
RO_BOUNDED(xent_ignore_grad, .element = xent_grad)
