#include "tests/support/graph_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repops/op_movement.h"

static void *grown(void *block, size_t size) {
    void *more = realloc(block, size);
    if (!more) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return more;
}

bool edit_is_plain(const vd_graph *g) {
    return g->repeat_count == 0;
}

/* Adds `by` to the numbers of values in [from, to). */
typedef struct {
    uint32_t from, to;
    int64_t by;
} shift;

static void shift_value(uint32_t *value, const shift *s) {
    if (*value != UINT32_MAX && *value >= s->from && *value < s->to)
        *value = (uint32_t)(*value + s->by);
}

static void shift_values(vd_program *p, vd_graph *g, shift s) {
    for (uint32_t i = 0; i < g->edge_count; i++)
        shift_value(&g->stored_edge[i], &s);
    for (uint32_t i = 0; i < p->leaf_count; i++)
        shift_value(&g->output[i], &s);
    shift_value(&g->loss, &s);
}

void edit_insert(vd_program *p, vd_graph *g, uint32_t at, const vd_node *node,
                 const uint32_t *input) {
    const vd_node copy = *node;
    const uint32_t sources = vd_source_count(p, g), count = g->stored_count;
    const uint32_t inputs = (uint32_t)copy.input_count;
    uint32_t *own = grown(NULL, (inputs + 1) * sizeof *own);
    memcpy(own, input, inputs * sizeof *own);
    shift_values(p, g, (shift){sources + at, UINT32_MAX, 1});
    g->stored = grown(g->stored, (count + 1) * sizeof *g->stored);
    memmove(&g->stored[at + 1], &g->stored[at], (count - at) * sizeof *g->stored);
    g->stored_edge = grown(g->stored_edge, (g->edge_count + inputs + 1) * sizeof *own);
    memcpy(g->stored_edge + g->edge_count, own, inputs * sizeof *own);
    g->stored[at] = copy;
    g->stored[at].first_input = g->edge_count;
    g->edge_count += inputs, g->edge_capacity = g->edge_count;
    g->stored_count = g->node_count = g->node_capacity = count + 1;
    free(own);
}

void edit_move(vd_program *p, vd_graph *g, uint32_t from, uint32_t to) {
    const uint32_t sources = vd_source_count(p, g), away = UINT32_MAX - 1;
    const vd_node moved = g->stored[from];
    shift_values(p, g, (shift){sources + from, sources + from + 1, (int64_t)away - sources - from});
    if (from < to) {
        memmove(&g->stored[from], &g->stored[from + 1], (to - from) * sizeof moved);
        shift_values(p, g, (shift){sources + from + 1, sources + to + 1, -1});
    } else {
        memmove(&g->stored[to + 1], &g->stored[to], (from - to) * sizeof moved);
        shift_values(p, g, (shift){sources + to, sources + from, 1});
    }
    g->stored[to] = moved;
    shift_values(p, g, (shift){away, away + 1, (int64_t)sources + to - away});
}

/* Adds a node to the initialisation that fills the new leaf with a number. */
static uint32_t add_fill(vd_program *p, const ro_shape *shape) {
    vd_graph *g = &p->init;
    const uint32_t at = g->stored_count;
    const vd_node fill = {
        .op = RO_OP_FILL, .attr = {[RO_FILL_VALUE] = ro_attr_f32(0.5f)}, .shape = *shape};
    edit_insert(p, g, at, &fill, &(uint32_t){0});
    return vd_source_count(p, g) + at;
}

void edit_add_leaf(vd_program *p, uint32_t value) {
    const ro_shape shape = *vd_value_shape(p, &p->step, value);
    const uint32_t count = p->leaf_count, filled = add_fill(p, &shape);
    p->leaf = grown(p->leaf, (count + 1) * sizeof *p->leaf);
    p->leaf[count] = (vd_leaf){.shape = shape};
    snprintf(p->leaf[count].name, sizeof p->leaf[count].name, "added %u", count);
    p->init.output = grown(p->init.output, (count + 1) * sizeof *p->init.output);
    p->init.output[count] = filled;
    shift_values(p, &p->step, (shift){count, UINT32_MAX, 1});
    p->step.output = grown(p->step.output, (count + 1) * sizeof *p->step.output);
    p->step.output[count] = value + 1;
    p->leaf_count = count + 1;
}

/* Adjusts one size of a declared shape so that it has this many elements. */
static void fit(ro_shape *shape, int64_t elements) {
    for (int i = shape->ndim; i-- > 0;) {
        const int64_t rest = shape->dim[i] ? ro_shape_numel(shape) / shape->dim[i] : 0;
        if (rest > 0 && elements % rest == 0) {
            shape->dim[i] = elements / rest;
            return;
        }
    }
}

bool edit_infer(vd_program *p, vd_graph *g) {
    static ro_shape shapes[RO_MAX_INPUTS];
    for (uint32_t i = 0; i < g->stored_count; i++) {
        const ro_op_info *info = ro_op_describe(g->stored[i].op);
        ro_call call;
        vd_node_call(p, g, i, &call, shapes);
        if (!info->declared_shape)
            call.output = (ro_shape){0};
        else if (call.op == RO_OP_RESHAPE)
            fit(&call.output, ro_shape_numel(&shapes[0]));
        if (ro_infer(&call, NULL, 0) != RO_OK)
            return false;
        g->stored[i].shape = call.output;
    }
    return true;
}
