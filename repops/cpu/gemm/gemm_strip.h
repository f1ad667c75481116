/* A strip of a blocked product (gemm_blocks.c): one tile of c, chunk by chunk. */
#ifndef REPOPS_CPU_GEMM_STRIP_H
#define REPOPS_CPU_GEMM_STRIP_H

#include "repops/cpu/gemm/gemm_tile.h"

/* One tile's rows, which are rows [row, row + rows) for the mask. t has the operands at step k0. */
typedef struct {
    const gemm *g;
    tile t;
    int place; /* 1: ro_tile_place; 0: ro_tile_packed */
    int rows;
    int64_t row, k0;
    int64_t done;        /* if c_chunk is not 0: offset from c of the result of the chunk at k0 */
    int64_t ahead_chunk; /* offset of t.ahead from one chunk to the next */
} strip;

static inline void run_steps(const strip *s, int rows, int i, int64_t from, int64_t to, tile t) {
    t.k = max_i64(0, to - from);
    t.a += (from - s->k0) * t.a_step + i;
    t.b += (from - s->k0) * t.b_step;
    if (s->place)
        RO_NAME(ro_tile_place)(rows, &t);
    else
        RO_NAME(ro_tile_packed)(rows, &t);
}

/* The mask admits k <= row: all rows share the steps up to `row`, then row i has i more. */
static inline void run_upto_row(const strip *s, int64_t from, int64_t to, const tile *whole) {
    const int64_t common = max_i64(from, min_i64(to, s->row + 1));
    float acc[MR * NR];
    tile t = *whole;
    t.c = acc, t.c_row = NR, t.cols = NR, t.flags = TILE_RAW;
    run_steps(s, s->rows, 0, from, common, t);
    t = *whole;
    for (int i = 0; i < s->rows; i++) {
        t.start = acc + i * NR;
        t.c = whole->c + i * t.c_row;
        t.out = whole->out + i * t.out_row;
        run_steps(s, 1, i, common, min_i64(to, s->row + i + 1), t);
    }
}

/* The mask admits k >= row: row i starts at its own number, and all rows share the steps from the
 * last row's number on. */
static inline void run_from_row(const strip *s, int64_t from, int64_t to, const tile *whole) {
    const int64_t common = max_i64(from, min_i64(to, s->row + s->rows - 1));
    float acc[MR * NR];
    tile t = *whole;
    t.c_row = NR, t.cols = NR, t.flags = TILE_RAW;
    for (int i = 0; i < s->rows; i++) {
        t.c = acc + i * NR;
        run_steps(s, 1, i, max_i64(from, s->row + i), common, t);
    }
    t = *whole;
    t.start = acc;
    run_steps(s, s->rows, 0, common, to, t);
}

/* First and last chunk in which any row of the strip admits a step. */
static inline void chunk_range(const strip *s, int64_t *first, int64_t *last) {
    const gemm *g = s->g;
    *first = g->mask == RO_MASK_FROM_ROW ? s->row / g->chunk : 0;
    *last = ceil_div(g->k, g->chunk) - 1;
    if (g->mask == RO_MASK_UPTO_ROW)
        *last = min_i64(*last, (s->row + s->rows - 1) / g->chunk);
}

static inline void run_chunk(const strip *s, int64_t from, int64_t to, const tile *t) {
    const int64_t end = s->row + s->rows; /* one past the last row */
    if (s->g->mask == RO_MASK_UPTO_ROW && s->row + 1 < to)
        run_upto_row(s, from, to, t);
    else if (s->g->mask == RO_MASK_FROM_ROW && end - 1 > from)
        run_from_row(s, from, to, t);
    else
        run_steps(s, s->rows, 0, from, to, *t);
}

/* Runs a strip without a mask. It advances one tile, since copying it for each chunk would take a
 * large part of a small tile's time. */
static inline void run_whole_strip(strip *s, int64_t k) {
    const gemm *g = s->g;
    const int64_t end = s->k0 + k;
    tile *t = &s->t;
    t->c += s->done, t->out += s->done;
    for (int64_t from = s->k0; from < end; from += g->chunk) {
        const int first = g->c_chunk || from == 0, last = g->c_chunk || from + g->chunk >= g->k;
        t->k = min_i64(g->chunk, end - from);
        t->flags = (first ? TILE_FIRST : 0) | (last ? TILE_LAST : 0);
        if (s->place)
            RO_NAME(ro_tile_place)(s->rows, t);
        else
            RO_NAME(ro_tile_packed)(s->rows, t);
        t->a += g->chunk * t->a_step;
        t->b += g->chunk * t->b_step;
        t->c += g->c_chunk, t->out += g->c_chunk;
        if (t->ahead)
            t->ahead += s->ahead_chunk;
    }
}

static inline void run_strip(const strip *s, int64_t k) {
    const gemm *g = s->g;
    int64_t first, last;
    chunk_range(s, &first, &last);
    for (int64_t from = s->k0; from < s->k0 + k; from += g->chunk) {
        const int64_t j = from / g->chunk;
        if (j < first || j > last)
            continue;
        tile t = s->t;
        if (t.ahead)
            t.ahead += (from - s->k0) / g->chunk * s->ahead_chunk;
        t.c += j * g->c_chunk;
        t.out += j * g->c_chunk;
        t.flags = g->c_chunk || j == first ? TILE_FIRST : 0;
        t.flags |= g->c_chunk || j == last ? TILE_LAST : 0;
        run_chunk(s, from, min_i64(from + g->chunk, g->k), &t);
    }
}

#endif
