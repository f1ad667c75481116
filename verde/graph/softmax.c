/* Softmax, losses with ignored labels, and RMS norm, with their backward nodes: SPEC 7.2, 7.3. */
#include "repops/op_elementwise.h"
#include "repops/op_norm.h"
#include "repops/op_reduce.h"
#include "repops/op_softmax.h"
#include "verde/graph/tape.h"

static int64_t last_dim(const vd_builder *b, vd_value x) {
    const ro_shape *shape = vd_shape_of(b, x);
    return shape->dim[shape->ndim - 1];
}

/* The maximum of each row and the sum of exp(x - maximum). */
static void row_statistics(vd_builder *b, vd_value x, vd_value *m, vd_value *l) {
    *m = vd_reduce(b, "max", RO_OP_REDUCE_MAX, last_dim(b, x), 1, &x);
    *l = vd_reduce(b, "expsum", RO_OP_REDUCE_EXPSUM, last_dim(b, x), 2, (vd_value[]){x, *m});
}

static vd_value softmax(vd_builder *b, vd_layer layer, int op, vd_value x) {
    vd_value m, l;
    row_statistics(b, x, &m, &l);
    vd_value out = VD_EMIT(b, ro_op_describe(op)->name, ((vd_op){.op = op}), x, m, l);
    vd_tape_put(b, (vd_record){.layer = layer, .in = {x, VD_NONE, VD_NONE}, .out = out});
    return out;
}

vd_value vd_softmax(vd_builder *b, vd_value x) {
    return softmax(b, VD_LAYER_SOFTMAX, RO_OP_SOFTMAX, x);
}

vd_value vd_log_softmax(vd_builder *b, vd_value x) {
    return softmax(b, VD_LAYER_LOG_SOFTMAX, RO_OP_LOG_SOFTMAX, x);
}

void vd_back_softmax(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_value in[] = {dy, r->out};
    vd_value d = vd_reduce(b, "d_dot", RO_OP_REDUCE_DOT, last_dim(b, dy), 2, in);
    vd_op op = {.op = RO_OP_SOFTMAX_GRAD};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_softmax", op, r->out, dy, d));
}

void vd_back_log_softmax(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_value s = vd_reduce(b, "d_sum", RO_OP_REDUCE_SUM, last_dim(b, dy), 1, &dy);
    vd_op op = {.op = RO_OP_LOG_SOFTMAX_GRAD};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_log_softmax", op, r->out, dy, s));
}

/* ---- losses ---- */

vd_value vd_xent_ignore(vd_builder *b, vd_value logits, vd_value ids, int32_t ignore) {
    vd_value m, l;
    row_statistics(b, logits, &m, &l);
    vd_op op = {RO_OP_XENT_IGNORE, {[RO_XENT_IGNORE_IGNORE] = ignore}, NULL};
    vd_value out = VD_EMIT(b, "xent", op, logits, m, l, ids);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_XENT_IGNORE,
                               .in = {logits, VD_NONE, VD_NONE},
                               .out = out,
                               .saved = {m, l, ids},
                               .number = ignore});
    return out;
}

void vd_back_xent_ignore(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_op op = {RO_OP_XENT_IGNORE_GRAD, {[RO_XENT_IGNORE_GRAD_IGNORE] = r->number}, NULL};
    vd_accumulate(b, r->in[0],
                  VD_EMIT(b, "d_logits", op, r->in[0], r->saved[0], r->saved[1], r->saved[2], dy));
}

/* The mean of the rows that are not ignored. This record distributes 1 / count over the rows. */
vd_value vd_xent_mean(vd_builder *b, vd_value logits, vd_value ids, int32_t ignore) {
    vd_value loss = vd_xent_ignore(b, logits, ids, ignore);
    int64_t rows = ro_shape_numel(vd_shape_of(b, ids));
    vd_value kept =
        VD_EMIT(b, "kept", ((vd_op){RO_OP_KEPT, {[RO_KEPT_IGNORE] = ignore}, NULL}), ids);
    vd_value count = vd_reduce(b, "count", RO_OP_REDUCE_SUM, rows, 1, &kept);
    vd_value sum = vd_reduce(b, "sum", RO_OP_REDUCE_SUM, rows, 1, &loss);
    vd_value out = VD_EMIT(b, "mean", ((vd_op){.op = RO_OP_DIV}), sum, count);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_XENT_MEAN,
                               .in = {loss, VD_NONE, VD_NONE},
                               .out = out,
                               .saved = {kept, count}});
    return out;
}

void vd_back_xent_mean(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_value share = VD_EMIT(b, "d_share", ((vd_op){.op = RO_OP_DIV}), dy, r->saved[1]);
    vd_accumulate(b, r->in[0],
                  VD_EMIT(b, "d_loss", ((vd_op){.op = RO_OP_MUL}), r->saved[0], share));
}

/* ---- RMS norm ---- */

vd_value vd_rmsnorm(vd_builder *b, vd_value x, vd_value gamma, float eps) {
    x = vd_stored_of(b, "x", x);
    int64_t c = last_dim(b, x);
    vd_value ss = vd_reduce(b, "sumsq", RO_OP_REDUCE_DOT, c, 2, (vd_value[]){x, x});
    vd_op rstd_op = {
        RO_OP_LN_RSTD, {[RO_LN_RSTD_N] = c, [RO_LN_RSTD_EPS] = ro_attr_f32(eps)}, NULL};
    vd_value rstd = VD_EMIT(b, "rstd", rstd_op, ss);
    vd_value out = VD_EMIT(b, "norm", ((vd_op){.op = RO_OP_RMSNORM}), x, rstd, gamma);
    vd_tape_put(
        b, (vd_record){
               .layer = VD_LAYER_RMSNORM, .in = {x, gamma, VD_NONE}, .out = out, .saved = {rstd}});
    return out;
}

/* Emits the backward nodes of an RMS norm. x is its input, read again. */
static void back_normed(vd_builder *b, const vd_record *r, vd_value x, vd_value dy) {
    vd_value gamma = r->in[1], rstd = r->saved[0];
    vd_value in[] = {dy, gamma, x, rstd};
    vd_value sgx = vd_reduce(b, "d_sum_gx", RO_OP_REDUCE_RMS_GX, last_dim(b, x), 4, in);
    vd_op op = {.op = RO_OP_RMS_DX};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_input", op, dy, gamma, x, rstd, sgx));
}

void vd_back_rmsnorm(vd_builder *b, const vd_record *r, vd_value dy) {
    const vd_value gamma = r->in[1], x = vd_read_again(b, "x_again", r->in[0]);
    const vd_value in[] = {dy, x, r->saved[0]};
    const ro_shape row = *vd_shape_of(b, gamma);
    if (vd_wants_gradient(b, r->in[0]))
        back_normed(b, r, x, dy);
    if (vd_wants_gradient(b, gamma))
        vd_accumulate(b, gamma, vd_column_sum(b, "d_gamma", RO_OP_RMS_DGAMMA, &row, 3, in));
}
