/* Layers, forward. Each appends a record, from which autodiff.c builds its backward nodes. */
#include <stdlib.h>
#include <string.h>

#include "repops/operators.h"
#include "verde/graph/tape.h"

void vd_tape_put(vd_builder *b, vd_record record) {
    if (b->tape_count == b->tape_capacity) {
        uint32_t capacity = b->tape_capacity ? 2 * b->tape_capacity : 64;
        vd_record *grown = realloc(b->tape, capacity * sizeof *grown);
        if (!grown) {
            vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
            return;
        }
        b->tape = grown;
        b->tape_capacity = capacity;
    }
    memcpy(record.scope, b->scope, sizeof record.scope);
    b->tape[b->tape_count++] = record;
}

vd_op vd_matmul_op(int batch_dims, int trans, float alpha, int chunk, int mask) {
    return (vd_op){RO_OP_MATMUL,
                   {[RO_MATMUL_BATCH_DIMS] = batch_dims,
                    [RO_MATMUL_TRANS] = trans,
                    [RO_MATMUL_ALPHA] = ro_attr_f32(alpha),
                    [RO_MATMUL_CHUNK] = chunk,
                    [RO_MATMUL_MASK] = mask},
                   NULL};
}

vd_products vd_products_alike(int32_t bits) {
    return (vd_products){bits, bits, bits};
}

vd_op vd_product_op(int bits, int trans) {
    if (bits == 0)
        return vd_matmul_op(0, trans, 1.0f, RO_DOT_CHUNK, 0);
    return (vd_op){RO_OP_MATMUL_FIXED,
                   {[RO_MATMUL_FIXED_TRANS] = trans,
                    [RO_MATMUL_FIXED_ALPHA] = ro_attr_f32(1.0f),
                    [RO_MATMUL_FIXED_BITS] = bits},
                   NULL};
}

static vd_value matmul(vd_builder *b, vd_value x, vd_value weight, int trans) {
    if (b->products.forward || b->products.gradient_x) /* products in fixed point read f32 only */
        weight = vd_widened(b, "weight", weight);
    x = vd_stored_of(b, "input", x);
    vd_value out = VD_EMIT(b, "matmul", vd_product_op(b->products.forward, trans), x, weight);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_MATMUL,
                               .in = {x, weight, VD_NONE},
                               .out = out,
                               .number = trans,
                               .products = b->products});
    return out;
}

vd_value vd_linear(vd_builder *b, vd_value x, vd_value weight, vd_value bias) {
    return vd_add(b, "bias", matmul(b, x, weight, 0), bias);
}

vd_value vd_project(vd_builder *b, vd_value x, vd_value weight) {
    return matmul(b, x, weight, 0);
}

vd_value vd_project_rows(vd_builder *b, vd_value x, vd_value weight) {
    return matmul(b, x, weight, 2);
}

vd_value vd_embedding(vd_builder *b, const char *name, vd_value table, vd_value ids) {
    vd_value out = VD_EMIT(b, name, ((vd_op){.op = RO_OP_EMBEDDING}), table, ids);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_EMBEDDING,
                               .in = {table, VD_NONE, VD_NONE},
                               .out = out,
                               .saved = {ids}});
    return out;
}

vd_value vd_layernorm(vd_builder *b, vd_value x, vd_value gamma, vd_value beta, float eps) {
    x = vd_stored_of(b, "x", x);
    const ro_shape *shape = vd_shape_of(b, x);
    int64_t c = shape->dim[shape->ndim - 1];
    vd_value sum = vd_reduce(b, "sum", RO_OP_REDUCE_SUM, c, 1, &x);
    vd_value mean = vd_div_const(b, "mean", sum, (double)c);
    vd_value ss = vd_reduce(b, "sqdev", RO_OP_REDUCE_SQDEV, c, 2, (vd_value[]){x, mean});
    vd_op rstd_op = {
        RO_OP_LN_RSTD, {[RO_LN_RSTD_N] = c, [RO_LN_RSTD_EPS] = ro_attr_f32(eps)}, NULL};
    vd_value rstd = VD_EMIT(b, "rstd", rstd_op, ss);
    vd_value out = VD_EMIT(b, "norm", ((vd_op){.op = RO_OP_LAYERNORM}), x, mean, rstd, gamma, beta);
    vd_tape_put(
        b, (vd_record){
               .layer = VD_LAYER_NORM, .in = {x, gamma, beta}, .out = out, .saved = {mean, rstd}});
    return out;
}

/* An element is dropped if its 32-bit random word is below rate * 2^32. */
vd_value vd_emit_dropout(vd_builder *b, const char *name, vd_value x, vd_dropout_attr dropout) {
    double rate = dropout.rate;
    int64_t threshold = (int64_t)(rate * 4294967296.0 + 0.5);
    float scale = (float)(1.0 / (1.0 - rate));
    const vd_op op = {RO_OP_DROPOUT,
                      {[RO_DROPOUT_SEED] = (int64_t)dropout.seed,
                       [RO_DROPOUT_STREAM] = dropout.stream,
                       [RO_DROPOUT_THRESHOLD] = threshold,
                       [RO_DROPOUT_SCALE] = ro_attr_f32(scale)},
                      NULL};
    const vd_value out = VD_EMIT(b, name, op, x, vd_step_value(b));
    vd_move(b, out, RO_DROPOUT_STREAM, dropout.slope);
    return out;
}

vd_value vd_dropout(vd_builder *b, const char *name, vd_value x, vd_dropout_attr dropout) {
    if (dropout.rate == 0)
        return x;
    vd_value out = vd_emit_dropout(b, name, x, dropout);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_DROPOUT,
                               .in = {x, VD_NONE, VD_NONE},
                               .out = out,
                               .dropout = dropout});
    return out;
}

vd_value vd_xent(vd_builder *b, vd_value logits, vd_value ids) {
    const ro_shape *shape = vd_shape_of(b, logits);
    int64_t vocab = shape->dim[shape->ndim - 1];
    vd_value m = vd_reduce(b, "max", RO_OP_REDUCE_MAX, vocab, 1, &logits);
    vd_value l = vd_reduce(b, "expsum", RO_OP_REDUCE_EXPSUM, vocab, 2, (vd_value[]){logits, m});
    vd_value out = VD_EMIT(b, "xent", ((vd_op){.op = RO_OP_XENT}), logits, m, l, ids);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_XENT,
                               .in = {logits, VD_NONE, VD_NONE},
                               .out = out,
                               .saved = {m, l, ids}});
    return out;
}
