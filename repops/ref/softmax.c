/* Softmax and its logarithm, SPEC.md section 7.2; RMS norm, 7.3. */
#include "repops/ref/ref.h"
#include "repops/op_softmax.h"

static int64_t row_of(const ro_call *call, int64_t e) {
    return e / last_dim(&call->input[0]);
}

static uint32_t softmax(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    int64_t r = row_of(call, e);
    return result(ro_exp(loadf(in, 0, e) - loadf(in, 1, r)) * (1.0f / loadf(in, 2, r)));
}
RO_REFERENCE(softmax, .finish = softmax)

static uint32_t softmax_grad(const ro_call *call, int64_t e, const ro_acc *acc,
                             const ro_access *in) {
    (void)acc;
    return result(loadf(in, 0, e) * (loadf(in, 1, e) - loadf(in, 2, row_of(call, e))));
}
RO_REFERENCE(softmax_grad, .finish = softmax_grad)

static uint32_t log_softmax(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    (void)acc;
    int64_t r = row_of(call, e);
    return result((loadf(in, 0, e) - loadf(in, 1, r)) - ro_log(loadf(in, 2, r)));
}
RO_REFERENCE(log_softmax, .finish = log_softmax)

static uint32_t log_softmax_grad(const ro_call *call, int64_t e, const ro_acc *acc,
                                 const ro_access *in) {
    (void)acc;
    float p = ro_exp(loadf(in, 0, e));
    return result(ro_fma(-p, loadf(in, 2, row_of(call, e)), loadf(in, 1, e)));
}
RO_REFERENCE(log_softmax_grad, .finish = log_softmax_grad)

static uint32_t kept(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return result((int32_t)load(in, 0, e) == call->attr[RO_KEPT_IGNORE] ? 0.0f : 1.0f);
}
RO_REFERENCE(kept, .finish = kept)

/* ---- RMS norm ---- */

static uint32_t rmsnorm(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float xh = loadf(in, 0, e) * loadf(in, 1, row_of(call, e));
    return result(xh * loadf(in, 2, e % last_dim(&call->input[0])));
}
RO_REFERENCE(rmsnorm, .finish = rmsnorm)

static uint32_t rms_dx(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    int64_t cols = last_dim(&call->input[0]), r = e / cols;
    float rstd = loadf(in, 3, r), xh = loadf(in, 2, e) * rstd;
    float g = loadf(in, 0, e) * loadf(in, 1, e % cols);
    return result(rstd * ro_fma(-xh, loadf(in, 4, r) / (float)cols, g));
}
RO_REFERENCE(rms_dx, .finish = rms_dx)
