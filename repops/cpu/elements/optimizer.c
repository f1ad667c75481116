/* Operators of optimizers, SPEC.md section 9. */
#include "repops/cpu/elements/adamw.h"
#include "repops/op_optimizer.h"

/* ---- learning rate ---- */

typedef struct {
    int64_t kind, warmup, total;
    float base, least;
} schedule;

static float decayed(const schedule *s, int64_t step) {
    const int64_t done = step - s->warmup, all = s->total - s->warmup;
    if (s->kind == RO_LR_CONSTANT)
        return s->base;
    if (step >= s->total)
        return s->least;
    if (s->kind == RO_LR_LINEAR)
        return ro_fma(s->least - s->base, (float)done / (float)all, s->base);
    const uint32_t turn = (uint32_t)((done << 23) / all);
    return ro_fma(s->base - s->least, 0.5f * (1.0f + ro_cos_turn(turn)), s->least);
}

static void lr_schedule(const ro_job *job, int64_t first, int64_t last) {
    const int64_t *attr = job->call->attr, step = *(const int32_t *)job->in[0];
    const schedule s = {attr[RO_LR_SCHEDULE_KIND], attr[RO_LR_SCHEDULE_WARMUP],
                        attr[RO_LR_SCHEDULE_TOTAL], attr_f32(job, RO_LR_SCHEDULE_BASE),
                        attr_f32(job, RO_LR_SCHEDULE_MIN)};
    float value = 0.0f;
    if (step >= 0 && step < s.warmup)
        value = s.base * ((float)(step + 1) / (float)s.warmup);
    else if (step >= 0)
        value = decayed(&s, step);
    for (int64_t i = first; i < last; i++)
        ((float *)job->out)[i] = ro_canon(value);
}
RO_KERNEL(lr_schedule, .range = lr_schedule)

/* ---- scalars ---- */

static void bias_correction(const ro_job *job, int64_t first, int64_t last) {
    const float *c = job->in[0], beta = attr_f32(job, RO_BIAS_CORRECTION_BETA);
    for (int64_t i = first; i < last; i++)
        ((float *)job->out)[i] = ro_canon(ro_fma(beta, c[i], 1.0f - beta));
}
RO_KERNEL(bias_correction, .range = bias_correction)

static void clip_scale(const ro_job *job, int64_t first, int64_t last) {
    const float *sumsq = job->in[0], most = attr_f32(job, RO_CLIP_SCALE_MAX_NORM);
    for (int64_t i = first; i < last; i++)
        ((float *)job->out)[i] = ro_clip_scale(sumsq[i], most);
}
RO_KERNEL(clip_scale, .range = clip_scale)

/* ---- AdamW ---- */

static void adamw_m(const ro_job *job, int64_t first, int64_t last) {
    const float *m = (const float *)job->in[0] + first;
    const float *g = (const float *)job->in[1] + first;
    float *out = (float *)job->out + first;
    const float clip = *(const float *)job->in[2], beta = attr_f32(job, RO_ADAMW_M_BETA),
                rest = 1.0f - beta;
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++)
        out[i] = next_m(m[i], g[i] * clip, beta, rest);
}
RO_KERNEL(adamw_m, .range = adamw_m)

static void adamw_v(const ro_job *job, int64_t first, int64_t last) {
    const float *v = (const float *)job->in[0] + first;
    const float *g = (const float *)job->in[1] + first;
    float *out = (float *)job->out + first;
    const float clip = *(const float *)job->in[2], beta = attr_f32(job, RO_ADAMW_V_BETA),
                rest = 1.0f - beta;
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++)
        out[i] = next_v(v[i], g[i] * clip, beta, rest);
}
RO_KERNEL(adamw_v, .range = adamw_v)

static void adamw_w(const ro_job *job, int64_t first, int64_t last) {
    const float *w = (const float *)job->in[0] + first;
    const float *m = (const float *)job->in[1] + first;
    const float *v = (const float *)job->in[2] + first;
    float *out = (float *)job->out + first;
    const ro_adamw_scalars p =
        scalars_of(job->in[3], job->in[4], job->in[5], attr_f32(job, RO_ADAMW_W_EPS),
                   attr_f32(job, RO_ADAMW_W_DECAY));
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++)
        out[i] = ro_adamw_w(w[i], m[i], v[i], p);
}
RO_KERNEL(adamw_w, .range = adamw_w)

