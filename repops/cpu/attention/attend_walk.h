/* The walk over blocks of keys (SPEC.md section 8): adds one block after the other to the sums of
 * each row of queries, and scales them to the running maximum. */
#ifndef REPOPS_CPU_ATTEND_WALK_H
#define REPOPS_CPU_ATTEND_WALK_H

#include "repops/cpu/attention/attend.h"

/* Turns one row of scores into exponentials in place, with +0 outside r. Returns their sum. */
RO_INLINE float exponentials(float *s, ro_range r, float mc) {
    if (is_minus_infinity(mc))
        r = (ro_range){0, 0};
    map(exp_minus, (constants){.a = mc}, s, min_i64(ceil_div(r.last, 16) * 16, KB), s);
    clear(s, r.first);
    clear(s + r.last, KB - r.last);
    return lane_sum(s, RO_LANES);
}

enum { STEP_ROWS = 16 }; /* rows of a step: whole vectors, for its exponentials */

/* The sums of each row so far. */
typedef struct {
    float *o; /* rows of `size` floats, `step` apart; divided by l at the end */
    int64_t step, size;
    float *m, *l;
    uint8_t *started;
} walk;

/* One step for up to STEP_ROWS rows: the maximum mc and sum lc of the block, the factors a of the
 * sums so far and b of the block's, and the next maximum. */
typedef struct {
    float mc[STEP_ROWS], lc[STEP_ROWS], a[STEP_ROWS], b[STEP_ROWS], next[STEP_ROWS];
} step;

static void factors(const walk *w, int64_t r0, int rows, step *s) {
    float now[STEP_ROWS];
    for (int r = 0; r < STEP_ROWS; r++)
        now[r] = r < rows && w->started[r0 + r] ? w->m[r0 + r] : s->mc[r];
    for (int r = 0; r < STEP_ROWS; r++)
        s->next[r] = ro_max(now[r], s->mc[r]);
    map2(exp_difference, (constants){0}, now, s->next, STEP_ROWS, s->a, 0);
    map2(exp_difference, (constants){0}, s->mc, s->next, STEP_ROWS, s->b, 0);
}

/* Adds a block to the sums. ac holds the block's sums of values, rows `ac_step` apart. */
static void merge(const walk *w, int64_t r0, int rows, step *s, const float *ac, int64_t ac_step) {
    factors(w, r0, rows, s);
    for (int r = 0; r < rows; r++, ac += ac_step) {
        const int64_t i = r0 + r;
        float *o = w->o + i * w->step;
        if (is_minus_infinity(s->mc[r]))
            continue;
        if (w->started[i]) {
            combine(o, s->a[r], s->b[r], ac, w->size);
            w->l[i] = ro_fma(w->l[i], s->a[r], s->b[r] * s->lc[r]);
            w->m[i] = s->next[r];
        } else {
            memcpy(o, ac, (size_t)w->size * sizeof *o);
            w->l[i] = s->lc[r], w->m[i] = s->mc[r], w->started[i] = 1;
        }
    }
}

/* Divides the sums of values by l, and stores maxima and sums in m and l, which may be NULL. */
static void finish(const walk *w, int64_t count, float *m, float *l) {
    for (int64_t i = 0; i < count; i++) {
        float *o = w->o + i * w->step;
        const float sum = w->started[i] ? ro_canon(w->l[i]) : 0.0f;
        if (w->started[i])
            scale_row(o, 1.0f / sum, w->size);
        else
            clear(o, w->size);
        if (m)
            m[i] = w->started[i] ? w->m[i] : ro_from_bits(RO_MINUS_INFINITY_BITS);
        if (l)
            l[i] = sum;
    }
}

#endif
