/* Arithmetic layers and choices between elements, with their backward nodes: SPEC 6. */
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"
#include "verde/graph/tape.h"

/* ---- arithmetic: the second operand may repeat ---- */

static vd_value binary(vd_builder *b, const char *name, vd_layer layer, int op, vd_value x,
                       vd_value y) {
    vd_value out = VD_EMIT(b, name, ((vd_op){.op = op}), x, y);
    vd_tape_put(b, (vd_record){.layer = layer, .in = {x, y, VD_NONE}, .out = out});
    return out;
}

vd_value vd_add(vd_builder *b, const char *name, vd_value x, vd_value y) {
    return binary(b, name, VD_LAYER_ADD, RO_OP_ADD, x, y);
}

vd_value vd_mul(vd_builder *b, const char *name, vd_value x, vd_value y) {
    x = vd_stored_of(b, "left", x), y = vd_stored_of(b, "right", y);
    return binary(b, name, VD_LAYER_MUL, RO_OP_MUL, x, y);
}

vd_value vd_sub(vd_builder *b, const char *name, vd_value x, vd_value y) {
    return binary(b, name, VD_LAYER_SUB, RO_OP_SUB, x, y);
}

vd_value vd_div(vd_builder *b, const char *name, vd_value x, vd_value y) {
    return binary(b, name, VD_LAYER_DIV, RO_OP_DIV, x, y);
}

vd_value vd_max(vd_builder *b, const char *name, vd_value x, vd_value y) {
    return binary(b, name, VD_LAYER_MAX, RO_OP_MAX, x, y);
}

vd_value vd_min(vd_builder *b, const char *name, vd_value x, vd_value y) {
    return binary(b, name, VD_LAYER_MIN, RO_OP_MIN, x, y);
}

vd_op vd_scale_op(float factor) {
    return (vd_op){RO_OP_SCALE, {[RO_SCALE_FACTOR] = ro_attr_f32(factor)}, NULL};
}

vd_value vd_scale(vd_builder *b, const char *name, vd_value x, float factor) {
    vd_value out = VD_EMIT(b, name, vd_scale_op(factor), x);
    vd_tape_put(b, (vd_record){.layer = VD_LAYER_SCALE,
                               .in = {x, VD_NONE, VD_NONE},
                               .out = out,
                               .number = ro_attr_f32(factor)});
    return out;
}

/* Adds to the gradient of an operand that may have repeated, if it wants one. `dy` has the shape of
 * the layer's output; the gradient of a repeated operand is the sum over its repetitions. */
static void accumulate_repeated(vd_builder *b, vd_value y, vd_value dy) {
    if (!vd_wants_gradient(b, y))
        return;
    ro_shape shape = *vd_shape_of(b, y);
    if (!ro_shape_equal(&shape, vd_shape_of(b, dy)))
        dy = vd_column_sum(b, "d_bias", RO_OP_SUM_ROWS, &shape, 1, &dy);
    vd_accumulate(b, y, dy);
}

void vd_back_add(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_accumulate(b, r->in[0], dy);
    accumulate_repeated(b, r->in[1], dy);
}

void vd_back_mul(vd_builder *b, const vd_record *r, vd_value dy) {
    const vd_op mul = {.op = RO_OP_MUL};
    const vd_value left = r->in[0], right = r->in[1];
    if (vd_wants_gradient(b, left))
        vd_accumulate(b, left,
                      VD_EMIT(b, "d_left", mul, dy, vd_read_again(b, "right_again", right)));
    if (vd_wants_gradient(b, right))
        accumulate_repeated(b, right,
                            VD_EMIT(b, "d_right", mul, dy, vd_read_again(b, "left_again", left)));
}

void vd_back_sub(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_accumulate(b, r->in[0], dy);
    if (vd_wants_gradient(b, r->in[1]))
        accumulate_repeated(b, r->in[1], VD_EMIT(b, "d_right", vd_scale_op(-1.0f), dy));
}

/* For out = x / y: dx = dout / y, and dy = -dx (x / y). */
void vd_back_div(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_value dx = VD_EMIT(b, "d_left", ((vd_op){.op = RO_OP_DIV}), dy, r->in[1]);
    vd_accumulate(b, r->in[0], dx);
    if (!vd_wants_gradient(b, r->in[1]))
        return;
    vd_value right = VD_EMIT(b, "d_right", ((vd_op){.op = RO_OP_MUL}), dx, r->out);
    accumulate_repeated(b, r->in[1], VD_EMIT(b, "d_right", vd_scale_op(-1.0f), right));
}

void vd_back_scale(vd_builder *b, const vd_record *r, vd_value dy) {
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_scale", vd_scale_op(ro_attr_to_f32(r->number)), dy));
}

/* ---- choices ---- */

vd_value vd_compare(vd_builder *b, const char *name, vd_value x, vd_value y, ro_relation kind) {
    return VD_EMIT(b, name, ((vd_op){RO_OP_COMPARE, {[RO_COMPARE_KIND] = kind}, NULL}), x, y);
}

vd_value vd_where(vd_builder *b, const char *name, vd_value choice, vd_value x, vd_value y) {
    vd_value out = VD_EMIT(b, name, ((vd_op){.op = RO_OP_WHERE}), choice, x, y);
    vd_tape_put(
        b,
        (vd_record){.layer = VD_LAYER_WHERE, .in = {x, y, VD_NONE}, .out = out, .saved = {choice}});
    return out;
}

vd_value vd_zero_like(vd_builder *b, const char *name, vd_value x) {
    const ro_shape shape = *vd_shape_of(b, x);
    return vd_emit(b, name, (vd_op){.op = RO_OP_FILL, .shape = &shape}, 0, NULL);
}

/* Emits a choice's gradients: dy goes to x where `choice` is not 0, else to y, which may repeat. */
static void share(vd_builder *b, const vd_record *r, vd_value choice, vd_value dy) {
    const vd_op where = {.op = RO_OP_WHERE};
    vd_value zero = vd_zero_like(b, "d_zero", dy);
    if (vd_wants_gradient(b, r->in[0]))
        vd_accumulate(b, r->in[0], VD_EMIT(b, "d_left", where, choice, dy, zero));
    if (vd_wants_gradient(b, r->in[1]))
        accumulate_repeated(b, r->in[1], VD_EMIT(b, "d_right", where, choice, zero, dy));
}

void vd_back_where(vd_builder *b, const vd_record *r, vd_value dy) {
    share(b, r, r->saved[0], dy);
}

/* If both numbers are equal, the first one gets all of the gradient. */
void vd_back_max(vd_builder *b, const vd_record *r, vd_value dy) {
    share(b, r, vd_compare(b, "d_max", r->in[0], r->in[1], RO_AT_LEAST), dy);
}

void vd_back_min(vd_builder *b, const vd_record *r, vd_value dy) {
    share(b, r, vd_compare(b, "d_min", r->in[0], r->in[1], RO_AT_MOST), dy);
}
