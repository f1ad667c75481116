/* Reductions along an axis, with their backward nodes: SPEC 3.4. */
#include "repops/op_reduce.h"
#include "verde/graph/tape.h"

/* Reduces an axis to length 1: the last axis by rows (R), any other in groups of 64 until done. */
static vd_value reduce_along(vd_builder *b, const char *name, int row_op, int axis_op, vd_value x,
                             int axis) {
    const ro_shape *shape = vd_shape_of(b, x);
    if (axis == shape->ndim - 1)
        return vd_reduce(b, name, row_op, shape->dim[axis], 1, &x);
    do {
        x = VD_EMIT(b, name, ((vd_op){axis_op, {axis}, NULL}), x);
    } while (b->status == VD_OK && vd_shape_of(b, x)->dim[axis] > 1);
    return x;
}

static bool has_axis(vd_builder *b, vd_value x, int axis) {
    if (axis >= 0 && axis < vd_shape_of(b, x)->ndim)
        return true;
    vd_builder_fail(b, VD_ERR_USAGE, "%s: there is no axis %d", b->scope, axis);
    return false;
}

vd_value vd_sum_axis(vd_builder *b, vd_value x, int axis) {
    if (!has_axis(b, x, axis))
        return 0;
    vd_value out = reduce_along(b, "sum", RO_OP_REDUCE_SUM, RO_OP_SUM_AXIS, x, axis);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_SUM_AXIS,
                               .in = {x, VD_NONE, VD_NONE},
                               .out = out,
                               .number = axis});
    return out;
}

vd_value vd_mean_axis(vd_builder *b, vd_value x, int axis) {
    if (!has_axis(b, x, axis))
        return 0;
    vd_value sum = reduce_along(b, "sum", RO_OP_REDUCE_SUM, RO_OP_SUM_AXIS, x, axis);
    vd_value out = vd_div_const(b, "mean", sum, (double)vd_shape_of(b, x)->dim[axis]);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_MEAN_AXIS,
                               .in = {x, VD_NONE, VD_NONE},
                               .out = out,
                               .number = axis});
    return out;
}

vd_value vd_max_axis(vd_builder *b, vd_value x, int axis) {
    if (!has_axis(b, x, axis))
        return 0;
    vd_value out = reduce_along(b, "max", RO_OP_REDUCE_MAX, RO_OP_MAX_AXIS, x, axis);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_MAX_AXIS,
                               .in = {x, VD_NONE, VD_NONE},
                               .out = out,
                               .number = axis});
    return out;
}

vd_value vd_argmax(vd_builder *b, vd_value x, int axis) {
    return VD_EMIT(b, "argmax", ((vd_op){RO_OP_ARGMAX, {[RO_ARGMAX_AXIS] = axis}, NULL}), x);
}

void vd_back_sum_axis(vd_builder *b, const vd_record *r, vd_value dy) {
    int64_t count = vd_shape_of(b, r->in[0])->dim[r->number];
    vd_op op = {RO_OP_EXPAND, {[RO_EXPAND_AXIS] = r->number, [RO_EXPAND_COUNT] = count}, NULL};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_sum", op, dy));
}

void vd_back_mean_axis(vd_builder *b, const vd_record *r, vd_value dy) {
    int64_t count = vd_shape_of(b, r->in[0])->dim[r->number];
    vd_back_sum_axis(b, r, vd_div_const(b, "d_mean", dy, (double)count));
}

/* If several elements are the largest, the first of them gets all of the gradient. */
void vd_back_max_axis(vd_builder *b, const vd_record *r, vd_value dy) {
    int64_t count = vd_shape_of(b, r->in[0])->dim[r->number];
    vd_value at = VD_EMIT(b, "d_argmax",
                          ((vd_op){RO_OP_ARGMAX, {[RO_ARGMAX_AXIS] = r->number}, NULL}), r->in[0]);
    vd_op op = {
        RO_OP_MAX_GRAD, {[RO_MAX_GRAD_AXIS] = r->number, [RO_MAX_GRAD_COUNT] = count}, NULL};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_max", op, at, dy));
}
