/* Softmax and its logarithm, SPEC.md section 7.2; RMS norm, 7.3. */
#include "repops/ref/ref.h"

static int64_t row_of(const ro_call *call, int64_t e) {
    return e / last_dim(&call->input[0]);
}

uint32_t ro_ref_softmax(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    int64_t r = row_of(call, e);
    return result(ro_exp(loadf(in, 0, e) - loadf(in, 1, r)) * (1.0f / loadf(in, 2, r)));
}

uint32_t ro_ref_softmax_grad(const ro_call *call, int64_t e, const ro_acc *acc,
                             const ro_access *in) {
    (void)acc;
    return result(loadf(in, 0, e) * (loadf(in, 1, e) - loadf(in, 2, row_of(call, e))));
}

uint32_t ro_ref_log_softmax(const ro_call *call, int64_t e, const ro_acc *acc,
                            const ro_access *in) {
    (void)acc;
    int64_t r = row_of(call, e);
    return result((loadf(in, 0, e) - loadf(in, 1, r)) - ro_log(loadf(in, 2, r)));
}

uint32_t ro_ref_log_softmax_grad(const ro_call *call, int64_t e, const ro_acc *acc,
                                 const ro_access *in) {
    (void)acc;
    float p = ro_exp(loadf(in, 0, e));
    return result(ro_fma(-p, loadf(in, 2, row_of(call, e)), loadf(in, 1, e)));
}

uint32_t ro_ref_kept(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return result((int32_t)load(in, 0, e) == call->attr[RO_KEPT_IGNORE] ? 0.0f : 1.0f);
}

/* ---- RMS norm ---- */

uint32_t ro_ref_rmsnorm(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float xh = loadf(in, 0, e) * loadf(in, 1, row_of(call, e));
    return result(xh * loadf(in, 2, e % last_dim(&call->input[0])));
}

uint32_t ro_ref_rms_dx(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    int64_t cols = last_dim(&call->input[0]), r = e / cols;
    float rstd = loadf(in, 3, r), xh = loadf(in, 2, e) * rstd;
    float g = loadf(in, 0, e) * loadf(in, 1, e % cols);
    return result(rstd * ro_fma(-xh, loadf(in, 4, r) / (float)cols, g));
}
