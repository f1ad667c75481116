/* Products of strips of up to MR queries with a block of KB keys, for fused attention of many
 * queries. Products run over whole tiles: a masked score is +0 on one side, and since a sum of
 * products is never -0 (SPEC.md section 3.1), a product with +0 changes no bit unless the other
 * side is an infinity or a NaN. Where it may be one, rows are run one by one, up to their limit. */
#ifndef REPOPS_CPU_ATTEND_STRIPS_H
#define REPOPS_CPU_ATTEND_STRIPS_H

#include "repops/cpu/attention/attend.h"
#include "repops/cpu/gemm/gemm_pack.h"
#include "repops/cpu/elements/philox.h"

enum {
    PANELS = (KB + NR - 1) / NR,              /* panels in a block of keys */
    WORDS = 4 * (KB / 4 + 1 + PHILOX_BLOCKS), /* random words for one row's dropout */
};

/* Returns the height of strips that share `rows` evenly, MR at most. */
RO_INLINE int64_t strip_height(int64_t rows) {
    return ceil_div(rows, ceil_div(rows, MR));
}

/* ---- operands: [rows, size] matrices of at most KB rows ---- */

RO_INLINE int64_t padded(int64_t size) {
    return ceil_div(size, NR) * NR;
}

/* Returns rows that can be read as whole vectors of NR columns: the matrix itself if its rows are
 * contiguous and whole vectors long (rows further apart would crowd a few sets of the L1 cache),
 * otherwise a copy padded with +0. */
static matrix_rows view_rows(matrix_rows x, int64_t rows, int64_t size, float *copy) {
    const int64_t step = padded(size);
    if (step == size && x.step == size)
        return x;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < step; j += VW)
            vf_store(copy + i * step + j, vf_load_n(x.at + i * x.step + j, size - j));
    return (matrix_rows){copy, step};
}

/* Packs the right operand of a product over `size` in panels of NR rows. */
static void pack_panels(matrix_rows x, int64_t rows, int64_t size, float *to) {
    for (int64_t j = 0; j < rows; j += NR)
        pack(&(panel){x.at + j * x.step, x.step, 1, min_i64(NR, rows - j), NR, size},
             to + j * size);
}

/* Packs the left operand of a product in strips of `height` rows. */
static void pack_strips(matrix_rows x, int64_t rows, int64_t size, int64_t height, float *to) {
    for (int64_t i = 0; i < rows; i += height) {
        const int64_t h = min_i64(height, rows - i);
        pack(&(panel){x.at + i * x.step, x.step, 1, h, h, size}, to + i * size);
    }
}

static int all_finite(matrix_rows x, int64_t rows, int64_t size) {
    uint32_t largest = 0;
    for (int64_t r = 0; r < rows; r++, x.at += x.step)
        for (int64_t i = 0; i < size; i++) {
            const uint32_t magnitude = ro_to_bits(x.at[i]) & UINT32_C(0x7fffffff);
            largest = magnitude > largest ? magnitude : largest;
        }
    return largest < UINT32_C(0x7f800000);
}

/* ---- products of a strip ---- */

/* s[r, j] = canon(dot(a row r, b row j) * alpha) for j < cols, where rows of s lie KB apart. */
static void strip_scores(int rows, const float *strip, const float *panels, int64_t size,
                         int64_t cols, float alpha, float *s) {
    tile t = {.k = size, .a = strip, .a_step = rows, .b_step = NR, .c_row = KB, .out_row = KB};
    t.alpha = alpha;
    t.flags = TILE_FIRST | TILE_LAST;
    for (int64_t j = 0; j < cols; j += NR) {
        t.b = panels + j * size;
        t.c = t.out = s + j;
        t.cols = min_i64(NR, KB - j);
        run_tile(rows, &t);
    }
}

/* The destination of sums: rows `step` elements apart. */
typedef struct {
    float *at;
    int64_t step;
    float alpha;
    int flags;
} sums;

/* to[r, :] += sum over p < count of x[r, p] b[p, :], where rows of x lie KB apart. */
static void strip_times(int rows, const float *x, int64_t count, matrix_rows b, int64_t size,
                        sums to) {
    tile t = {.k = count, .a = x, .a_row = KB, .a_step = 1, .b_step = b.step, .c_row = to.step};
    t.out_row = to.step, t.alpha = to.alpha, t.flags = to.flags;
    for (int64_t j = 0; j < size; j += NR) {
        t.b = b.at + j;
        t.c = t.out = to.at + j;
        t.cols = min_i64(NR, size - j);
        RO_NAME(ro_tile_place)(rows, &t);
    }
}

/* ---- dropout ---- */

/* Returns the random words for `count` <= KB elements from element e on; `word` has room for WORDS.
 */
static const uint32_t *dropout_words(const ro_attention_dropout *d, int64_t e, int64_t count,
                                     uint32_t *word) {
    const philox p = {d->seed, (uint32_t)d->step, d->stream};
    philox_words(p, (uint64_t)e / 4, ceil_div(e % 4 + count, 4), word);
    return word + e % 4;
}

static void drop(const uint32_t *restrict word, const ro_attention_dropout *d, int64_t count,
                 float *restrict x) {
    const uint32_t threshold = d->threshold;
    const float scale = d->scale;
    for (int64_t i = 0; i < count; i++) {
        const float kept = ro_canon(x[i] * scale);
        x[i] = word[i] >= threshold ? kept : 0.0f;
    }
}

#endif
