/* Layers on images [N, H, W, C] and their backward passes. SPEC.md section 12. */
#include <string.h>

#include "repops/op_image.h"
#include "repops/op_norm.h"
#include "repops/op_reduce.h"
#include "verde/graph/tape.h"

/* ---- convolution ---- */

static vd_op conv_op(int bits, vd_conv_attr c) {
    return (vd_op){bits ? RO_OP_CONV2D_FIXED : RO_OP_CONV2D,
                   {[RO_CONV_STRIDE_H] = c.stride,
                    [RO_CONV_STRIDE_W] = c.stride,
                    [RO_CONV_PAD_H] = c.pad,
                    [RO_CONV_PAD_W] = c.pad,
                    [RO_CONV_DILATION_H] = c.dilation,
                    [RO_CONV_DILATION_W] = c.dilation,
                    [RO_CONV_GROUPS] = c.groups,
                    [RO_CONV_FIXED_BITS] = bits},
                   NULL};
}

vd_value vd_conv2d(vd_builder *b, vd_value x, vd_value weight, vd_conv_attr c) {
    const vd_op op = conv_op(b->products.forward, c);
    x = vd_stored_of(b, "input", x), weight = vd_widened(b, "weight", weight);
    vd_value out = VD_EMIT(b, "conv", op, x, weight);
    vd_record r = {
        .layer = VD_LAYER_CONV2D, .in = {x, weight, VD_NONE}, .out = out, .products = b->products};
    memcpy(r.attr, op.attr, sizeof r.attr);
    vd_tape_put(b, r);
    return out;
}

/* Emits a backward node with the layer's attributes and the shape of `like`. */
static vd_value image_gradient(vd_builder *b, const char *name, const vd_record *r, int op,
                               vd_value like, int32_t count, const vd_value *input) {
    ro_shape shape = *vd_shape_of(b, like);
    vd_op node = {.op = op, .shape = &shape};
    memcpy(node.attr, r->attr, sizeof node.attr);
    return vd_emit(b, name, node, count, input);
}

/* Emits a convolution's gradient, by products of `bits` bits, whatever the forward ones have. */
static vd_value conv_gradient(vd_builder *b, const char *name, const vd_record *r, int bits, int op,
                              vd_value like, const vd_value in[2]) {
    vd_record own = *r;
    own.attr[RO_CONV_FIXED_BITS] = bits;
    return image_gradient(b, name, &own, op, like, 2, in);
}

void vd_back_conv2d(vd_builder *b, const vd_record *r, vd_value dy) {
    const int x_bits = r->products.gradient_x, w_bits = r->products.gradient_w;
    const int dx = x_bits ? RO_OP_CONV2D_FIXED_DX : RO_OP_CONV2D_DX;
    const int dw = w_bits ? RO_OP_CONV2D_FIXED_DW : RO_OP_CONV2D_DW;
    vd_value x = r->in[0], w = r->in[1];
    if (vd_wants_gradient(b, x)) {
        const vd_value in[] = {dy, vd_read_again(b, "weight_again", w)};
        vd_accumulate(b, x, conv_gradient(b, "d_input", r, x_bits, dx, x, in));
    }
    if (vd_wants_gradient(b, w)) {
        const vd_value in[] = {vd_read_again(b, "input_again", x), dy};
        vd_accumulate(b, w, conv_gradient(b, "d_weight", r, w_bits, dw, w, in));
    }
}

/* ---- pooling ---- */

static vd_op pool_op(int op, vd_pool_attr p) {
    return (vd_op){
        op, {p.kernel[0], p.kernel[1], p.stride[0], p.stride[1], p.pad[0], p.pad[1]}, NULL};
}

static vd_value pool(vd_builder *b, const char *name, vd_layer layer, vd_op op, vd_value x,
                     vd_value index) {
    vd_value out = VD_EMIT(b, name, op, x);
    vd_record r = {.layer = layer, .in = {x, VD_NONE, VD_NONE}, .out = out, .saved = {index}};
    memcpy(r.attr, op.attr, sizeof r.attr);
    vd_tape_put(b, r);
    return out;
}

vd_value vd_max_pool2d(vd_builder *b, vd_value x, vd_pool_attr p) {
    vd_value index = VD_EMIT(b, "max_index", pool_op(RO_OP_MAX_POOL2D_INDEX, p), x);
    return pool(b, "max_pool", VD_LAYER_MAX_POOL2D, pool_op(RO_OP_MAX_POOL2D, p), x, index);
}

vd_value vd_avg_pool2d(vd_builder *b, vd_value x, vd_pool_attr p) {
    vd_op op = pool_op(RO_OP_AVG_POOL2D, p);
    op.attr[RO_AVG_POOL2D_COUNT_PAD] = p.count_pad;
    return pool(b, "avg_pool", VD_LAYER_AVG_POOL2D, op, x, VD_NONE);
}

vd_value vd_global_avg_pool2d(vd_builder *b, vd_value x) {
    const ro_shape *s = vd_shape_of(b, x);
    return vd_avg_pool2d(b, x, (vd_pool_attr){{s->dim[1], s->dim[2]}, {1, 1}, {0, 0}, 1});
}

