/* Views of a call that the checks, the reference and the kernels share. Private to repops. */
#ifndef RO_CALL_H
#define RO_CALL_H

#include "repops/repops.h"
#include "repops/src/math.h"

/* Rows of a tensor: the product of all dimensions but the last. */
RO_INLINE int64_t ro_rows_of(const ro_shape *s) {
    int64_t rows = 1;
    for (int i = 0; i < s->ndim - 1; i++)
        rows *= s->dim[i];
    return rows;
}

/* SPEC 3.1 and 3.5: a as M x K, b as K x N (k_b rows), each possibly stored transposed. */
typedef struct {
    int64_t batch, m, n, k, k_b;
    int trans_a, trans_b;
    float alpha;
    int64_t chunk;
    ro_mask mask;
    int64_t window; /* 0: none */
    int bits;       /* of the integers of a fixed product; 0: no fixed one */
} ro_matmul;

RO_INLINE ro_matmul ro_matmul_of(const ro_call *call) {
    const ro_shape *a = &call->input[0], *b = &call->input[1];
    const int64_t *attr = call->attr;
    const int bd = (int)attr[RO_PRODUCT_BATCH_DIMS];
    ro_matmul v = {.batch = 1,
                   .trans_a = (int)(attr[RO_PRODUCT_TRANS] & 1),
                   .trans_b = (int)(attr[RO_PRODUCT_TRANS] >> 1 & 1),
                   .alpha = ro_from_bits((uint32_t)attr[RO_PRODUCT_ALPHA]),
                   .chunk = RO_DOT_CHUNK};
    if (call->op == RO_OP_MATMUL_FIXED) {
        v.bits = (int)attr[RO_MATMUL_FIXED_BITS];
    } else {
        v.chunk = attr[RO_MATMUL_CHUNK];
        v.mask = (ro_mask)attr[RO_MATMUL_MASK];
        v.window = attr[RO_MATMUL_WINDOW];
    }
    int64_t a_cols = a->dim[a->ndim - 1], a_rows = 1;
    int64_t b_cols = b->dim[b->ndim - 1], b_rows = 1;
    for (int i = 0; i < bd; i++)
        v.batch *= a->dim[i];
    for (int i = bd; i < a->ndim - 1; i++)
        a_rows *= a->dim[i];
    for (int i = bd; i < b->ndim - 1; i++)
        b_rows *= b->dim[i];
    v.m = v.trans_a ? a_cols : a_rows;
    v.k = v.trans_a ? a_rows : a_cols;
    v.n = v.trans_b ? b_rows : b_cols;
    v.k_b = v.trans_b ? b_cols : b_rows;
    return v;
}

/* Steps or keys [first, last), none if first >= last. */
typedef struct {
    int64_t first, last;
} ro_range;

/* SPEC 3.1: the k of [0, count) that a mask admits for row m; window 0: no window. */
RO_INLINE ro_range ro_masked_range(ro_mask mask, int64_t window, int64_t m, int64_t count) {
    ro_range r = {0, count};
    if (mask == RO_MASK_UPTO_ROW) {
        r.first = window > 0 && m >= window ? m - window + 1 : 0;
        r.last = m + 1 < count ? m + 1 : count;
    } else if (mask == RO_MASK_FROM_ROW) {
        r.first = m;
        r.last = window > 0 && window < count - m ? m + window : count;
    }
    return r;
}

/* SPEC 8: the keys that query `row` of scores [..., T, S] admits, by attributes that attn_max,
 * attn_exp, attn_av, attn_prob and attn_dscore have alike. */
RO_INLINE ro_range ro_admitted_keys(const ro_call *call, int64_t row) {
    const ro_shape *s = &call->input[0];
    return ro_masked_range(call->attr[RO_MASKED_CAUSAL] ? RO_MASK_UPTO_ROW : RO_MASK_NONE,
                           call->attr[RO_MASKED_WINDOW], row % s->dim[s->ndim - 2],
                           s->dim[s->ndim - 1]);
}

/* SPEC 8: attn_max_at, attn_exp_at and attn_av_at, which take the place of their first query as
 * data, the last input. */
RO_INLINE int ro_is_placed(const ro_call *call) {
    return call->op >= RO_OP_ATTN_MAX_AT && call->op <= RO_OP_ATTN_AV_AT;
}

/* SPEC 8: the keys that query `row` admits; `place` is that of the first query. No range reaches
 * beyond the keys. */
RO_INLINE ro_range ro_keys_of(const ro_call *call, int64_t row, int32_t place) {
    const ro_shape *s = &call->input[0];
    if (!ro_is_placed(call))
        return ro_admitted_keys(call, row);
    const int64_t keys = s->dim[s->ndim - 1], at = place + row % s->dim[s->ndim - 2];
    ro_range r = {0, 0};
    if (at >= 0)
        r = ro_masked_range(RO_MASK_UPTO_ROW, call->attr[RO_PLACED_WINDOW], at, keys);
    r.first = r.first < r.last ? r.first : r.last;
    return r;
}

/* SPEC 3.2, 3.3: blocks of a row of `cols` elements, and groups of rows; of nothing there is one.
 */
RO_INLINE int64_t ro_blocks_of(int64_t cols, int64_t block) {
    return cols > block ? (cols + block - 1) / block : 1;
}

/* Rows of a reduction's view: if they are empty, as many as the output says. */
RO_INLINE int64_t ro_view_rows(const ro_call *call) {
    return call->attr[RO_ROWS_COLS] > 0 ? ro_shape_numel(&call->input[0]) / call->attr[RO_ROWS_COLS]
                                        : ro_shape_numel(&call->output);
}

/* SPEC 13: x as rows of pairs. */
typedef struct {
    int64_t rows, positions, half;
    int64_t lines; /* of positions, which are [lines, positions] */
    int64_t apart; /* rows of x that share a line */
} ro_rotation;

RO_INLINE ro_rotation ro_rotation_of(const ro_call *call) {
    const ro_shape *x = &call->input[0];
    const int64_t width = x->dim[x->ndim - 1], positions = x->dim[x->ndim - 2];
    ro_rotation v = {.rows = 1, .positions = positions, .half = width / 2, .lines = 1};
    for (int i = 0; i < x->ndim - 1; i++)
        v.rows *= x->dim[i];
    if (ro_shape_numel(&call->input[1]) != positions)
        v.lines = x->dim[0];
    v.apart = v.lines > 0 ? v.rows / v.lines : v.rows;
    return v;
}

/* The place of row r's position. */
RO_INLINE int64_t ro_rotation_place(const ro_rotation *v, int64_t r) {
    return (v->lines > 1 ? r / v->apart * v->positions : 0) + r % v->positions;
}

/* SPEC 5: a tensor as [outer, n, inner] around one axis. */
typedef struct {
    int64_t outer, n, inner;
} ro_axis;

RO_INLINE ro_axis ro_axis_of(const ro_shape *s, int64_t axis) {
    ro_axis v = {1, s->dim[axis], 1};
    for (int64_t i = 0; i < axis; i++)
        v.outer *= s->dim[i];
    for (int64_t i = axis + 1; i < s->ndim; i++)
        v.inner *= s->dim[i];
    return v;
}

#endif
