/* The k steps of a tile: how it finds its operands, what it multiplies and what it prefetches. */
#ifndef REPOPS_CPU_GEMM_STEPS_H
#define REPOPS_CPU_GEMM_STEPS_H

#include "repops/cpu/gemm/gemm_tile.h"

/* How a tile finds its operands. */
typedef enum {
    TILE_PACKED, /* see ro_tile_packed */
    TILE_PLACE,  /* in place; only columns that exist are read */
    TILE_QUIET,  /* like TILE_WHOLE, but a_step is 1, and no operand is prefetched */
    TILE_WHOLE,  /* in place; all columns exist */
    TILE_NEXT,   /* like TILE_WHOLE; see ASK_NEXT */
    TILE_RUNS,   /* see ro_tile_runs */
    TILE_LANES,  /* see ro_tile_lanes */
} tile_mode;

/* The memory that the steps of a tile prefetch. Lines and b are not prefetched together: where a is
 * slow to arrive, b is read so often that it stays in a cache. */
typedef enum {
    ASK_LINES, /* the lines of t->ahead */
    ASK_B,     /* coming steps of b */
    ASK_NEXT,  /* the same step of the next columns, into the L2 cache */
} tile_asks;

/* Prefetch distance for b in k steps: wide steps and steps of many rows need a shorter one. Short
 * products find b in a cache. */
RO_INLINE int64_t steps_ahead(const int rows, const int nv, int64_t k) {
    if (k < FAR_K)
        return 0;
    if (nv == 3 && rows == 8) /* 16 is best for most widths, but makes others a tenth slower */
        return 24;
    if (nv == 12)
        return 4;
    return nv == 8 ? 8 : rows * nv > (nv > 2 ? 11 : 16) ? 16 : 32;
}

enum {
    LINE = 16,                                    /* floats in a cache line */
    LINE_VECTORS = LINE / VW > 1 ? LINE / VW : 1, /* vectors in a cache line, at least 1 */
};

/* tile_runs prefetches its output this many steps before the end. If it did so earlier, the output
 * could be evicted from L1 again, where all its rows may share a few sets. */
enum { OUT_AHEAD = 32 };

/* A long packed tile prefetches its output one cache line per step, because all lines at once are
 * more than the processor can wait for. It goes down each column of lines, and down the last
 * column of floats, since rows need not start on a cache line. */
enum {
    LONG = 128,    /* k steps from which a tile is long */
    OUT_DONE = 64, /* steps before the end at which the last line is prefetched */
};

RO_INLINE void fetch_out(const int rows, const int nv, const tile *t) {
    RO_UNROLL
    for (int i = 0; i < rows; i++) {
        RO_UNROLL
        for (int v = 0; v < nv; v += LINE_VECTORS)
            __builtin_prefetch(t->out + i * t->out_row + v * VW, 1);
    }
}

RO_INLINE void tile_load_b(const int nv, const tile_mode mode, const tile_asks asks, const float *b,
                           int64_t ahead, const vf_mask mask[NV_MOST], vf bv[NV_MOST]) {
    RO_UNROLL
    for (int v = 0; v < nv; v++) {
        bv[v] = mode == TILE_PLACE ? vf_load_mask(b + v * VW, mask[v]) : vf_load(b + v * VW);
        if (v * VW % LINE == 0 && asks == ASK_B)
            __builtin_prefetch(b + ahead + v * VW);
        else if (v * VW % LINE == 0 && asks == ASK_NEXT)
            __builtin_prefetch(b + ahead + v * VW, 0, 2);
    }
}

/* Steps that prefetch one cache line each. */
typedef struct {
    int64_t steps;
    const float *line;
    int64_t line_step;
} stretch;

/* Returns the next stretch if `left` steps of a long tile remain. */
RO_INLINE stretch next_stretch(const int rows, const int nv, const tile *t, int64_t left) {
    const float *place = t->flags & TILE_LAST ? t->out : t->c;
    const int64_t row = t->flags & TILE_LAST ? t->out_row : t->c_row;
    const int64_t columns = ceil_div(nv * VW, LINE) + 1, begin = OUT_DONE + columns * rows;
    if (left > begin || left <= OUT_DONE)
        return (stretch){left > begin ? left - begin : left, place, 0};
    const int64_t column = (begin - left) / rows;
    return (stretch){rows, place + min_i64(column * LINE, nv * VW - 1), row};
}

/* Pointers to rows of a: one for three rows, as an address mode adds a_row once or twice. */
enum { A_POINTERS = (MR_MOST + 2) / 3 };
enum { RUN_AHEAD = 16 /* prefetch distance of tile_runs, in steps of b */ };

