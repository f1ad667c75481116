/* Copies lines into the layout that packing needs, for the engines of AVX2 and AVX-512. */
#ifndef REPOPS_CPU_FIXED_LINES_H
#define REPOPS_CPU_FIXED_LINES_H

#include "repops/cpu/gemm/fixed.h"
#include "repops/cpu/gemm/gemm_pack.h"

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)

enum { FIXED_COLS = 2 * VW }; /* columns in a group of b */

/* Transposes `rows` rows of `cols` numbers, `apart` from one to the next: number c of row r goes to
 * to[c * to_apart + r]. Rows are padded with zeros to a multiple of VW. */
static void turn(const float *from, int64_t apart, int64_t rows, int64_t cols, float *to,
                 int64_t to_apart) {
    for (int64_t r = 0; r < rows; r += VW)
        for (int64_t c = 0; c < cols; c += VW) {
            vf x[VW];
            for (int64_t i = 0; i < VW; i++) /* the next rows may lie in other pages */
                __builtin_prefetch(from + (r + VW + i) * apart + c);
            for (int64_t i = 0; i < VW; i++)
                x[i] =
                    r + i < rows ? vf_load_n(from + (r + i) * apart + c, cols - c) : vf_set1(0.0f);
            transpose(x);
            for (int64_t i = 0; i < min_i64(VW, cols - c); i++)
                vf_store(to + (c + i) * to_apart + r, x[i]);
        }
}

/* Lines of contiguous steps, `apart` from one line to the next: the operand itself or a copy. */
typedef struct {
    const float *x;
    int64_t apart;
} whole_lines;

/* copy: room for RO_DOT_CHUNK floats per line. */
RO_INLINE whole_lines lines_of(const fixed_lines *l, float *copy) {
    if (l->step == 1)
        return (whole_lines){l->x, l->line};
    turn(l->x, l->step, l->steps, l->lines, copy, RO_DOT_CHUNK);
    return (whole_lines){copy, RO_DOT_CHUNK};
}

/* Columns that are contiguous in every step: the operand itself or a copy. */
typedef struct {
    const float *x;
    int64_t step, cols, steps;
    const int32_t *at; /* as in fixed_lines */
} side_by_side;

/* copy: room for RO_DOT_CHUNK * FIXED_COLS floats. */
RO_INLINE side_by_side columns_of(const fixed_lines *l, float *copy) {
    if (l->line == 1)
        return (side_by_side){l->x, l->step, l->lines, l->steps, l->at};
    turn(l->x, l->line, l->lines, l->steps, copy, FIXED_COLS);
    return (side_by_side){copy, FIXED_COLS, l->lines, l->steps, NULL};
}

/* Loads a vector from x; only `left` numbers exist, and the other lanes are 0. */
RO_INLINE vf numbers_at(const float *x, int64_t left) {
    return left >= VW ? vf_load(x) : vf_load_n(x, left);
}

/* Loads step k of a vector of columns from `col` on; steps and columns that do not exist are 0. */
RO_INLINE vf step_of(const side_by_side *c, int64_t k, int64_t col) {
    return k < c->steps ? numbers_at(c->x + k * c->step + col, c->cols - col) : vf_set1(0.0f);
}

#endif

#endif
