/* ro_sgd: checks, and its operators one by one where a backend has nothing better. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"

/* m first: w may be overwritten. */
static ro_status by_operators(ro_ctx *ctx, const ro_sgd_job *j) {
    const ro_sgd_step *s = &j->step;
    const ro_shape all = {RO_F32, 1, {s->count}}, one = {RO_F32, 1, {1}};
    const ro_shape in_m[] = {all, all, all, one}, in_w[] = {all, all, one};
    const ro_shape in_nesterov[] = {all, all, all, one, one};
    const int64_t momentum = ro_attr_f32(s->momentum), decay = ro_attr_f32(s->decay);
    const ro_call m = {RO_OP_SGD_M, 4, {momentum, decay}, in_m, all};
    const ro_call w = {RO_OP_SGD_W, 3, {0}, in_w, all};
    const ro_call nesterov = {RO_OP_SGD_NESTEROV, 5, {momentum, decay}, in_nesterov, all};
    const ro_status status =
        ro_run(ctx, &m, (const void *[]){j->m, j->gradient, j->w, s->clip}, j->m_out);
    if (status != RO_OK)
        return status;
    if (!s->nesterov)
        return ro_run(ctx, &w, (const void *[]){j->w, j->m_out, s->rate}, j->w_out);
    return ro_run(ctx, &nesterov, (const void *[]){j->w, j->m_out, j->gradient, s->clip, s->rate},
                  j->w_out);
}

ro_status ro_sgd(ro_ctx *ctx, const ro_sgd_step *step, const float *w, const float *m,
                 const float *gradient, float *w_out, float *m_out) {
    const ro_sgd_job job = {*step, w, m, gradient, w_out, m_out};
    if (step->count < 0 || step->count > RO_MAX_NUMEL)
        return ro_fail(ctx, RO_ERR_ARG, "sgd: count must be 0..2^40, got %lld",
                       (long long)step->count);
    if (!ro_ctx_table(ctx)->sgd)
        return by_operators(ctx, &job);
    const ro_fpenv env = ro_fpenv_enter();
    const ro_status status = ro_ctx_table(ctx)->sgd(ctx, &job);
    ro_fpenv_leave(env);
    return status;
}
