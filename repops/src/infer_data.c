/* Valid calls of sources, data movement and elementwise operators. SPEC.md sections 5 and 6. */
#include "repops/src/infer.h"
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_number.h"

/* ---- sources and movement ---- */

/* The most windows that permute (SPEC.md 10.2) chooses from. */
#define RO_WINDOWS_MAX (INT64_C(1) << 40)

ro_status ro_check_fill(ro_check *c) {
    return ro_declared(c, RO_F32);
}

ro_status ro_check_normal(ro_check *c) {
    TRY(ro_want_range(c, RO_RANDOM_STREAM, 0, UINT32_MAX));
    return ro_declared(c, RO_F32);
}

ro_status ro_check_normal_at(ro_check *c) {
    TRY(ro_want_scalar_step(c, 0));
    return ro_check_normal(c);
}

ro_status ro_check_iota(ro_check *c) {
    TRY(ro_declared(c, RO_I32));
    if (c->call->output.ndim != 1 || c->call->output.dim[0] > INT64_C(1) << 31)
        return ro_refuse(c, "output must have one dimension of at most 2^31 elements");
    return RO_OK;
}

ro_status ro_check_permutation(ro_check *c) {
    TRY(ro_check_iota(c));
    TRY(ro_want_range(c, RO_PERMUTATION_STREAM, 0, UINT32_MAX));
    return ro_want_scalar_step(c, 0);
}

/* Wants data tensors, all inputs but the last, that hold windows of `length` tokens. */
static ro_status check_windows(ro_check *c, int64_t length) {
    int64_t windows = 0;
    for (int i = 0; i < c->call->input_count - 1; i++) {
        const int64_t more = (c->in[i].dim[0] - 1) / length;
        if (more < 1)
            return ro_refuse(c, "data holds no window of %lld + 1 tokens", (long long)length);
        if (more > RO_WINDOWS_MAX - windows)
            return ro_refuse(c, "data must have at most 2^40 windows");
        windows += more;
    }
    return RO_OK;
}

static ro_status check_data(ro_check *c) {
    for (int i = 0; i < c->call->input_count - 1; i++) {
        const int dtype = c->in[i].dtype;
        if ((dtype != RO_U8 && dtype != RO_U16 && dtype != RO_I32) || c->in[i].ndim != 1)
            return ro_refuse(c, "data must be u8, u16 or i32 with one dimension");
        TRY(ro_want_type(c, i, c->in[0].dtype));
    }
    return RO_OK;
}

ro_status ro_check_read_batch(ro_check *c) {
    const ro_shape *out = &c->call->output;
    TRY(ro_declared(c, RO_I32));
    TRY(ro_want_scalar_step(c, c->call->input_count - 1));
    TRY(check_data(c));
    if (out->ndim != 2)
        return ro_refuse(c, "output must be [rows, sequence]");
    TRY(ro_want_range(c, RO_READ_BATCH_STREAM, 0, UINT32_MAX));
    TRY(ro_want_range(c, RO_READ_BATCH_BATCH, 1, INT32_MAX));
    TRY(ro_want_range(c, RO_READ_BATCH_FIRST, 0, INT32_MAX));
    TRY(ro_want_range(c, RO_READ_BATCH_SHIFT, 0, 1));
    if (c->call->attr[RO_READ_BATCH_FIRST] + out->dim[0] > c->call->attr[RO_READ_BATCH_BATCH])
        return ro_refuse(c, "first + rows must be at most batch (%lld)",
                         (long long)c->call->attr[RO_READ_BATCH_BATCH]);
    if (out->dim[1] < 1)
        return ro_refuse(c, "a window has at least one token");
    return check_windows(c, out->dim[1]);
}

ro_status ro_check_embedding(ro_check *c) {
    TRY(ro_want_float(c, 0));
    TRY(ro_want_type(c, 1, RO_I32));
    if (c->in[0].ndim != 2 || c->in[1].ndim >= RO_MAX_DIMS)
        return ro_refuse(c, "table must be [V, C], ids at most %d dimensions", RO_MAX_DIMS - 1);
    c->want = c->in[1];
    c->want.dtype = c->in[0].dtype;
    c->want.dim[c->want.ndim++] = c->in[0].dim[1];
    return RO_OK;
}

ro_status ro_check_embedding_grad(ro_check *c) {
    const ro_shape *out = &c->call->output;
    TRY(ro_declared(c, RO_F32));
    TRY(ro_want_type(c, 0, RO_F32));
    TRY(ro_want_type(c, 1, RO_I32));
    if (out->ndim != 2 || c->in[0].dim[c->in[0].ndim - 1] != out->dim[1])
        return ro_refuse(c, "output must be [V, C] with C = last dimension of dy");
    if (NUMEL(1) > INT64_C(1) << 31)
        return ro_refuse(c, "at most 2^31 positions");
    return ro_want_per_last(c, 1, 0);
}

