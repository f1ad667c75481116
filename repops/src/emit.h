/* Where free kernels deliver their results: rounding, and reports of close calls. Kernels include
 * this file (repops/free/kernel.h), so that its loops are vectorised for each instruction set. */
#ifndef REPOPS_EMIT_H
#define REPOPS_EMIT_H

#include "repops/src/rounding.h"
#include "repops/free.h"

enum { RO_EMIT_MAX = 256 }; /* most elements of one ro_emit */

/* The most bounds between a close call and its boundary: two, and a little for rounding errors. */
#define RO_EMIT_REACH 2.001

/* Each worker has its own. */
typedef struct ro_emitter {
    const ro_rounding *rounding;
    float *out;
    double magic, half; /* for ro_round_any; half the distance of neighbours, over the binade */
    ro_ctx *ctx;
    ro_close_call *call; /* in order of emission, from ro_host_alloc; kept for the next run */
    int64_t calls, room;
    int64_t escapes, decided, corrected;
    int failed; /* 1: there was no memory for a call */
} ro_emitter;

/* Returns whether bounds are needed; kernels compute them only then. */
RO_INLINE int ro_emit_wants_bounds(const ro_emitter *t) {
    return t->rounding->mode == RO_FREE_REPORT || t->rounding->bound != NULL;
}

/* Returns whether results may bypass ro_emit if they are rounded to the nearest binary32 number. In
 * REPORT mode that holds only for those that are no close call, in REPLAY for those that no call
 * names. */
RO_INLINE int ro_emit_is_direct(const ro_emitter *t) {
    const ro_free_mode mode = t->rounding->mode;
    const int rounds = mode == RO_FREE_F64 || mode == RO_FREE_REPORT || mode == RO_FREE_REPLAY;
    return mode == RO_FREE_F32 || (rounds && t->rounding->bits == 32);
}

/* emit.c: makes room for so many calls and keeps the existing ones. Returns 0 on failure. */
int ro_emit_room(ro_emitter *t, int64_t calls);
/* emit.c, REPLAY: returns whether a call names one of the elements [first, first + n). */
int ro_emit_is_called(const ro_emitter *t, int64_t first, int64_t n);
/* emit.c: reports one element if it is a close call; |error of y| <= bound. */
void ro_emit_close(ro_emitter *t, int64_t element, double y, double bound);
/* emit.c: notes an element that was not rounded to `nearest`. */
void ro_emit_moved(ro_emitter *t, int64_t element, float nearest);
/* emit.c: applies the calls of elements [first, first + n), which are rounded to the nearest. */
void ro_emit_replay(ro_emitter *t, int64_t first, const double *y, int64_t n);

/* Rounds a result to the grid, and makes a NaN canonical. */
RO_INLINE float ro_emit_round(const ro_emitter *t, double y) {
    return ro_canon(ro_round_any(y, t->magic));
}

RO_INLINE void ro_emit_rounded(ro_emitter *t, int64_t first, const double *y, int64_t n) {
    float *restrict out = t->out + first;
    if (t->rounding->bits == 32)
        for (int64_t i = 0; i < n; i++)
            out[i] = ro_canon((float)y[i]);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = ro_emit_round(t, y[i]);
}

/* Returns 1 if a boundary may lie within 2 * bound of y (SPEC 14.3); zero is a boundary, between -0
 * and +0. The test may report too many elements as close, those with a NaN bound included, since
 * ro_emit_close decides. Exact values (bound 0) are excluded early, since sums of two f32 often lie
 * halfway. The result is 64 bits wide, like y, so that compilers keep the loop in full vectors. */
RO_INLINE int64_t ro_emit_is_close(const ro_emitter *t, double y, double bound, float r) {
    const double half = ro_binade(y) * t->half, reach = RO_EMIT_REACH * bound;
    const double left = half - __builtin_fabs(y - (double)r);
    const double room = left < 0.24 * half ? left : 0.24 * half;
    const double least = room < __builtin_fabs(y) ? room : __builtin_fabs(y);
    const int64_t within = reach < least ? 0 : 1;
    return bound == 0 ? 0 : within;
}

/* Rounds both ends of ro_emit_close's reach to 32 bits, by plain conversions. If the ends are
 * equal, y is rounded to the same number. Returns nonzero if they differ: the element may be a
 * close call. With a NaN bound both ends are NaN. */
RO_INLINE uint32_t ro_emit_ends(double y, double bound, float *end) {
    const double reach = RO_EMIT_REACH * bound;
    const float low = (float)(y - reach), high = (float)(y + reach);
    const uint32_t apart = ro_to_bits(low) ^ ro_to_bits(high);
    *end = ro_canon(low);
    return low != low ? 1 : apart;
}

/* Rounds to 32 bits; returns nonzero if any element may be a close call. */
RO_INLINE uint32_t ro_emit_search(ro_emitter *t, int64_t first, const double *y,
                                  const double *bound, int64_t n) {
    float *restrict out = t->out + first;
    uint32_t apart = 0;
    for (int64_t i = 0; i < n; i++)
        apart |= ro_emit_ends(y[i], bound[i], &out[i]);
    return apart;
}

/* Checks a block again, element by element, after some of its ends differed. The ends of an exact
 * -0 differ too, as the two zeros do. */
