/* ro_adamw and ro_adamw_all: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"

ro_status ro_adamw_all(ro_ctx *ctx, int64_t count, const ro_adamw_parameter *parameter) {
    for (int64_t i = 0; i < count; i++)
        if (parameter[i].step.count < 0 || parameter[i].step.count > RO_MAX_NUMEL)
            return ro_fail(ctx, RO_ERR_ARG, "adamw: count must be 0..2^40, got %lld",
                           (long long)parameter[i].step.count);
    const ro_fpenv env = ro_fpenv_enter();
    const ro_status status = ro_ctx_table(ctx)->adamw(ctx, count, parameter);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_adamw(ro_ctx *ctx, const ro_adamw_step *step, const float *w, const float *m,
                   const float *v, const float *gradient, float *w_out, float *m_out,
                   float *v_out) {
    const ro_adamw_parameter one = {*step, w, m, v, gradient, w_out, m_out, v_out};
    return ro_adamw_all(ctx, 1, &one);
}
