/* Valid calls of operators that rearrange elements along axes. SPEC.md sections 5 and 13. */
#include "repops/src/infer.h"
#include "repops/op_along.h"
#include "repops/op_attention.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"

static ro_status want_axis(ro_check *c) {
    return ro_want_range(c, RO_ALONG_AXIS, 0, c->in[0].ndim - 1);
}

ro_status ro_check_transpose(ro_check *c) {
    const ro_shape *x = &c->in[0];
    int seen = 0;
    c->want = (ro_shape){.dtype = x->dtype, .ndim = x->ndim};
    for (int i = 0; i < x->ndim; i++) {
        TRY(ro_want_range(c, RO_TRANSPOSE_D0 + i, 0, x->ndim - 1));
        c->want.dim[i] = x->dim[c->call->attr[RO_TRANSPOSE_D0 + i]];
        seen |= 1 << c->call->attr[RO_TRANSPOSE_D0 + i];
    }
    for (int i = x->ndim; i < RO_MAX_DIMS; i++)
        TRY(ro_want_range(c, RO_TRANSPOSE_D0 + i, 0, 0));
    if (seen != (1 << x->ndim) - 1)
        return ro_refuse(c, "each dimension must be named once");
    return RO_OK;
}

ro_status ro_check_slice(ro_check *c) {
    TRY(want_axis(c));
    const int64_t axis = c->call->attr[RO_SLICE_AXIS], n = c->in[0].dim[axis];
    TRY(ro_want_range(c, RO_SLICE_START, 0, n));
    TRY(ro_want_range(c, RO_SLICE_LENGTH, 0, n));
    TRY(ro_want_range(c, RO_SLICE_STEP, 1, RO_MAX_NUMEL));
    const int64_t start = c->call->attr[RO_SLICE_START], length = c->call->attr[RO_SLICE_LENGTH],
                  step = c->call->attr[RO_SLICE_STEP];
    if (length > 0 && (start >= n || length - 1 > (n - 1 - start) / step))
        return ro_refuse(c, "start + (length - 1) step must be below %lld", (long long)n);
    c->want = c->in[0];
    c->want.dim[axis] = length;
    return RO_OK;
}

/* Wants an attribute that holds the bits of an element of the output's type. */
static ro_status want_element(ro_check *c, int attr, int dtype) {
    const int bits = 8 * (int)ro_dtype_size(dtype);
    return ro_want_range(c, attr, 0, (INT64_C(1) << bits) - 1);
}

ro_status ro_check_pad(ro_check *c) {
    TRY(want_axis(c));
    TRY(ro_want_range(c, RO_PAD_BEFORE, 0, RO_MAX_NUMEL));
    TRY(ro_want_range(c, RO_PAD_AFTER, 0, RO_MAX_NUMEL));
    TRY(ro_want_range(c, RO_PAD_STEP, 1, RO_MAX_NUMEL));
    TRY(want_element(c, RO_PAD_VALUE, c->in[0].dtype));
    const int64_t axis = c->call->attr[RO_PAD_AXIS], n = c->in[0].dim[axis],
                  step = c->call->attr[RO_PAD_STEP];
    if (n - 1 > RO_MAX_NUMEL / step)
        return ro_refuse(c, "output would have more than 2^40 elements");
    const int64_t length = n > 0 ? (n - 1) * step + 1 : 0;
    c->want = c->in[0];
    c->want.dim[axis] = c->call->attr[RO_PAD_BEFORE] + length + c->call->attr[RO_PAD_AFTER];
    return RO_OK;
}