void vd_back_max_pool2d(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_value in[] = {dy, r->saved[0]};
    vd_accumulate(b, r->in[0],
                  image_gradient(b, "d_max_pool", r, RO_OP_MAX_POOL2D_GRAD, r->in[0], 2, in));
}

void vd_back_avg_pool2d(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_accumulate(b, r->in[0],
                  image_gradient(b, "d_avg_pool", r, RO_OP_AVG_POOL2D_GRAD, r->in[0], 1, &dy));
}

/* ---- batch norm ---- */

static const float epsilon = 1e-5f;

static vd_value statistic(vd_builder *b, const char *name, int op, int64_t cols, int64_t rows,
                          int64_t per, int64_t left, int32_t count, const vd_value *input) {
    ro_shape shape = left == 1 ? VD_SHAPE(RO_F32, cols) : VD_SHAPE(RO_F32, left, cols);
    return vd_emit(b, name, (vd_op){op, {cols, rows, per}, &shape}, count, input);
}

vd_statistics vd_batch_statistics(vd_builder *b, vd_value x) {
    x = vd_stored_of(b, "x", x);
    const ro_shape *shape = vd_shape_of(b, x);
    const int64_t c = shape->dim[shape->ndim - 1], rows = ro_shape_numel(shape) / c;
    int64_t left = (rows + RO_COLUMN_GROUP - 1) / RO_COLUMN_GROUP, per = RO_COLUMN_GROUP;
    vd_statistics s = {.rows = rows};
    s.mean = statistic(b, "mean", RO_OP_BN_MEAN, c, 0, 0, left, 1, &x);
    s.sqdev = statistic(b, "sqdev", RO_OP_BN_SQDEV, c, 0, 0, left, 2, (vd_value[]){x, s.mean});
    for (; left > 1 && b->status == VD_OK; per *= RO_COLUMN_GROUP) {
        const vd_value both[] = {s.mean, s.sqdev};
        left = (left + RO_COLUMN_GROUP - 1) / RO_COLUMN_GROUP;
        s.mean = statistic(b, "mean", RO_OP_BN_MERGE_MEAN, c, rows, per, left, 1, both);
        s.sqdev = statistic(b, "sqdev", RO_OP_BN_MERGE_SQDEV, c, rows, per, left, 2, both);
    }
    return s;
}

static vd_value rstd_of(vd_builder *b, vd_value sqdev, int64_t rows) {
    vd_op op = {
        RO_OP_LN_RSTD, {[RO_LN_RSTD_N] = rows, [RO_LN_RSTD_EPS] = ro_attr_f32(epsilon)}, NULL};
    return VD_EMIT(b, "rstd", op, sqdev);
}

vd_value vd_batchnorm(vd_builder *b, vd_value x, vd_value gamma, vd_value beta, vd_statistics s) {
    vd_value rstd = rstd_of(b, s.sqdev, s.rows);
    vd_op op = {.op = RO_OP_BATCHNORM};
    x = vd_stored_of(b, "x", x);
    vd_value out = VD_EMIT(b, "norm", op, x, s.mean, rstd, gamma, beta);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_BATCHNORM,
                               .in = {x, gamma, beta},
                               .out = out,
                               .saved = {s.mean, rstd}});
    return out;
}

vd_value vd_batchnorm_eval(vd_builder *b, vd_value x, vd_value gamma, vd_value beta, vd_value mean,
                           vd_value variance) {
    vd_op op = {.op = RO_OP_BATCHNORM};
    return VD_EMIT(b, "norm", op, x, mean, rstd_of(b, variance, 1), gamma, beta);
}

static vd_value running(vd_builder *b, const char *name, vd_value r, vd_value now, float momentum,
                        double divisor) {
    vd_op op = {RO_OP_BN_RUNNING,
                {[RO_BN_RUNNING_MOMENTUM] = ro_attr_f32(momentum),
                 [RO_BN_RUNNING_DIVISOR] = ro_attr_f32((float)divisor)},
                NULL};
    return VD_EMIT(b, name, op, r, now);
}

vd_value vd_running_mean(vd_builder *b, vd_value r, vd_statistics s, float momentum) {
    return running(b, "running_mean", r, s.mean, momentum, 1);
}

vd_value vd_running_variance(vd_builder *b, vd_value r, vd_statistics s, float momentum) {
    return running(b, "running_var", r, s.sqdev, momentum, s.rows > 1 ? (double)(s.rows - 1) : 1);
}

void vd_back_batchnorm(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_value x = vd_read_again(b, "x_again", r->in[0]);
    vd_value gamma = r->in[1], mean = r->saved[0], rstd = r->saved[1];
    ro_shape row = *vd_shape_of(b, gamma);
    vd_value dbeta = vd_column_sum(b, "d_beta", RO_OP_SUM_ROWS, &row, 1, &dy);
    vd_value dgamma =
        vd_column_sum(b, "d_gamma", RO_OP_BN_DGAMMA, &row, 4, (vd_value[]){dy, x, mean, rstd});
    vd_op op = {.op = RO_OP_BN_DX};
    if (vd_wants_gradient(b, r->in[0]))
        vd_accumulate(b, r->in[0],
                      VD_EMIT(b, "d_input", op, dy, x, mean, rstd, gamma, dbeta, dgamma));
    vd_accumulate(b, gamma, dgamma);
    vd_accumulate(b, r->in[2], dbeta);
}