RO_INLINE void ro_emit_apart(ro_emitter *t, int64_t first, const double *y, const double *bound,
                             int64_t n) {
    uint32_t apart[RO_EMIT_MAX];
    float unused[RO_EMIT_MAX];
    ro_emit_rounded(t, first, y, n);
    for (int64_t i = 0; i < n; i++)
        apart[i] = ro_emit_ends(y[i], bound[i], &unused[i]);
    for (int64_t i = 0; i < n; i++)
        if (apart[i] && bound[i] != 0)
            ro_emit_close(t, first + i, y[i], bound[i]);
}

/* Rounds to fewer bits, one result after the other, and reports close calls. */
RO_INLINE void ro_emit_coarse(ro_emitter *t, int64_t first, const double *y, const double *bound,
                              int64_t n) {
    float *restrict out = t->out + first;
    int64_t close = 0;
    for (int64_t i = 0; i < n; i++) {
        out[i] = ro_emit_round(t, y[i]);
        close |= ro_emit_is_close(t, y[i], bound[i], out[i]);
    }
    for (int64_t i = 0; i < n && close; i++)
        if (ro_emit_is_close(t, y[i], bound[i], out[i]))
            ro_emit_close(t, first + i, y[i], bound[i]);
}

/* `bound` is NULL if every y is exact. */
RO_INLINE void ro_emit_report(ro_emitter *t, int64_t first, const double *y, const double *bound,
                              int64_t n) {
    if (!bound)
        ro_emit_rounded(t, first, y, n);
    else if (t->rounding->bits < 32)
        ro_emit_coarse(t, first, y, bound, n);
    else if (ro_emit_search(t, first, y, bound, n))
        ro_emit_apart(t, first, y, bound, n);
}

/* Writes symbols: 2 rounded up, 0 rounded down, 1 where the distance is within the threshold. */
RO_INLINE void ro_emit_symbols(ro_emitter *t, int64_t first, const double *y, int64_t n) {
    uint8_t *restrict symbol = t->rounding->symbol + first;
    const double threshold = t->rounding->threshold;
    int64_t decided = 0;
    ro_emit_rounded(t, first, y, n);
    for (int64_t i = 0; i < n; i++) {
        const double r = (double)t->out[first + i];
        const int inside = __builtin_fabs(y[i] - r) > ro_binade(y[i]) * threshold;
        symbol[i] = (uint8_t)(inside ? (y[i] < r ? 2 : 0) : 1);
        decided += inside;
    }
    t->decided += decided;
}

RO_INLINE void ro_emit_follow(ro_emitter *t, int64_t first, const double *y, int64_t n) {
    const uint8_t *restrict symbol = t->rounding->symbol + first;
    const int bits = t->rounding->bits;
    int64_t wrong = 0, decided = 0;
    ro_emit_rounded(t, first, y, n);
    for (int64_t i = 0; i < n; i++) {
        const double r = (double)t->out[first + i];
        wrong += (symbol[i] == 0 && y[i] < r) || (symbol[i] == 2 && y[i] > r);
        decided += symbol[i] != 1;
    }
    t->decided += decided;
    for (int64_t i = 0; i < n && wrong > 0; i++) {
        float *out = &t->out[first + i];
        const float nearest = *out;
        if (symbol[i] == 0 && y[i] < (double)nearest)
            *out = ro_round_next(nearest, bits, -1);
        else if (symbol[i] == 2 && y[i] > (double)nearest)
            *out = ro_round_next(nearest, bits, 1);
        else
            continue;
        ro_emit_moved(t, first + i, nearest);
    }
}

RO_INLINE void ro_emit_values(ro_emitter *t, int64_t first, const double *y, const double *bound,
                              int64_t n) {
    memcpy(t->rounding->value + first, y, (size_t)n * sizeof *y);
    if (t->rounding->bound && bound)
        memcpy(t->rounding->bound + first, bound, (size_t)n * sizeof *bound);
    else if (t->rounding->bound)
        memset(t->rounding->bound + first, 0, (size_t)n * sizeof *bound);
}

/* Delivers elements first .. first + n - 1 of the output, n <= RO_EMIT_MAX; bound[i] >= |y[i] -
 * exact| for y[i] computed in any order (SPEC 14.3). Bounds are read only if ro_emit_wants_bounds;
 * NULL means that all are 0. */
RO_INLINE void ro_emit_f64(ro_emitter *t, int64_t first, const double *y, const double *bound,
                           int64_t n) {
    switch (t->rounding->mode) {
    case RO_FREE_REPORT: ro_emit_report(t, first, y, bound, n); break;
    case RO_FREE_REPLAY:
        ro_emit_rounded(t, first, y, n);
        if (t->rounding->call_count > 0)
            ro_emit_replay(t, first, y, n);
        break;
    case RO_FREE_SYMBOLS: ro_emit_symbols(t, first, y, n); break;
    case RO_FREE_VALUES: ro_emit_values(t, first, y, bound, n); break;
    case RO_FREE_FOLLOW: ro_emit_follow(t, first, y, n); break;
    default: ro_emit_rounded(t, first, y, n); break;
    }
}

RO_INLINE void ro_emit_f32(ro_emitter *t, int64_t first, const float *y, int64_t n) {
    float *restrict out = t->out + first;
    for (int64_t i = 0; i < n; i++)
        out[i] = ro_canon(y[i]);
}

#endif