/* Gives the shape of x with the axis replaced by the dimensions of ids. */
static ro_status gathered(ro_check *c, const ro_shape *x, const ro_shape *ids, ro_shape *out) {
    const int64_t axis = c->call->attr[RO_ALONG_AXIS];
    if (x->ndim - 1 + ids->ndim > RO_MAX_DIMS)
        return ro_refuse(c, "more than %d dimensions", RO_MAX_DIMS);
    *out = (ro_shape){.dtype = x->dtype};
    for (int64_t i = 0; i < axis; i++)
        out->dim[out->ndim++] = x->dim[i];
    for (int i = 0; i < ids->ndim; i++)
        out->dim[out->ndim++] = ids->dim[i];
    for (int64_t i = axis + 1; i < x->ndim; i++)
        out->dim[out->ndim++] = x->dim[i];
    return RO_OK;
}

ro_status ro_check_gather(ro_check *c) {
    TRY(want_axis(c));
    TRY(ro_want_type(c, 1, RO_I32));
    return gathered(c, &c->in[0], &c->in[1], &c->want);
}

ro_status ro_check_gather_grad(ro_check *c) {
    const ro_shape *out = &c->call->output;
    ro_shape dy;
    TRY(ro_declared(c, RO_F32));
    TRY(ro_want_range(c, RO_GATHER_GRAD_AXIS, 0, out->ndim - 1));
    TRY(ro_want_type(c, 1, RO_I32));
    if (NUMEL(1) > INT64_C(1) << 31)
        return ro_refuse(c, "at most 2^31 positions");
    TRY(gathered(c, out, &c->in[1], &dy));
    if (!ro_shape_equal(&dy, &c->in[0]))
        return ro_refuse(c, "dy must be what a gather from the output gives");
    return RO_OK;
}

/* Wants an input that has the shape of the first one except along the axis. */
static ro_status want_joined(ro_check *c, int input) {
    const ro_shape *first = &c->in[0], *x = &c->in[input];
    TRY(ro_want_type(c, input, first->dtype));
    if (x->ndim != first->ndim)
        return ro_refuse(c, "input %d must have %d dimensions", input, first->ndim);
    for (int i = 0; i < x->ndim; i++)
        if (i != c->call->attr[RO_ALONG_AXIS] && x->dim[i] != first->dim[i])
            return ro_refuse(c, "dimension %d of input %d must be %lld, got %lld", i, input,
                             (long long)first->dim[i], (long long)x->dim[i]);
    return RO_OK;
}

ro_status ro_check_concat_axis(ro_check *c) {
    TRY(want_axis(c));
    const int64_t axis = c->call->attr[RO_CONCAT_AXIS_AXIS];
    c->want = c->in[0];
    for (int i = 1; i < c->call->input_count; i++) {
        TRY(want_joined(c, i));
        c->want.dim[axis] += c->in[i].dim[axis];
    }
    return RO_OK;
}

ro_status ro_check_put_rows(ro_check *c) {
    TRY(want_axis(c));
    TRY(want_joined(c, 1));
    TRY(ro_want_scalar_step(c, 2));
    c->want = c->in[0];
    return RO_OK;
}

ro_status ro_check_cast(ro_check *c) {
    TRY(ro_want_range(c, RO_CAST_DTYPE, RO_F32, RO_I8));
    c->want = c->in[0];
    c->want.dtype = (int32_t)c->call->attr[RO_CAST_DTYPE];
    return RO_OK;
}

ro_status ro_check_reshape(ro_check *c) {
    TRY(ro_declared(c, c->in[0].dtype));
    return ro_want_output(c, NUMEL(0));
}

/* ---- rotary position embedding ---- */

enum { ROPE_PAIRS_MAX = 1 << 19 };

static ro_status want_number(ro_check *c, int attr, float least, float below) {
    const float got = ro_attr_to_f32(c->call->attr[attr]);
    if (got >= least && got < below)
        return RO_OK;
    return ro_refuse(c, "%s must be at least %g and below %g, got %g",
                     ro_op_describe(c->call->op)->attr[attr].name, (double)least, (double)below,
                     (double)got);
}