RO_INLINE void tile_steps(const int rows, const int nv, const tile_mode mode, const tile_asks asks,
                          const tile *t, vf acc[MR_MOST][NV_MOST]) {
    const int unit = mode == TILE_PACKED;
    const int pointers = unit ? 1 : (rows + 2) / 3;
    const int64_t a_row = unit ? 1 : t->a_row, b_step = t->b_step;
    const int64_t b_ahead = asks == ASK_NEXT ? t->next : steps_ahead(rows, nv, t->k) * b_step;
    const int64_t ahead_step = t->ahead_step;
    const int is_long = unit && t->k >= LONG;
    const float *a[A_POINTERS], *b = t->b, *ahead = t->ahead ? t->ahead : t->b;
    vf_mask mask[NV_MOST];
    RO_UNROLL
    for (int v = 0; v < nv; v++)
        mask[v] = vf_first(t->cols - v * VW);
    RO_UNROLL
    for (int i = 0; i < pointers; i++)
        a[i] = t->a + 3 * i * a_row;
    if (!is_long && t->k > OUT_AHEAD) /* few steps end before a prefetch arrives */
        fetch_out(rows, unit ? nv : 1, t);
    stretch s = {t->k, t->b, 0};
    for (int64_t left = t->k; left > 0; left -= s.steps) {
        if (is_long)
            s = next_stretch(rows, nv, t, left);
        else if (asks == ASK_LINES && !unit)
            s.steps = min_i64(left, 16);
        for (int64_t p = s.steps; p > 0; p--, b += b_step) {
            vf bv[NV_MOST];
            tile_load_b(nv, mode, asks, b, b_ahead, mask, bv);
            if (asks == ASK_LINES)
                __builtin_prefetch(ahead);
            if (unit)
                __builtin_prefetch(s.line, 1);
            ahead += ahead_step, s.line += s.line_step;
            RO_UNROLL
            for (int i = 0; i < rows; i++) {
                const vf av = vf_set1(unit ? a[0][i] : a[i / 3][i % 3 * a_row]);
                RO_UNROLL
                for (int v = 0; v < nv; v++)
                    acc[i][v] = vf_fma(av, bv[v], acc[i][v]);
            }
            RO_UNROLL
            for (int i = 0; i < pointers; i++)
                a[i] += t->a_step;
        }
        ahead += t->ahead_turn;
    }
}

/* Whether steps without prefetch have loops of their own. The two threads of a core share its issue
 * slots, so if the other thread is busy, every instruction besides the fmas delays them
 * (bench/NOTES.md). */
#if defined(RO_ISA_avx2) || defined(RO_ISA_avx512)
enum { QUIET = 1 };
#else
enum { QUIET = 0 };
#endif
enum { IN_A_ROW = 2 /* steps that such a loop unrolls */ };

/* Prefetches all cache lines of the output at once: callers have few. A row may start inside a
 * line, so its last float is prefetched too. */
RO_INLINE void fetch_lines(const int rows, const int nv, const tile *t) {
    const int last = t->flags & TILE_LAST;
    const float *line = last ? t->out : t->c;
    const int64_t row = last ? t->out_row : t->c_row;
    RO_UNROLL
    for (int i = 0; i < rows; i++, line += row) {
        RO_UNROLL
        for (int v = 0; v < nv; v += LINE_VECTORS)
            __builtin_prefetch(line + v * VW, 1);
        __builtin_prefetch(line + nv * VW - 1, 1);
    }
}

/* Rows whose two fmas each read the element of a from memory, which saves a separate load. Not all
 * rows do so, as a core can do two loads per cycle, just as many as fmas. Packed: the first
 * READ_TWICE rows; in place: every third row, whose address is a pointer without an offset. */
#if defined(RO_ISA_avx512)
enum { READ_TWICE = 10 };
#else
enum { READ_TWICE = 0 };
#endif

RO_INLINE int is_read_twice(const int nv, const int unit, int row) {
    return nv == 2 && (unit ? row < READ_TWICE : READ_TWICE > 0 && row % 3 == 0);
}

/* x points to the row's element of a. */
RO_INLINE void quiet_row(const int nv, const int twice, const float *x, const vf bv[NV_MOST],
                         vf acc[NV_MOST]) {
#if defined(RO_ISA_avx512)
    if (twice) {
        RO_UNROLL
        for (int v = 0; v < nv; v++)
            acc[v] = vf_fma_at(x, bv[v], acc[v]);
        return;
    }
#endif
    (void)twice;
    const vf av = vf_set1(*x);
    RO_UNROLL
    for (int v = 0; v < nv; v++)
        acc[v] = vf_fma(av, bv[v], acc[v]);
}

