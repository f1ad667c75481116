/* ro_adamw: checks, and its operators one by one where a backend has nothing better. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"

static ro_status run_one(ro_ctx *ctx, int op, float first, float second, const ro_shape *in,
                         int inputs, const void *const *data, float *out) {
    ro_call call = {op, inputs, {ro_attr_f32(first), 0}, in, in[0]};
    if (op == RO_OP_ADAMW_W)
        call.attr[1] = ro_attr_f32(second);
    return ro_run(ctx, &call, data, out);
}

static ro_status one_by_one(ro_ctx *ctx, const ro_adamw_job *j) {
    const ro_adamw_step *s = j->step;
    const ro_shape all = {RO_F32, 1, {s->count}}, one = {RO_F32, 1, {1}};
    const ro_shape in[] = {all, all, one}, in_w[] = {all, all, all, one, one, one};
    const void *m[] = {j->m, j->gradient, s->clip}, *v[] = {j->v, j->gradient, s->clip};
    const void *w[] = {j->w, j->m_out, j->v_out, s->c1, s->c2, s->rate};
    ro_status status = run_one(ctx, RO_OP_ADAMW_M, s->beta1, 0, in, 3, m, j->m_out);
    if (status == RO_OK)
        status = run_one(ctx, RO_OP_ADAMW_V, s->beta2, 0, in, 3, v, j->v_out);
    if (status == RO_OK)
        status = run_one(ctx, RO_OP_ADAMW_W, s->eps, s->decay, in_w, 6, w, j->w_out);
    return status;
}

ro_status ro_adamw(ro_ctx *ctx, const ro_adamw_step *step, const float *w, const float *m,
                   const float *v, const float *gradient, float *w_out, float *m_out,
                   float *v_out) {
    const ro_adamw_job job = {step, w, m, v, gradient, w_out, m_out, v_out};
    if (step->count < 0 || step->count > RO_MAX_NUMEL)
        return ro_fail(ctx, RO_ERR_ARG, "adamw: count must be 0..2^40, got %lld",
                       (long long)step->count);
    if (!ro_ctx_table(ctx)->adamw)
        return one_by_one(ctx, &job);
    const ro_fpenv env = ro_fpenv_enter();
    ro_ctx_table(ctx)->adamw(ctx, &job);
    ro_fpenv_leave(env);
    return RO_OK;
}
