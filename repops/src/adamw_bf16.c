/* ro_adamw_bf16: checks. */
#include "repops/src/layers.h"

#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/sized.h"

static ro_pieces halves(const void *at, int64_t count) {
    return (ro_pieces){at, 1, count * 2, count * 2};
}

static ro_status check(ro_ctx *ctx, const ro_adamw_bf16_job *p) {
    const int64_t n = p->step.count, one = n > 0;
    if (n < 0 || n > RO_MAX_NUMEL)
        return ro_fail(ctx, RO_ERR_ARG, "adamw_bf16: count must be 0..2^40, got %lld",
                       (long long)n);
    const ro_operand operands[] = {{"w", halves(p->w, n), RO_READ},
                                   {"m", halves(p->m, n), RO_READ},
                                   {"v", halves(p->v, n), RO_READ},
                                   {"gradient", ro_words(p->gradient, n), RO_READ},
                                   {"clip", ro_words(p->step.clip, one), RO_READ},
                                   {"c1", ro_words(p->step.c1, one), RO_READ},
                                   {"c2", ro_words(p->step.c2, one), RO_READ},
                                   {"rate", ro_words(p->step.rate, one), RO_READ},
                                   {"step", ro_words(p->rounding.step, one), RO_READ},
                                   {"w_out", halves(p->w_out, n), RO_WRITTEN, 1 << 0},
                                   {"m_out", halves(p->m_out, n), RO_WRITTEN, 1 << 1},
                                   {"v_out", halves(p->v_out, n), RO_WRITTEN, 1 << 2}};
    return ro_check_operands(ctx, "adamw_bf16", operands, sizeof operands / sizeof operands[0]);
}

static ro_status run(ro_ctx *ctx, const ro_adamw_bf16_job *job) {
    const ro_fpenv env = ro_fpenv_enter();
    const ro_status status = ro_ctx_table(ctx)->adamw_bf16(ctx, job);
    ro_fpenv_leave(env);
    return status;
}

static ro_status take(ro_ctx *ctx, const ro_adamw_bf16_parameter *given, ro_adamw_bf16_job *job) {
    ro_adamw_bf16_parameter p;
    ro_status status = ro_take(ctx, &ro_sized_adamw_bf16_parameter, given, &p);
    if (status != RO_OK)
        return status;
    if (!p.step || !p.rounding)
        return ro_missing(ctx, "adamw_bf16", p.step ? "rounding" : "step");
    *job = (ro_adamw_bf16_job){.w = p.w,
                               .m = p.m,
                               .v = p.v,
                               .gradient = p.gradient,
                               .w_out = p.w_out,
                               .m_out = p.m_out,
                               .v_out = p.v_out};
    status = ro_take(ctx, &ro_sized_adamw_step, p.step, &job->step);
    return status == RO_OK ? ro_take(ctx, &ro_sized_adamw_rounding, p.rounding, &job->rounding)
                           : status;
}

ro_status ro_adamw_bf16(ro_ctx *ctx, const ro_adamw_bf16_parameter *parameter) {
    ro_adamw_bf16_job job;
    if (!ctx || !parameter)
        return ro_missing(ctx, "adamw_bf16", ctx ? "parameter" : "ctx");
    ro_status status = take(ctx, parameter, &job);
    if (status == RO_OK)
        status = check(ctx, &job);
    return status == RO_OK && job.step.count > 0 ? run(ctx, &job) : status;
}
