/* Layers that move elements or rotate them, with their backward nodes: SPEC 5 and 13. A backward
 * node takes its parameters from the attributes of the forward node. */
#include <string.h>

#include "repops/op_attention.h"
#include "repops/op_movement.h"
#include "verde/graph/tape.h"

static vd_value record(vd_builder *b, vd_layer layer, vd_value x, vd_value out) {
    vd_tape_put(b, (vd_record){.layer = layer, .in = {x, VD_NONE, VD_NONE}, .out = out});
    return out;
}

static const int64_t *attr_of(const vd_builder *b, vd_value value) {
    static const int64_t none[RO_MAX_ATTRS];
    const vd_graph *g = b->graph;
    return b->status == VD_OK ? vd_node_stored(g, value - vd_source_count(b->program, g))->attr
                              : none;
}

vd_value vd_transpose(vd_builder *b, const char *name, vd_value x, const int *order) {
    vd_op op = {.op = RO_OP_TRANSPOSE};
    for (int i = 0; i < vd_shape_of(b, x)->ndim; i++)
        op.attr[RO_TRANSPOSE_D0 + i] = order[i];
    return record(b, VD_LAYER_TRANSPOSE, x, VD_EMIT(b, name, op, x));
}

void vd_back_transpose(vd_builder *b, const vd_record *r, vd_value dy) {
    const int64_t *order = attr_of(b, r->out) + RO_TRANSPOSE_D0;
    vd_op op = {.op = RO_OP_TRANSPOSE};
    for (int i = 0; i < vd_shape_of(b, dy)->ndim; i++)
        op.attr[RO_TRANSPOSE_D0 + order[i]] = i;
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_transpose", op, dy));
}

vd_value vd_slice(vd_builder *b, const char *name, vd_value x, vd_stretch s) {
    const vd_op op = {RO_OP_SLICE,
                      {[RO_SLICE_AXIS] = s.axis,
                       [RO_SLICE_START] = s.start,
                       [RO_SLICE_LENGTH] = s.length,
                       [RO_SLICE_STEP] = s.step},
                      NULL};
    return record(b, VD_LAYER_SLICE, x, VD_EMIT(b, name, op, x));
}

void vd_back_slice(vd_builder *b, const vd_record *r, vd_value dy) {
    const int64_t *attr = attr_of(b, r->out), axis = attr[RO_SLICE_AXIS];
    const int64_t end =
        attr[RO_SLICE_START] + (attr[RO_SLICE_LENGTH] - 1) * attr[RO_SLICE_STEP] + 1;
    const int64_t after = vd_shape_of(b, r->in[0])->dim[axis] - end;
    const vd_op op = {RO_OP_PAD,
                      {[RO_PAD_AXIS] = axis,
                       [RO_PAD_BEFORE] = attr[RO_SLICE_START],
                       [RO_PAD_AFTER] = after,
                       [RO_PAD_STEP] = attr[RO_SLICE_STEP],
                       [RO_PAD_VALUE] = ro_attr_f32(0)},
                      NULL};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_slice", op, dy));
}

vd_value vd_pad(vd_builder *b, const char *name, vd_value x, int axis, int64_t before,
                int64_t after) {
    const vd_op op = {RO_OP_PAD,
                      {[RO_PAD_AXIS] = axis,
                       [RO_PAD_BEFORE] = before,
                       [RO_PAD_AFTER] = after,
                       [RO_PAD_STEP] = 1,
                       [RO_PAD_VALUE] = ro_attr_f32(0)},
                      NULL};
    return record(b, VD_LAYER_PAD, x, VD_EMIT(b, name, op, x));
}

void vd_back_pad(vd_builder *b, const vd_record *r, vd_value dy) {
    const int64_t *attr = attr_of(b, r->out), axis = attr[RO_PAD_AXIS];
    const int64_t length = vd_shape_of(b, r->in[0])->dim[axis];
    const vd_op op = {RO_OP_SLICE,
                      {[RO_SLICE_AXIS] = axis,
                       [RO_SLICE_START] = attr[RO_PAD_BEFORE],
                       [RO_SLICE_LENGTH] = length,
                       [RO_SLICE_STEP] = 1},
                      NULL};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_pad", op, dy));
}

vd_value vd_gather(vd_builder *b, const char *name, vd_value x, vd_value ids, int axis) {
    vd_value out =
        VD_EMIT(b, name, ((vd_op){RO_OP_GATHER, {[RO_GATHER_AXIS] = axis}, NULL}), x, ids);
    vd_tape_put(
        b, (vd_record){
               .layer = VD_LAYER_GATHER, .in = {x, VD_NONE, VD_NONE}, .out = out, .saved = {ids}});
    return out;
}

