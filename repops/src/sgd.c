/* ro_sgd: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"

ro_status ro_sgd(ro_ctx *ctx, const ro_sgd_step *step, const float *w, const float *m,
                 const float *gradient, float *w_out, float *m_out) {
    const ro_sgd_job job = {*step, w, m, gradient, w_out, m_out};
    if (step->count < 0 || step->count > RO_MAX_NUMEL)
        return ro_fail(ctx, RO_ERR_ARG, "sgd: count must be 0..2^40, got %lld",
                       (long long)step->count);
    const ro_fpenv env = ro_fpenv_enter();
    const ro_status status = ro_ctx_table(ctx)->sgd(ctx, &job);
    ro_fpenv_leave(env);
    return status;
}
