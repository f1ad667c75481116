/* This file checks that a step with `stopped` not 0 changes nothing. A batch skips such steps, and
 * programs come from strangers, so their nodes must give exactly what skipping gives. */
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "verde/exec/batch_internal.h"

typedef struct {
    const vd_program *program;
    const vd_graph *graph;
    uint32_t sources, stopped;
} stopping;

/* The node that makes `value`, if it is of this operator; else UINT32_MAX. */
static uint32_t made_by(const stopping *s, uint32_t value, int op) {
    if (value < s->sources || vd_node_stored(s->graph, value - s->sources)->op != op)
        return UINT32_MAX;
    return value - s->sources;
}

static uint32_t input_of(const stopping *s, uint32_t node, int32_t i) {
    return vd_node_input(s->graph, node, i);
}

/* Returns whether a value is -1, made by vd_whole: a row put at -1 falls outside of the leaf. */
static bool is_nowhere(const stopping *s, uint32_t value) {
    const uint32_t cast = made_by(s, value, RO_OP_CAST);
    const uint32_t fill = cast == UINT32_MAX ? cast : made_by(s, input_of(s, cast, 0), RO_OP_FILL);
    return fill != UINT32_MAX && vd_node_stored(s->graph, cast)->shape.dtype == RO_I32 &&
           vd_node_attr(s->graph, fill, RO_FILL_VALUE) == ro_attr_f32(-1);
}

/* For where(stopped, kept, anything) returns `kept`, its value after a stop. */
static uint32_t after_stop(const stopping *s, uint32_t value) {
    const uint32_t node = made_by(s, value, RO_OP_WHERE);
    return node != UINT32_MAX && input_of(s, node, 0) == s->stopped ? input_of(s, node, 1)
                                                                    : UINT32_MAX;
}

static bool puts_nowhere(const stopping *s, uint32_t node, uint32_t leaf) {
    const ro_shape *rows = vd_value_shape(s->program, s->graph, input_of(s, node, 1));
    const uint32_t place = after_stop(s, input_of(s, node, 2));
    return input_of(s, node, 0) == leaf && place != UINT32_MAX && is_nowhere(s, place) &&
           rows->dim[vd_node_attr(s->graph, node, RO_PUT_ROWS_AXIS)] == 1;
}

static bool keeps(const stopping *s, uint32_t leaf) {
    const uint32_t value = s->graph->output[leaf];
    const uint32_t same = made_by(s, value, RO_OP_RESHAPE);
    const uint32_t put = made_by(s, value, RO_OP_PUT_ROWS);
    if (same != UINT32_MAX)
        return input_of(s, same, 0) == leaf;
    return put != UINT32_MAX ? puts_nowhere(s, put, leaf) : after_stop(s, value) == leaf;
}

vd_status vd_batch_check_stop(const vd_program *program, uint32_t stopped, vd_err *err) {
    const ro_shape one = {RO_I32, 1, {1}};
    const stopping s = {program, &program->step, vd_source_count(program, &program->step), stopped};
    if (stopped == UINT32_MAX)
        return VD_OK;
    if (!ro_shape_equal(&program->leaf[stopped].shape, &one))
        return vd_fail(err, VD_ERR_USAGE,
                       "steps cannot be taken together: leaf `stopped` is not i32 [1]");
    for (uint32_t i = 0; i < program->leaf_count; i++)
        if (!keeps(&s, i))
            return vd_fail(err, VD_ERR_USAGE,
                           "steps cannot be taken together: leaf %s may change after a stop",
                           program->leaf[i].name);
    return VD_OK;
}