static void adamw_range(void *user, int64_t first, int64_t last, int worker) {
    (void)worker;
    adamw_elements(user, first, last);
}

static ro_status adamw(ro_ctx *ctx, int64_t count, const ro_adamw_job *job) {
    for (int64_t i = 0; i < count; i++) {
        const int64_t elements = job[i].count;
        ro_pool_for(ro_ctx_pool(ctx), elements, piece_of(ctx, elements), adamw_range,
                    (void *)(uintptr_t)&job[i]);
    }
    return RO_OK;
}
RO_FUSED(adamw, adamw)

/* ---- SGD ---- */

RO_INLINE float decayed_gradient(float w, float gc, float decay) {
    return ro_fma(decay, w, gc);
}

RO_INLINE float next_sgd_w(float w, float m, float rate) {
    return ro_canon(ro_fma(-rate, m, w));
}

static void sgd_m(const ro_job *job, int64_t first, int64_t last) {
    const float *m = (const float *)job->in[0] + first;
    const float *g = (const float *)job->in[1] + first;
    const float *w = (const float *)job->in[2] + first;
    float *out = (float *)job->out + first;
    const float clip = *(const float *)job->in[3];
    const float momentum = attr_f32(job, RO_SGD_M_MOMENTUM), decay = attr_f32(job, RO_SGD_M_DECAY);
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++)
        out[i] = ro_canon(ro_fma(momentum, m[i], decayed_gradient(w[i], g[i] * clip, decay)));
}
RO_KERNEL(sgd_m, .range = sgd_m)

static void sgd_w(const ro_job *job, int64_t first, int64_t last) {
    const float *w = (const float *)job->in[0] + first;
    const float *m = (const float *)job->in[1] + first;
    float *out = (float *)job->out + first;
    const float lr = *(const float *)job->in[2];
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++)
        out[i] = next_sgd_w(w[i], m[i], lr);
}
RO_KERNEL(sgd_w, .range = sgd_w)

static void sgd_nesterov(const ro_job *job, int64_t first, int64_t last) {
    const float *w = (const float *)job->in[0] + first;
    const float *m = (const float *)job->in[1] + first;
    const float *g = (const float *)job->in[2] + first;
    float *out = (float *)job->out + first;
    const float clip = *(const float *)job->in[3], lr = *(const float *)job->in[4];
    const float momentum = attr_f32(job, RO_SGD_NESTEROV_MOMENTUM),
                decay = attr_f32(job, RO_SGD_NESTEROV_DECAY);
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++) {
        const float d = decayed_gradient(w[i], g[i] * clip, decay);
        out[i] = next_sgd_w(w[i], ro_fma(momentum, m[i], d), lr);
    }
}
RO_KERNEL(sgd_nesterov, .range = sgd_nesterov)

/* Computes w and m together; outputs may be the inputs. */
RO_INLINE void sgd_both(const ro_sgd_job *j, int64_t first, int64_t last, const int nesterov) {
    const ro_sgd_step *s = &j->step;
    const float *w = j->w + first, *m = j->m + first, *g = j->gradient + first;
    float *w_out = j->w_out + first, *m_out = j->m_out + first;
    const float clip = *s->clip, rate = *s->rate, momentum = s->momentum, decay = s->decay;
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++) {
        const float wi = w[i], d = decayed_gradient(wi, g[i] * clip, decay);
        const float mi = ro_canon(ro_fma(momentum, m[i], d));
        m_out[i] = mi;
        w_out[i] = next_sgd_w(wi, nesterov ? ro_fma(momentum, mi, d) : mi, rate);
    }
}

static void sgd_range(void *user, int64_t first, int64_t last, int worker) {
    const ro_sgd_job *j = user;
    (void)worker;
    if (j->step.nesterov)
        sgd_both(j, first, last, 1);
    else
        sgd_both(j, first, last, 0);
}

static ro_status sgd(ro_ctx *ctx, const ro_sgd_job *job) {
    const int64_t elements = job->step.count;
    ro_pool_for(ro_ctx_pool(ctx), elements, piece_of(ctx, elements), sgd_range,
                (void *)(uintptr_t)job);
    return RO_OK;
}
RO_FUSED(sgd, sgd)
