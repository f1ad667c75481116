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

/* A range [first, last) of steps or keys; empty if first >= last. */
typedef struct {
    int64_t first, last;
} ro_range;

/* SPEC 3.1: the steps k of [0, count) that a mask admits for row m; window 0 means no window. */
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

/* SPEC 3.2, 3.3: how many blocks a row of `cols` elements has, or how many groups; at least one,
 * even if there are no elements. */
RO_INLINE int64_t ro_blocks_of(int64_t cols, int64_t block) {
    return cols > block ? (cols + block - 1) / block : 1;
}

/* SPEC 13: x as rows of `half` pairs each. */
typedef struct {
    int64_t rows, positions, half;
    int64_t lines; /* rows of the tensor of positions, [lines, positions] */
    int64_t apart; /* rows of x that share a row of positions */
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

/* Returns the index, in the tensor of positions, of the position of row r. */
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