/* Runs one k step without prefetch: step `step` of a, with tile_steps' pointers, and the step of b
 * at b. */
RO_INLINE void quiet_step(const int rows, const int nv, const int unit, const float *const *a,
                          int64_t a_row, int64_t step, const float *b, vf acc[MR_MOST][NV_MOST]) {
    vf bv[NV_MOST];
    RO_UNROLL
    for (int v = 0; v < nv; v++)
        bv[v] = vf_load(b + v * VW);
    RO_UNROLL
    for (int i = 0; i < rows; i++)
        quiet_row(nv, is_read_twice(nv, unit, i),
                  unit ? a[0] + i + step : a[i / 3] + i % 3 * a_row + step, bv, acc[i]);
}

/* The position of the next step in packed operands. */
typedef struct {
    const float *a, *b, *ahead;
} cursor;

RO_INLINE void panel_steps(const int rows, const int nv, const int lines, const tile *t,
                           int64_t steps, cursor *at, vf acc[MR_MOST][NV_MOST]) {
    const float *a = at->a, *b = at->b, *ahead = at->ahead;
    const int64_t a_step = t->a_step, b_step = t->b_step;
    for (int64_t turn = steps / IN_A_ROW; turn > 0; turn--) {
        RO_UNROLL
        for (int i = 0; i < IN_A_ROW; i++, a += a_step, b += b_step) {
            if (lines)
                __builtin_prefetch(ahead);
            ahead += lines ? t->ahead_step : 0;
            a = whole_address(a);
            quiet_step(rows, nv, 1, &a, 1, 0, b, acc);
        }
    }
    for (int64_t left = steps % IN_A_ROW; left > 0; left--, a += a_step, b += b_step)
        quiet_step(rows, nv, 1, &a, 1, 0, b, acc);
    *at = (cursor){a, b, ahead};
}

/* Runs the steps of a long tile that prefetch its output; see LONG. */
RO_INLINE void asking_steps(const int rows, const int nv, const tile *t, cursor *at,
                            vf acc[MR_MOST][NV_MOST]) {
    const float *place = t->flags & TILE_LAST ? t->out : t->c;
    const int64_t row = t->flags & TILE_LAST ? t->out_row : t->c_row;
    for (int column = 0; column * LINE < nv * VW + LINE; column++) {
        const float *line = place + min_i64(column * LINE, nv * VW - 1);
        RO_NO_UNROLL
        for (int i = 0; i < rows; i++, line += row) {
            __builtin_prefetch(line, 1);
            at->a = whole_address(at->a);
            quiet_step(rows, nv, 1, &at->a, 1, 0, at->b, acc);
            at->a += t->a_step, at->b += t->b_step;
        }
    }
}

/* Runs all steps of a tile with packed operands. */
RO_INLINE void tile_panels(const int rows, const int nv, const int lines, const tile *t,
                           vf acc[MR_MOST][NV_MOST]) {
    const int is_long = (int)NR > (int)LINE && !lines && t->k >= LONG;
    const int64_t asking = ceil_div(nv * VW + LINE, LINE) * rows;
    cursor at = {t->a, t->b, t->ahead};
    int64_t left = is_long ? t->k - asking - OUT_DONE : t->k;
    if (!is_long && t->k > OUT_AHEAD) /* few steps end before a prefetch arrives */
        fetch_lines(rows, nv, t);
    for (int part = 0; part <= is_long; part++) {
        if (part > 0) {
            asking_steps(rows, nv, t, &at, acc);
            left = OUT_DONE;
        }
        panel_steps(rows, nv, lines, t, left, &at, acc);
    }
}

/* Runs all steps of a tile in place without prefetching operands. With four vectors of b, AVX2 has
 * no registers left to unroll a second step. */
