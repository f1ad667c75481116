/* Reverse mode over the tape. One function per layer computes its inputs' gradients from its
 * output's. */
#include <stdlib.h>
#include <string.h>

#include "repops/operators.h"
#include "verde/graph/tape.h"

vd_value vd_grad(const vd_builder *b, vd_value value) {
    return value < b->grad_count ? b->grad[value] : VD_NONE;
}

/* Returns whether a value needs a gradient. Values made by the backward pass have none. */
bool vd_wants_gradient(const vd_builder *b, vd_value value) {
    return b->status == VD_OK && value < b->grad_count && b->trained[value];
}

void vd_accumulate(vd_builder *b, vd_value value, vd_value gradient) {
    if (!vd_wants_gradient(b, value))
        return;
    vd_value *have = &b->grad[value];
    *have = *have == VD_NONE
                ? gradient
                : VD_EMIT(b, "d_accumulate", ((vd_op){.op = RO_OP_ADD}), *have, gradient);
}

/* out = x w, or x w^T. The transposition of w is in dx where it is not in the forward product. */
static void back_matmul(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_value x = r->in[0], w = r->in[1];
    bool transposed = r->number == 2;
    const vd_op product = vd_product_op(r->products.gradient_x, transposed ? 0 : 2);
    const vd_op outer = vd_product_op(r->products.gradient_w, 1);
    if (vd_wants_gradient(b, x))
        vd_accumulate(b, x,
                      VD_EMIT(b, "d_input", product, dy, vd_read_again(b, "weight_again", w)));
    if (!vd_wants_gradient(b, w))
        return;
    x = vd_read_again(b, "input_again", x);
    vd_accumulate(b, w,
                  transposed ? VD_EMIT(b, "d_weight", outer, dy, x)
                             : VD_EMIT(b, "d_weight", outer, x, dy));
}

static void back_embedding(vd_builder *b, const vd_record *r, vd_value dy) {
    ro_shape shape = *vd_shape_of(b, r->in[0]);
    shape.dtype = RO_F32;
    vd_op op = {.op = RO_OP_EMBEDDING_GRAD, .shape = &shape};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_table", op, dy, r->saved[0]));
}

/* Emits the backward nodes of a layer norm. x is its input, computed again. */
static void back_normed(vd_builder *b, const vd_record *r, vd_value x, vd_value dy) {
    vd_value gamma = r->in[1], mean = r->saved[0], rstd = r->saved[1];
    const int64_t c = vd_shape_of(b, gamma)->dim[0];
    vd_value sg = vd_reduce(b, "d_sum_g", RO_OP_REDUCE_DOT, c, 2, (vd_value[]){dy, gamma});
    vd_value sgx =
        vd_reduce(b, "d_sum_gx", RO_OP_REDUCE_LN_GX, c, 5, (vd_value[]){dy, gamma, x, mean, rstd});
    vd_accumulate(
        b, r->in[0],
        VD_EMIT(b, "d_input", ((vd_op){.op = RO_OP_LN_DX}), dy, gamma, x, mean, rstd, sg, sgx));
}

static void back_norm(vd_builder *b, const vd_record *r, vd_value dy) {
    const vd_value gamma = r->in[1], beta = r->in[2];
    const vd_value x = vd_read_again(b, "x_again", r->in[0]);
    const vd_value in[] = {dy, x, r->saved[0], r->saved[1]};
    const ro_shape row = *vd_shape_of(b, gamma);
    if (vd_wants_gradient(b, r->in[0]))
        back_normed(b, r, x, dy);
    if (vd_wants_gradient(b, gamma))
        vd_accumulate(b, gamma, vd_column_sum(b, "d_gamma", RO_OP_LN_DGAMMA, &row, 4, in));
    if (vd_wants_gradient(b, beta))
        vd_accumulate(b, beta, vd_column_sum(b, "d_beta", RO_OP_SUM_ROWS, &row, 1, &dy));
}

/* Drops the gradient with the same mask: the same random stream gives it again. */
static void back_dropout(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_accumulate(b, r->in[0], vd_emit_dropout(b, "d_dropout", dy, r->dropout));
}

static void back_xent(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_accumulate(b, r->in[0],
                  VD_EMIT(b, "d_logits", ((vd_op){.op = RO_OP_XENT_GRAD}), r->in[0], r->saved[0],
                          r->saved[1], r->saved[2], dy));
}