void vd_back_gather(vd_builder *b, const vd_record *r, vd_value dy) {
    ro_shape shape = *vd_shape_of(b, r->in[0]);
    const vd_op op = {
        RO_OP_GATHER_GRAD, {[RO_GATHER_GRAD_AXIS] = attr_of(b, r->out)[RO_GATHER_AXIS]}, &shape};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_gather", op, dy, r->saved[0]));
}

/* Concatenates along an axis. Each input has its own record, whose `number` is where it starts. */
vd_value vd_concat(vd_builder *b, const char *name, int axis, int32_t count, const vd_value *x) {
    vd_value out = vd_emit(
        b, name, (vd_op){RO_OP_CONCAT_AXIS, {[RO_CONCAT_AXIS_AXIS] = axis}, NULL}, count, x);
    int64_t start = 0;
    for (int32_t i = 0; i < count && b->status == VD_OK; i++) {
        vd_tape_put(b, (vd_record){.layer = VD_LAYER_CONCAT,
                                   .in = {x[i], VD_NONE, VD_NONE},
                                   .out = out,
                                   .number = start});
        start += vd_shape_of(b, x[i])->dim[axis];
    }
    return out;
}

void vd_back_concat(vd_builder *b, const vd_record *r, vd_value dy) {
    const int64_t axis = attr_of(b, r->out)[RO_GATHER_AXIS];
    const int64_t length = vd_shape_of(b, r->in[0])->dim[axis];
    const vd_op op = {RO_OP_SLICE,
                      {[RO_SLICE_AXIS] = axis,
                       [RO_SLICE_START] = r->number,
                       [RO_SLICE_LENGTH] = length,
                       [RO_SLICE_STEP] = 1},
                      NULL};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_concat", op, dy));
}

vd_value vd_reshape(vd_builder *b, const char *name, vd_value x, ro_shape shape) {
    const vd_op op = {.op = RO_OP_RESHAPE, .shape = &shape};
    return record(b, VD_LAYER_RESHAPE, x, VD_EMIT(b, name, op, x));
}

void vd_back_reshape(vd_builder *b, const vd_record *r, vd_value dy) {
    ro_shape shape = *vd_shape_of(b, r->in[0]);
    const vd_op op = {.op = RO_OP_RESHAPE, .shape = &shape};
    vd_accumulate(b, r->in[0], VD_EMIT(b, "d_reshape", op, dy));
}

vd_value vd_rope_turns(vd_builder *b, const char *name, int64_t size, const vd_frequencies *f) {
    ro_shape shape = VD_SHAPE(RO_I32, size / 2, 2);
    const vd_op op = {RO_OP_ROPE_TURNS,
                      {[RO_ROPE_TURNS_BASE] = ro_attr_f32(f->base),
                       [RO_ROPE_TURNS_KIND] = f->kind,
                       [RO_ROPE_TURNS_FACTOR] = ro_attr_f32(f->factor),
                       [RO_ROPE_TURNS_LOW] = ro_attr_f32(f->low),
                       [RO_ROPE_TURNS_HIGH] = ro_attr_f32(f->high),
                       [RO_ROPE_TURNS_ORIGINAL] = f->original},
                      &shape};
    return vd_emit(b, name, op, 0, NULL);
}

vd_value vd_iota(vd_builder *b, const char *name, int64_t count) {
    ro_shape shape = VD_SHAPE(RO_I32, count);
    return vd_emit(b, name, (vd_op){.op = RO_OP_IOTA, .shape = &shape}, 0, NULL);
}

vd_value vd_rope(vd_builder *b, const char *name, vd_value x, vd_rotation r) {
    const vd_op op = {RO_OP_ROPE, {[RO_ROPE_PAIRS] = r.neighbours, [RO_ROPE_INVERSE] = 0}, NULL};
    vd_value out = VD_EMIT(b, name, op, x, r.position, r.turns);
    vd_tape_put(
        b, (vd_record){
               .layer = VD_LAYER_ROPE, .in = {x, VD_NONE, VD_NONE}, .out = out, .rotation = r});
    return out;
}

/* Rotates the gradient by the negative angle: the transpose of the rotation. */
void vd_back_rope(vd_builder *b, const vd_record *r, vd_value dy) {
    const vd_op op = {
        RO_OP_ROPE, {[RO_ROPE_PAIRS] = r->rotation.neighbours, [RO_ROPE_INVERSE] = 1}, NULL};
    vd_accumulate(b, r->in[0],
                  VD_EMIT(b, "d_rope", op, dy, r->rotation.position, r->rotation.turns));
}
