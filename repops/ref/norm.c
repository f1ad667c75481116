/* Layer norm and cross-entropy, SPEC.md section 7. */
#include "repops/ref/ref.h"
#include "repops/op_norm.h"
#include "repops/op_softmax.h"

static uint32_t ln_rstd(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    return result(
        ro_rstd(loadf(in, 0, e), (float)call->attr[RO_LN_RSTD_N], attrf(call, RO_LN_RSTD_EPS)));
}
RO_REFERENCE(ln_rstd, .finish = ln_rstd)

static uint32_t layernorm(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    int64_t cols = last_dim(&call->input[0]), r = e / cols, c = e % cols;
    float xh = (loadf(in, 0, e) - loadf(in, 1, r)) * loadf(in, 2, r);
    return result(ro_fma(xh, loadf(in, 3, c), loadf(in, 4, c)));
}
RO_REFERENCE(layernorm, .finish = layernorm)

static uint32_t ln_dx(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    int64_t cols = last_dim(&call->input[0]), r = e / cols;
    float n = (float)cols, g = loadf(in, 0, e) * loadf(in, 1, e % cols);
    float rstd = loadf(in, 4, r), xh = (loadf(in, 2, e) - loadf(in, 3, r)) * rstd;
    float sg = loadf(in, 5, r), sgx = loadf(in, 6, r);
    return result(rstd * ro_fma(-xh, sgx / n, g - sg / n));
}
RO_REFERENCE(ln_dx, .finish = ln_dx)

int ro_ref_ignored(const ro_call *call, int32_t id) {
    return ro_op_describe(call->op)->attr_count > 0 && id == call->attr[RO_LABELS_IGNORE];
}

static uint32_t xent(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    int64_t vocab = last_dim(&call->input[0]);
    float m = loadf(in, 1, e), l = loadf(in, 2, e);
    int32_t id = (int32_t)load(in, 3, e);
    if (ro_ref_ignored(call, id))
        return 0;
    if (id < 0 || id >= vocab)
        return RO_QNAN_BITS;
    return result(ro_log(l) - (loadf(in, 0, e * vocab + id) - m));
}
RO_REFERENCE(xent, .finish = xent)
RO_REFERENCE(xent_ignore, .finish = xent)

static uint32_t xent_grad(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    int64_t vocab = last_dim(&call->input[0]), r = e / vocab;
    float p = ro_exp(loadf(in, 0, e) - loadf(in, 1, r)) * (1.0f / loadf(in, 2, r));
    int32_t id = (int32_t)load(in, 3, r);
    float target = id == e % vocab ? 1.0f : 0.0f, dx = (p - target) * loadf(in, 4, r);
    return ro_ref_ignored(call, id) ? 0 : result(dx);
}
RO_REFERENCE(xent_grad, .finish = xent_grad)
RO_REFERENCE(xent_ignore_grad, .finish = xent_grad)