/* The switch has no default, so that the compiler names a layer without a backward rule. */
static vd_backward_fn *rule_of(vd_layer layer) {
    switch (layer) {
    case VD_LAYER_ADD: return vd_back_add;
    case VD_LAYER_MATMUL: return back_matmul;
    case VD_LAYER_EMBEDDING: return back_embedding;
    case VD_LAYER_NORM: return back_norm;
    case VD_LAYER_DROPOUT: return back_dropout;
    case VD_LAYER_ATTENTION: return vd_back_attention;
    case VD_LAYER_GROUPED_ATTENTION: return vd_back_grouped_attention;
    case VD_LAYER_XENT: return back_xent;
    case VD_LAYER_MUL: return vd_back_mul;
    case VD_LAYER_SUB: return vd_back_sub;
    case VD_LAYER_DIV: return vd_back_div;
    case VD_LAYER_SCALE: return vd_back_scale;
    case VD_LAYER_OPERATOR: return vd_back_operator;
    case VD_LAYER_TRANSPOSE: return vd_back_transpose;
    case VD_LAYER_SLICE: return vd_back_slice;
    case VD_LAYER_PAD: return vd_back_pad;
    case VD_LAYER_GATHER: return vd_back_gather;
    case VD_LAYER_CONCAT: return vd_back_concat;
    case VD_LAYER_RESHAPE: return vd_back_reshape;
    case VD_LAYER_ROPE: return vd_back_rope;
    case VD_LAYER_SOFTMAX: return vd_back_softmax;
    case VD_LAYER_LOG_SOFTMAX: return vd_back_log_softmax;
    case VD_LAYER_XENT_IGNORE: return vd_back_xent_ignore;
    case VD_LAYER_XENT_MEAN: return vd_back_xent_mean;
    case VD_LAYER_RMSNORM: return vd_back_rmsnorm;
    case VD_LAYER_SUM_AXIS: return vd_back_sum_axis;
    case VD_LAYER_MEAN_AXIS: return vd_back_mean_axis;
    case VD_LAYER_MAX_AXIS: return vd_back_max_axis;
    case VD_LAYER_CONV2D: return vd_back_conv2d;
    case VD_LAYER_MAX_POOL2D: return vd_back_max_pool2d;
    case VD_LAYER_AVG_POOL2D: return vd_back_avg_pool2d;
    case VD_LAYER_BATCHNORM: return vd_back_batchnorm;
    case VD_LAYER_MAX: return vd_back_max;
    case VD_LAYER_MIN: return vd_back_min;
    case VD_LAYER_WHERE: return vd_back_where;
    case VD_LAYER_CAST: return vd_back_cast;
    }
    return NULL;
}

static bool reads_trained(const vd_builder *b, const vd_record *r) {
    bool any = false;
    for (int i = 0; i < 3; i++)
        any |= vd_wants_gradient(b, r->in[i]);
    return any;
}

/* Marks the values that have gradients, from inputs to outputs: the tape is in forward order. */
static void mark_trained(vd_builder *b) {
    const uint32_t leaves = vd_state_sources(b->program, b->graph);
    for (uint32_t i = 0; i < leaves; i++)
        b->trained[i] = true;
    for (uint32_t i = 0; i < b->tape_count; i++)
        b->trained[b->tape[i].out] |= reads_trained(b, &b->tape[i]);
}

static bool start(vd_builder *b, vd_value loss, vd_value gradient) {
    uint32_t count = vd_source_count(b->program, b->graph) + b->graph->node_count;
    free(b->grad);
    free(b->trained);
    b->grad_count = 0;
    b->grad = malloc(count * sizeof *b->grad);
    b->trained = calloc(count, sizeof *b->trained);
    if (!b->grad || !b->trained) {
        vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
        return false;
    }
    b->grad_count = count;
    memset(b->grad, 0xff, count * sizeof *b->grad); /* VD_NONE */
    b->grad[loss] = gradient;
    mark_trained(b);
    return true;
}

void vd_backward(vd_builder *b, vd_value loss, float weight) {
    ro_shape shape = *vd_shape_of(b, loss);
    vd_op fill = {RO_OP_FILL, {[RO_FILL_VALUE] = ro_attr_f32(weight)}, &shape};
    vd_backward_from(b, loss, vd_emit(b, "d_loss", fill, 0, NULL));
}

void vd_backward_from(vd_builder *b, vd_value loss, vd_value gradient) {
    if (b->status != VD_OK || !start(b, loss, gradient))
        return;
    for (uint32_t i = b->tape_count; i-- > 0 && b->status == VD_OK;) {
        const vd_record *r = &b->tape[i];
        vd_value dy = b->grad[r->out];
        if (dy == VD_NONE || !reads_trained(b, r))
            continue;
        memcpy(b->scope, r->scope, sizeof b->scope);
        vd_backward_fn *rule = rule_of(r->layer);
        if (rule)
            rule(b, r, dy);
        else
            vd_builder_fail(b, VD_ERR_USAGE, "no gradient rule for layer %d", (int)r->layer);
    }
    b->tape_count = 0;
}
