/* Valid calls of operators on images. SPEC.md section 12. */
#include "repops/src/conv.h"
#include "repops/src/infer.h"
#include "repops/op_image.h"
#include "repops/op_reduce.h"

/* ---- convolution ---- */

static ro_status ro_check_conv_attrs(ro_check *c) {
    for (int i = 0; i < 2; i++) {
        TRY(ro_want_range(c, RO_CONV_STRIDE_H + i, 1, RO_CONV_MOST));
        TRY(ro_want_range(c, RO_CONV_PAD_H + i, 0, RO_CONV_MOST));
        TRY(ro_want_range(c, RO_CONV_DILATION_H + i, 1, RO_CONV_MOST));
    }
    return ro_want_range(c, RO_CONV_GROUPS, 1, INT32_MAX);
}

static ro_status ro_check_conv_sizes(ro_check *c, const ro_conv *v) {
    if (v->filters % v->groups != 0 || v->channels % v->groups != 0 ||
        v->depth != v->channels / v->groups)
        return ro_refuse(c,
                         "weights must be [KH, KW, channels / groups, filters]: %lld of %lld "
                         "channels, %lld filters, %lld groups",
                         (long long)v->depth, (long long)v->channels, (long long)v->filters,
                         (long long)v->groups);
    if (v->kernel[0] < 1 || v->kernel[1] < 1)
        return ro_refuse(c, "the kernel has no tap");
    if (v->out[0] < 1 || v->out[1] < 1)
        return ro_refuse(c, "the kernel does not fit into the padded image");
    return RO_OK;
}

ro_status ro_check_conv2d(ro_check *c) {
    const int op = ro_conv_kind(c->call->op);
    TRY(ro_all_f32(c));
    if (op != c->call->op)
        TRY(ro_want_fixed_bits(c, RO_CONV_FIXED_BITS));
    if (op != RO_OP_CONV2D)
        TRY(ro_declared(c, RO_F32));
    if (c->in[0].ndim != 4 || c->in[1].ndim != 4 ||
        (op != RO_OP_CONV2D && c->call->output.ndim != 4))
        return ro_refuse(c,
                         "images are [N, H, W, C], weights [KH, KW, channels / groups, filters]");
    TRY(ro_check_conv_attrs(c));
    const ro_conv v = ro_conv_of(c->call);
    TRY(ro_check_conv_sizes(c, &v));
    c->want = (ro_shape){RO_F32, 4, {v.batch, v.out[0], v.out[1], v.filters}};
    if (op != RO_OP_CONV2D && !ro_shape_equal(&c->in[op == RO_OP_CONV2D_DW], &c->want))
        return ro_refuse(c, "dy must be [%lld, %lld, %lld, %lld]", (long long)v.batch,
                         (long long)v.out[0], (long long)v.out[1], (long long)v.filters);
    return RO_OK;
}

/* ---- pooling ---- */

static ro_status ro_check_pool_attrs(ro_check *c) {
    for (int i = 0; i < 2; i++) {
        TRY(ro_want_range(c, RO_POOL_KERNEL_H + i, 1, RO_POOL_TAPS));
        TRY(ro_want_range(c, RO_POOL_STRIDE_H + i, 1, RO_CONV_MOST));
        TRY(ro_want_range(c, RO_POOL_PAD_H + i, 0, c->call->attr[RO_POOL_KERNEL_H + i] / 2));
    }
    if (c->call->attr[RO_POOL_KERNEL_H] * c->call->attr[RO_POOL_KERNEL_W] > RO_POOL_TAPS)
        return ro_refuse(c, "a window must have at most %d elements", RO_POOL_TAPS);
    if (c->call->op == RO_OP_AVG_POOL2D || c->call->op == RO_OP_AVG_POOL2D_GRAD)
        TRY(ro_want_range(c, RO_AVG_POOL2D_COUNT_PAD, 0, 1));
    return RO_OK;
}

/* Wants a dy like the pooling's output; max pooling has indices of that shape too. */
static ro_status ro_check_pool_grad(ro_check *c, const ro_pooling *v) {
    if (c->call->op == RO_OP_MAX_POOL2D_GRAD) {
        ro_shape index = c->want;
        index.dtype = RO_I32;
        if (!ro_shape_equal(&c->in[1], &index))
            return ro_refuse(c, "input 1 must be i32, of the shape of dy");
        if (ro_pool_covering(v) > RO_POOL_WINDOWS)
            return ro_refuse(c, "at most %d windows may see one element", RO_POOL_WINDOWS);
    }
    if (!ro_shape_equal(&c->in[0], &c->want))
        return ro_refuse(c, "dy must be [%lld, %lld, %lld, %lld]", (long long)v->batch,
                         (long long)v->out[0], (long long)v->out[1], (long long)v->channels);
    return RO_OK;
}