ro_status ro_check_rope_turns(ro_check *c) {
    const ro_shape *out = &c->call->output;
    TRY(ro_declared(c, RO_I32));
    TRY(want_number(c, RO_ROPE_TURNS_BASE, 1, 0x1p32f));
    TRY(ro_want_range(c, RO_ROPE_TURNS_KIND, RO_ROPE_PLAIN, RO_ROPE_LLAMA3));
    if (out->ndim != 2 || out->dim[0] > ROPE_PAIRS_MAX || out->dim[1] != 2)
        return ro_refuse(c, "output must be [h, 2], h at most %d", ROPE_PAIRS_MAX);
    const int64_t kind = c->call->attr[RO_ROPE_TURNS_KIND];
    if (kind != RO_ROPE_PLAIN)
        TRY(want_number(c, RO_ROPE_TURNS_FACTOR, 1, 0x1p32f));
    else
        TRY(ro_want_range(c, RO_ROPE_TURNS_FACTOR, 0, 0));
    if (kind != RO_ROPE_LLAMA3) {
        for (int i = RO_ROPE_TURNS_LOW; i <= RO_ROPE_TURNS_ORIGINAL; i++)
            TRY(ro_want_range(c, i, 0, 0));
        return RO_OK;
    }
    TRY(want_number(c, RO_ROPE_TURNS_LOW, 0x1p-8f, 0x1p14f));
    TRY(want_number(c, RO_ROPE_TURNS_HIGH, 0x1p-8f, 0x1p14f));
    if (c->call->attr[RO_ROPE_TURNS_LOW] >= c->call->attr[RO_ROPE_TURNS_HIGH])
        return ro_refuse(c, "low must be below high");
    return ro_want_range(c, RO_ROPE_TURNS_ORIGINAL, 1, INT32_MAX);
}

ro_status ro_check_rope(ro_check *c) {
    const ro_shape *x = &c->in[0];
    TRY(ro_want_type(c, 0, RO_F32));
    TRY(ro_want_type(c, 1, RO_I32));
    TRY(ro_want_type(c, 2, RO_I32));
    TRY(ro_want_range(c, RO_ROPE_PAIRS, 0, 1));
    TRY(ro_want_range(c, RO_ROPE_INVERSE, 0, 1));
    if (x->ndim < 2 || x->dim[x->ndim - 1] % 2 != 0 || x->dim[x->ndim - 1] > 2 * ROPE_PAIRS_MAX)
        return ro_refuse(c, "input must be [..., T, D] with an even D of at most %d",
                         2 * ROPE_PAIRS_MAX);
    const int64_t positions = x->dim[x->ndim - 2];
    if (x->ndim < 3 || NUMEL(1) == positions)
        TRY(ro_want_vector(c, 1, positions));
    else
        TRY(ro_want_matrix(c, 1, x->dim[0], positions));
    TRY(ro_want_matrix(c, 2, x->dim[x->ndim - 1] / 2, 2));
    c->want = *x;
    return RO_OK;
}

/* ---- reductions along an axis, and back: SPEC.md sections 3.3 and 3.4 ---- */

ro_status ro_check_axis_groups(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(want_axis(c));
    int64_t *n = &c->want.dim[c->call->attr[RO_ALONG_AXIS]];
    *n = ro_blocks_of(*n, RO_COLUMN_GROUP);
    return RO_OK;
}

ro_status ro_check_argmax(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(want_axis(c));
    int64_t *n = &c->want.dim[c->call->attr[RO_ARGMAX_AXIS]];
    if (*n < 1 || *n > INT64_C(1) << 31)
        return ro_refuse(c, "1 to 2^31 elements along the axis, got %lld", (long long)*n);
    c->want.dtype = RO_I32;
    *n = 1;
    return RO_OK;
}

