/* AdamW of parameters, m and v that are stored as bf16, SPEC.md section 9. They are widened to f32
 * piece by piece, in a buffer that stays in cache. */
#include "repops/cpu/elements/adamw.h"
#include "repops/cpu/elements/stochastic.h"

enum { NUMBERS = STOCHASTIC_MOST };

static void widen(const uint16_t *restrict x, int64_t count, float *restrict out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = ro_from_bf16(x[i]);
}

/* Steps `count` elements from `first` on, a multiple of 8; count is at most NUMBERS. */
static void step_numbers(const ro_adamw_bf16_job *j, int64_t first, int64_t count) {
    const ro_adamw_step *s = &j->step;
    const ro_adamw_rounding *r = &j->rounding;
    const uint16_t *const from[] = {j->w + first, j->m + first, j->v + first};
    uint16_t *const to[] = {j->w_out + first, j->m_out + first, j->v_out + first};
    float x[3][NUMBERS];
    for (int i = 0; i < 3; i++)
        widen(from[i], count, x[i]);
    const ro_adamw_job wide = {s->count,
                               s->beta1,
                               s->beta2,
                               s->eps,
                               s->decay,
                               s->clip,
                               s->c1,
                               s->c2,
                               s->rate,
                               x[0],
                               x[1],
                               x[2],
                               j->gradient + first,
                               x[0],
                               x[1],
                               x[2]};
    adamw_elements(&wide, 0, count);
    for (int i = 0; i < 3; i++) {
        const philox source = {r->seed, *(const uint32_t *)r->step, r->stream[i]};
        stochastic_bf16(source, first, count, x[i], to[i]);
    }
}

static void step_range(void *user, int64_t first, int64_t last, int worker) {
    (void)worker;
    for (int64_t e = first; e < last; e += NUMBERS)
        step_numbers(user, e, min_i64(NUMBERS, last - e));
}

static ro_status adamw_bf16(ro_ctx *ctx, const ro_adamw_bf16_job *job) {
    const int64_t elements = job->step.count;
    ro_pool_for(ro_ctx_pool(ctx), elements, piece_of(ctx, elements), step_range,
                (void *)(uintptr_t)job);
    return RO_OK;
}
RO_FUSED(adamw_bf16, adamw_bf16)