ro_status ro_check_pool(ro_check *c) {
    const int op = c->call->op;
    const int backward = op == RO_OP_MAX_POOL2D_GRAD || op == RO_OP_AVG_POOL2D_GRAD;
    TRY(ro_want_type(c, 0, RO_F32));
    if (backward)
        TRY(ro_declared(c, RO_F32));
    if (c->in[0].ndim != 4 || (backward && c->call->output.ndim != 4))
        return ro_refuse(c, "images are [N, H, W, C]");
    TRY(ro_check_pool_attrs(c));
    const ro_pooling v = ro_pooling_of(c->call);
    if (v.in[0] < 1 || v.in[1] < 1)
        return ro_refuse(c, "the image has no pixel");
    if (v.out[0] < 1 || v.out[1] < 1)
        return ro_refuse(c, "the window does not fit into the padded image");
    c->want = (ro_shape){RO_F32, 4, {v.batch, v.out[0], v.out[1], v.channels}};
    if (backward)
        return ro_check_pool_grad(c, &v);
    if (op == RO_OP_MAX_POOL2D_INDEX)
        c->want.dtype = RO_I32;
    return RO_OK;
}

/* ---- batch norm ---- */

ro_status ro_check_bn_columns(ro_check *c) {
    TRY(ro_check_view(c));
    const int64_t cols = c->call->attr[RO_COLUMNS_COLS];
    const int64_t groups = ro_blocks_of(cols > 0 ? NUMEL(0) / cols : 0, RO_COLUMN_GROUP);
    if (c->call->op == RO_OP_BN_SQDEV)
        TRY(ro_want_matrix(c, 1, groups, cols));
    if (c->call->op == RO_OP_BN_DGAMMA) {
        TRY(ro_want_same(c, 1, 0));
        TRY(ro_want_vector(c, 2, cols));
        TRY(ro_want_vector(c, 3, cols));
    }
    return ro_want_output(c, groups * cols);
}

ro_status ro_check_bn_merge(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(ro_declared(c, RO_F32));
    TRY(ro_want_range(c, RO_MERGE_COLS, 0, RO_MAX_NUMEL));
    TRY(ro_want_range(c, RO_MERGE_ROWS, 1, RO_MAX_NUMEL));
    TRY(ro_want_range(c, RO_MERGE_PER, 1, RO_MAX_NUMEL));
    const int64_t cols = c->call->attr[RO_MERGE_COLS], rows = c->call->attr[RO_MERGE_ROWS],
                  per = c->call->attr[RO_MERGE_PER];
    const int64_t count = (rows + per - 1) / per;
    TRY(ro_want_matrix(c, 0, count, cols));
    if (c->call->op == RO_OP_BN_MERGE_SQDEV)
        TRY(ro_want_same(c, 1, 0));
    return ro_want_output(c, ro_blocks_of(count, RO_COLUMN_GROUP) * cols);
}

/* Wants x and four of one element per channel (batchnorm), or dy, x and five such (bn_dx). */
ro_status ro_check_batchnorm(ro_check *c) {
    TRY(ro_all_f32(c));
    const int backward = c->call->op == RO_OP_BN_DX;
    if (backward)
        TRY(ro_want_same(c, 1, 0));
    for (int i = 1 + backward; i < c->call->input_count; i++)
        TRY(ro_want_vector(c, i, c->in[0].dim[c->in[0].ndim - 1]));
    return RO_OK;
}

/* ---- batches ---- */

static ro_status ro_check_record(ro_check *c, int64_t bytes) {
    const int64_t record = c->call->attr[RO_RECORDS_RECORD],
                  offset = c->call->attr[RO_RECORDS_OFFSET];
    if (offset + bytes > record)
        return ro_refuse(c, "%lld bytes from offset %lld on do not fit into a record of %lld",
                         (long long)bytes, (long long)offset, (long long)record);
    if (c->in[0].dim[0] / record < 1)
        return ro_refuse(c, "data holds no record of %lld bytes", (long long)record);
    return RO_OK;
}

ro_status ro_check_read_images(ro_check *c) {
    const ro_shape *out = &c->call->output;
    const int images = c->call->op == RO_OP_READ_IMAGES;
    TRY(ro_declared(c, images ? RO_F32 : RO_I32));
    TRY(ro_want_scalar_step(c, 1));
    if (c->in[0].dtype != RO_U8 || c->in[0].ndim != 1)
        return ro_refuse(c, "data must be u8 with one dimension");
    if (out->ndim != (images ? 4 : 1))
        return ro_refuse(c, "output must be %s", images ? "[rows, H, W, C]" : "[rows]");
    TRY(ro_want_range(c, RO_RECORDS_STREAM, 0, UINT32_MAX));
    TRY(ro_want_range(c, RO_RECORDS_BATCH, 1, INT32_MAX));
    TRY(ro_want_range(c, RO_RECORDS_FIRST, 0, INT32_MAX));
    TRY(ro_want_range(c, RO_RECORDS_RECORD, 1, RO_MAX_NUMEL));
    TRY(ro_want_range(c, RO_RECORDS_OFFSET, 0, RO_MAX_NUMEL));
    if (c->call->attr[RO_RECORDS_FIRST] + out->dim[0] > c->call->attr[RO_RECORDS_BATCH])
        return ro_refuse(c, "first + rows must be at most batch (%lld)",
                         (long long)c->call->attr[RO_RECORDS_BATCH]);
    const int64_t bytes = images ? out->dim[1] * out->dim[2] * out->dim[3] : 1;
    return ro_check_record(c, bytes);
}