/* Wants a last input of length 1 along the axis; along it, the output's length is attribute 1. */
ro_status ro_check_expand(ro_check *c) {
    const ro_shape *x = &c->in[c->call->input_count - 1];
    TRY(want_axis(c));
    TRY(ro_want_range(c, RO_EXPAND_COUNT, 0, RO_MAX_NUMEL));
    if (c->call->attr[RO_EXPAND_AXIS] >= x->ndim || x->dim[c->call->attr[RO_EXPAND_AXIS]] != 1)
        return ro_refuse(c, "an input must have length 1 along the axis");
    c->want = *x;
    c->want.dim[c->call->attr[RO_EXPAND_AXIS]] = c->call->attr[RO_EXPAND_COUNT];
    return RO_OK;
}

ro_status ro_check_max_grad(ro_check *c) {
    ro_shape like = c->in[1];
    TRY(ro_want_type(c, 1, RO_F32));
    TRY(ro_check_expand(c));
    TRY(ro_want_range(c, RO_MAX_GRAD_COUNT, 0, INT64_C(1) << 31));
    like.dtype = RO_I32;
    if (!ro_shape_equal(&c->in[0], &like))
        return ro_refuse(c, "input 0 must be i32 with the shape of input 1");
    return RO_OK;
}

/* ---- places along an axis, order and running totals ---- */

/* Wants an input i with the dimensions of x except along the axis. */
static ro_status want_lines(ro_check *c, int i) {
    ro_shape like = c->in[0];
    const int64_t axis = c->call->attr[RO_ALONG_AXIS];
    like.dtype = c->in[i].dtype;
    if (c->in[i].ndim == like.ndim)
        like.dim[axis] = c->in[i].dim[axis];
    if (!ro_shape_equal(&like, &c->in[i]))
        return ro_refuse(c, "input %d must have the dimensions of input 0 but along the axis", i);
    if (like.dim[axis] > INT64_C(1) << 31)
        return ro_refuse(c, "at most 2^31 elements along the axis");
    return RO_OK;
}

static ro_status want_i32(ro_check *c, int i) {
    return c->in[i].dtype == RO_I32 ? RO_OK : ro_want_type(c, i, RO_F32);
}

ro_status ro_check_take_along(ro_check *c) {
    TRY(want_axis(c));
    TRY(ro_want_type(c, 1, RO_I32));
    TRY(want_lines(c, 1));
    c->want = c->in[1];
    c->want.dtype = c->in[0].dtype;
    return RO_OK;
}

ro_status ro_check_put_along(ro_check *c) {
    TRY(want_axis(c));
    TRY(ro_want_range(c, RO_PUT_ALONG_KIND, RO_PUT_LAST, RO_PUT_MIN));
    TRY(want_i32(c, 0));
    TRY(ro_want_type(c, 1, RO_I32));
    TRY(ro_want_type(c, 2, c->in[0].dtype));
    TRY(want_lines(c, 1));
    TRY(want_lines(c, 2));
    if (c->in[1].dim[c->call->attr[RO_ALONG_AXIS]] != c->in[2].dim[c->call->attr[RO_ALONG_AXIS]])
        return ro_refuse(c, "inputs 1 and 2 must have the same dimensions");
    c->want = c->in[0];
    return RO_OK;
}

static ro_status check_lines(ro_check *c) {
    TRY(want_axis(c));
    TRY(want_i32(c, 0));
    c->want = c->in[0];
    return want_lines(c, 0);
}

ro_status ro_check_argsort(ro_check *c) {
    TRY(ro_want_range(c, RO_ARGSORT_DESCENDING, 0, 1));
    TRY(check_lines(c));
    c->want.dtype = RO_I32;
    return RO_OK;
}

ro_status ro_check_running(ro_check *c) {
    TRY(ro_want_range(c, RO_RUNNING_KIND, RO_RUNNING_SUM,
                      c->in[0].dtype == RO_I32 ? RO_RUNNING_PRODUCT : RO_RUNNING_LOG_SUM));
    return check_lines(c);
}

ro_status ro_check_isum(ro_check *c) {
    TRY(ro_want_type(c, 0, RO_I32));
    TRY(check_lines(c));
    c->want.dim[c->call->attr[RO_ISUM_AXIS]] = 1;
    return RO_OK;
}
