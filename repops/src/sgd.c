/* ro_sgd: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/operands.h"
#include "repops/src/sized.h"

static ro_status check_memory(ro_ctx *ctx, const ro_sgd_job *j) {
    const int64_t n = j->step.count, one = n > 0;
    const ro_operand operands[] = {{"w", ro_words(j->w, n), RO_READ},
                                   {"m", ro_words(j->m, n), RO_READ},
                                   {"gradient", ro_words(j->gradient, n), RO_READ},
                                   {"clip", ro_words(j->step.clip, one), RO_READ},
                                   {"rate", ro_words(j->step.rate, one), RO_READ},
                                   {"w_out", ro_words(j->w_out, n), RO_WRITTEN, 1 << 0},
                                   {"m_out", ro_words(j->m_out, n), RO_WRITTEN, 1 << 1}};
    return ro_check_operands(ctx, "sgd", operands, 7);
}

ro_status ro_sgd(ro_ctx *ctx, const ro_sgd_step *step, const float *w, const float *m,
                 const float *gradient, float *w_out, float *m_out) {
    if (!ctx || !step)
        return ro_missing(ctx, "sgd", ctx ? "step" : "ctx");
    ro_sgd_job job = {{0}, w, m, gradient, w_out, m_out};
    ro_status status = ro_take(ctx, &ro_sized_sgd_step, step, &job.step);
    if (status != RO_OK)
        return status;
    if (job.step.count < 0 || job.step.count > RO_MAX_NUMEL)
        return ro_fail(ctx, RO_ERR_ARG, "sgd: count must be 0..2^40, got %lld",
                       (long long)job.step.count);
    status = check_memory(ctx, &job);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = ro_ctx_table(ctx)->sgd(ctx, &job);
    ro_fpenv_leave(env);
    return status;
}