ro_status ro_check_split_heads(ro_check *c) {
    const ro_shape *x = &c->in[0];
    TRY(ro_want_range(c, RO_SPLIT_HEADS_PARTS, 1, 8));
    TRY(ro_want_range(c, RO_SPLIT_HEADS_PART, 0, c->call->attr[RO_SPLIT_HEADS_PARTS] - 1));
    TRY(ro_want_range(c, RO_SPLIT_HEADS_HEADS, 1, 1 << 20));
    int64_t cut = c->call->attr[RO_SPLIT_HEADS_PARTS] * c->call->attr[RO_SPLIT_HEADS_HEADS];
    if (x->ndim != 3 || x->dim[2] % cut != 0)
        return ro_refuse(c, "input must be [B, T, n] with n a multiple of %lld", (long long)cut);
    c->want = (ro_shape){
        x->dtype, 4, {x->dim[0], c->call->attr[RO_SPLIT_HEADS_HEADS], x->dim[1], x->dim[2] / cut}};
    return RO_OK;
}

ro_status ro_check_join_heads(ro_check *c) {
    const ro_shape *x = &c->in[0];
    if (x->ndim != 4)
        return ro_refuse(c, "inputs must be [B, H, T, D]");
    for (int i = 1; i < c->call->input_count; i++)
        TRY(ro_want_same(c, i, 0));
    int64_t width = x->dim[1] * x->dim[3] * c->call->input_count;
    c->want = (ro_shape){x->dtype, 3, {x->dim[0], x->dim[2], width}};
    return RO_OK;
}

ro_status ro_check_concat(ro_check *c) {
    int64_t sum = 0;
    for (int i = 0; i < c->call->input_count; i++) {
        TRY(ro_want_type(c, i, RO_F32));
        sum += NUMEL(i);
    }
    c->want = (ro_shape){RO_F32, 1, {sum}};
    return RO_OK;
}

/* ---- elementwise ---- */

ro_status ro_check_repeat(ro_check *c) {
    TRY(ro_all_f32(c));
    return ro_want_repeats(c);
}

ro_status ro_check_same_pair(ro_check *c) {
    TRY(ro_all_f32(c));
    return ro_want_same(c, 1, 0);
}

ro_status ro_check_compare(ro_check *c) {
    const int dtype = c->in[0].dtype;
    if (dtype != RO_F32 && dtype != RO_I32)
        return ro_refuse(c, "input 0 must be f32 or i32, got %s", ro_dtype_name(dtype));
    TRY(ro_want_type(c, 1, dtype));
    TRY(ro_want_range(c, RO_COMPARE_KIND, RO_EQUAL, RO_AT_LEAST));
    c->want = c->in[0];
    c->want.dtype = RO_I32;
    return ro_want_repeats(c);
}

ro_status ro_check_where(ro_check *c) {
    ro_shape choice = c->in[1];
    TRY(ro_want_type(c, 0, RO_I32));
    TRY(ro_want_same(c, 2, 1));
    choice.dtype = RO_I32;
    if (!ro_shape_equal(&c->in[0], &choice))
        return ro_refuse(c, "inputs 0 and 1 must have the same dimensions");
    c->want = c->in[1];
    return RO_OK;
}

ro_status ro_check_iadd(ro_check *c) {
    TRY(ro_want_type(c, 0, RO_I32));
    TRY(ro_want_type(c, 1, RO_I32));
    c->want = c->in[0];
    return ro_want_repeats(c);
}

ro_status ro_check_integer(ro_check *c) {
    TRY(ro_want_range(c, RO_INTEGER_KIND, RO_PRODUCT, RO_LARGER));
    return ro_check_iadd(c);
}

ro_status ro_check_round(ro_check *c) {
    TRY(ro_want_range(c, RO_ROUND_KIND, RO_DOWN, RO_TOWARD_ZERO));
    return ro_all_f32(c);
}

ro_status ro_check_dropout(ro_check *c) {
    TRY(ro_want_type(c, 0, RO_F32));
    TRY(ro_want_scalar_step(c, 1));
    TRY(ro_want_range(c, RO_DROPOUT_STREAM, 0, UINT32_MAX));
    TRY(ro_want_range(c, RO_DROPOUT_THRESHOLD, 0, UINT32_MAX));
    c->want = c->in[0];
    return RO_OK;
}

ro_status ro_check_cast_stochastic(ro_check *c) {
    TRY(ro_want_type(c, 0, RO_F32));
    TRY(ro_want_scalar_step(c, 1));
    TRY(ro_want_range(c, RO_CAST_STOCHASTIC_STREAM, 0, UINT32_MAX));
    c->want = c->in[0];
    c->want.dtype = RO_BF16;
    return RO_OK;
}