RO_INLINE void tile_quiet(const int rows, const int nv, const tile *t, vf acc[MR_MOST][NV_MOST]) {
    const int in_a_row = nv > 2 && (int)VW < (int)LINE ? 1 : IN_A_ROW;
    const int64_t a_row = t->a_row, b_step = t->b_step;
    const float *a[A_POINTERS], *b = t->b;
    RO_UNROLL
    for (int i = 0; i < (rows + 2) / 3; i++)
        a[i] = t->a + 3 * i * a_row;
    if (t->k > OUT_AHEAD)
        fetch_out(rows, 1, t);
    int64_t left = t->k;
    for (; left >= in_a_row; left -= in_a_row) {
        RO_UNROLL
        for (int i = 0; i < in_a_row; i++, b += b_step)
            quiet_step(rows, nv, 0, a, a_row, i, b, acc);
        RO_UNROLL
        for (int i = 0; i < (rows + 2) / 3; i++)
            a[i] += in_a_row;
    }
    for (int64_t i = 0; i < left; i++, b += b_step)
        quiet_step(rows, nv, 0, a, a_row, i, b, acc);
}

/* Runs all steps of a tile of runs. One stride of a and the stride of b are constants here, which
 * leaves more registers to the accumulators. */
RO_INLINE void tile_runs(const int rows, const int nv, const int unit, const int quiet,
                         const tile *t, vf acc[MR_MOST][NV_MOST]) {
    const int64_t a_row = unit ? 1 : t->a_row, a_step = unit ? t->a_step : 1;
    const int64_t ahead_step = t->ahead_step;
    const int pointers = unit ? 1 : (rows + 2) / 3;
    const float *ahead = t->ahead ? t->ahead : t->b, *far = t->far ? t->far : t->b;
    const int64_t far_step = t->far ? LINE : 0;
    const tile_run *end = t->runs + t->run_count;
    const int64_t out_ahead = t->k > OUT_AHEAD ? OUT_AHEAD : 0;
    if (!out_ahead)
        fetch_out(rows, nv, t);
    for (const tile_run *run = t->runs; run < end; run++) {
        const float *a[A_POINTERS], *b = t->b + run->b;
        const int64_t late = run + 1 < end ? 0 : out_ahead;
        RO_UNROLL
        for (int i = 0; i < pointers; i++)
            a[i] = t->a + run->a + 3 * i * a_row;
        for (int64_t left = run->k, turn; left > 0; left -= turn) {
            turn = left > late ? left - late : left;
            if (left <= late)
                fetch_out(rows, nv, t);
            int64_t p = turn;
            for (; quiet && p >= IN_A_ROW; p -= IN_A_ROW) {
                __builtin_prefetch(far, 0, 2);
                far += far_step;
                RO_UNROLL
                for (int u = 0; u < IN_A_ROW; u++, b += NR) {
                    quiet_step(rows, nv, unit, a, a_row, 0, b, acc);
                    RO_UNROLL
                    for (int i = 0; i < pointers; i++)
                        a[i] += a_step;
                }
            }
            for (; p > 0; p--, b += NR) {
                vf bv[NV_MOST];
                tile_load_b(nv, TILE_RUNS, ASK_B, b, RUN_AHEAD * NR, NULL, bv);
                __builtin_prefetch(ahead);
                ahead += ahead_step;
                RO_UNROLL
                for (int i = 0; i < rows; i++) {
                    const vf av = vf_set1(unit ? a[0][i] : a[i / 3][i % 3 * a_row]);
                    RO_UNROLL
                    for (int v = 0; v < nv; v++)
                        acc[i][v] = vf_fma(av, bv[v], acc[i][v]);
                }
                RO_UNROLL
                for (int i = 0; i < pointers; i++)
                    a[i] += a_step;
            }
        }
    }
}

RO_INLINE void tile_multiply(const int rows, const int nv, const tile_mode mode, const tile *t,
                             vf acc[MR_MOST][NV_MOST]) {
    const int runs = mode == TILE_RUNS || mode == TILE_LANES;
    const int panels = mode == TILE_PACKED;
    if (QUIET && (int)NR <= (int)LINE && panels && t->ahead)
        tile_panels(rows, nv, 1, t, acc);
    else if (QUIET && panels && !t->ahead)
        tile_panels(rows, nv, 0, t, acc);
    else if (QUIET && mode == TILE_QUIET)
        tile_quiet(rows, nv, t, acc);
    else if (QUIET && runs && t->ahead_step == 0)
        tile_runs(rows, nv, mode == TILE_LANES, 1, t, acc);
    else if (runs)
        tile_runs(rows, nv, mode == TILE_LANES, 0, t, acc);
    else if (mode == TILE_NEXT)
        tile_steps(rows, nv, mode, ASK_NEXT, t, acc);
    else if (mode == TILE_PACKED || t->ahead)
        tile_steps(rows, nv, mode, ASK_LINES, t, acc);
    else
        tile_steps(rows, nv, mode, ASK_B, t, acc);
}

#endif
