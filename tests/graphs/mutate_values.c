/* Changes of attributes, operators and sizes; of the number of steps; repeats written out as
 * nodes. */
#include <string.h>

#include "repops/op_elementwise.h"
#include "tests/support/graph_edit.h"
#include "tests/graphs/mutate.h"

/* ---- attributes ---- */

static int64_t other_integer(site *s, const vd_node *n, int64_t was) {
    static const int64_t numbers[] = {0, 1, 2, 3, 16, 24, 64, 128, 256, 1024};
    const int last = n->shape.ndim - 1;
    switch (dice_below(s->d, 8)) {
    case 0: return was + 1;
    case 1: return was - 1;
    case 2: return 2 * was;
    case 3: return -was;
    case 4: return n->shape.dim[dice_below(s->d, (uint64_t)last + 1)];
    case 5: return ro_shape_numel(&n->shape);
    case 6: return (int64_t)dice_word(s->d);
    default: return numbers[dice_below(s->d, sizeof numbers / sizeof numbers[0])];
    }
}

static int64_t other_number(site *s, int64_t was) {
    static const uint32_t bits[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x3f000000,
                                    0x00000001, 0x7f800000, 0x7fc00000, 0x7f7fffff, 0x3a83126f};
    switch (dice_below(s->d, 4)) {
    case 0: return was ^ 0x80000000;
    case 1: return (uint32_t)(was + 1);
    case 2: return (uint32_t)dice_word(s->d);
    default: return bits[dice_below(s->d, sizeof bits / sizeof bits[0])];
    }
}

/* Gives the node an attribute of another node with the same operator. */
static bool take_attribute(site *s, uint32_t node, int attr) {
    const uint32_t count = s->graph->stored_count, first = dice_below(s->d, count);
    vd_node *n = &s->graph->stored[node];
    for (uint32_t i = 0; i < count; i++) {
        const vd_node *other = &s->graph->stored[(first + i) % count];
        if (other->op == n->op && other->attr[attr] != n->attr[attr]) {
            n->attr[attr] = other->attr[attr];
            return true;
        }
    }
    return false;
}

static bool attribute(site *s) {
    const uint32_t node = site_node(s);
    vd_node *n = &s->graph->stored[node];
    const ro_op_info *info = ro_op_describe(n->op);
    if (info->attr_count == 0)
        return false;
    const int attr = (int)dice_below(s->d, (uint64_t)info->attr_count);
    const int64_t was = n->attr[attr];
    if (dice_one_in(s->d, 3))
        return take_attribute(s, node, attr);
    n->attr[attr] = info->attr[attr].kind == 'f' ? other_number(s, was) : other_integer(s, n, was);
    return n->attr[attr] != was;
}

static bool slope(site *s) {
    const uint32_t node = site_node(s);
    vd_node *n = &s->graph->stored[node];
    if (!vd_repeat_of(s->graph, node))
        return false;
    n->slope = dice_one_in(s->d, 2) ? (int64_t)dice_below(s->d, 5) : n->slope + 1;
    return true;
}

/* ---- operators ---- */

static void keep_attributes(site *s, vd_node *n, int op) {
    const ro_op_info *from = ro_op_describe(n->op), *to = ro_op_describe(op);
    const vd_node was = *n;
    n->op = op;
    memset(n->attr, 0, sizeof n->attr);
    for (int i = 0; i < to->attr_count; i++) {
        n->attr[i] = to->attr[i].kind == 'f' ? other_number(s, 0) : other_integer(s, n, 1);
        for (int k = 0; k < from->attr_count; k++)
            if (strcmp(from->attr[k].name, to->attr[i].name) == 0)
                n->attr[i] = was.attr[k];
    }
}

static bool fits(const vd_program *p, const vd_graph *g, uint32_t node) {
    static ro_shape shapes[RO_MAX_INPUTS];
    ro_call call;
    vd_node_call(p, g, node, &call, shapes);
    return ro_infer(&call, NULL, 0) == RO_OK;
}

/* Replaces the operator by another that takes the same inputs and gives the same shape. */
static bool operator_of_node(site *s) {
    const uint32_t node = site_node(s), number = vd_node_number(s->graph, node, 0);
    vd_node *n = &s->graph->stored[node];
    const vd_node was = *n;
    const int first = (int)dice_below(s->d, RO_OP_END);
    for (int i = 0; i < RO_OP_END; i++) {
        const int op = (first + i) % RO_OP_END;
        const ro_op_info *info = ro_op_describe(op);
        if (!info || op == was.op || was.input_count < info->min_inputs ||
            was.input_count > info->max_inputs)
            continue;
        keep_attributes(s, n, op);
        n->slope = 0;
        if (fits(s->program, s->graph, number))
            return true;
        *n = was;
    }
    return false;
}

/* ---- sizes ---- */

typedef struct {
    int64_t from, to;
    bool multiples;
} size_change;

static int64_t resized(int64_t x, const size_change *c) {
    if (x == c->from)
        return c->to;
    return c->multiples && x > c->from && x % c->from == 0 ? x / c->from * c->to : x;
}

static void resize_shape(ro_shape *shape, const size_change *c) {
    for (int i = 0; i < shape->ndim; i++)
        shape->dim[i] = resized(shape->dim[i], c);
}

static void resize_graph(vd_graph *g, const size_change *c) {
    const float from = (float)c->from, to = (float)c->to;
    for (uint32_t i = 0; i < g->stored_count; i++) {
        vd_node *n = &g->stored[i];
        const ro_op_info *info = ro_op_describe(n->op);
        resize_shape(&n->shape, c);
        for (int k = 0; k < info->attr_count; k++) {
            if (info->attr[k].kind == 'i')
                n->attr[k] = resized(n->attr[k], c);
            else if (n->attr[k] == ro_attr_f32(from))
                n->attr[k] = ro_attr_f32(to);
        }
    }
}

static int64_t other_size(site *s, int64_t was) {
    static const int64_t sizes[] = {1,  2,  3,  4,  5,  7,   8,   15,  16,
                                    17, 31, 33, 63, 65, 129, 260, 1025};
    switch (dice_below(s->d, 4)) {
    case 0: return was + 1;
    case 1: return was > 1 ? was - 1 : 2;
    default: return sizes[dice_below(s->d, sizeof sizes / sizeof sizes[0])];
    }
}

/* Changes one number wherever it is a size, in the whole program. */
static bool size_of_all(site *s) {
    vd_program *p = s->program;
    const ro_shape *shape = &s->graph->stored[site_node(s)].shape;
    size_change c = {.from = shape->dim[dice_below(s->d, (uint64_t)shape->ndim)]};
    c.to = other_size(s, c.from), c.multiples = dice_one_in(s->d, 2);
    const bool often = c.from > 4; /* smaller numbers are also axes and counts */
    if (c.from < 2 || c.to == c.from || (!often && !dice_one_in(s->d, 8)))
        return false;
    for (uint32_t i = 0; i < p->leaf_count; i++)
        resize_shape(&p->leaf[i].shape, &c);
    for (uint32_t i = 0; i < p->data_count; i++)
        resize_shape(&p->data[i].tensor.shape, &c);
    resize_graph(&p->init, &c);
    resize_graph(&p->step, &c);
    return !edit_is_plain(&p->init) || !edit_is_plain(&p->step) ||
           (edit_infer(p, &p->init) && edit_infer(p, &p->step));
}

/* ---- the whole program ---- */

static bool steps(site *s) {
    static const int64_t numbers[] = {1, 2, 5, 100, 1000000, INT32_MAX};
    s->program->steps = numbers[dice_below(s->d, sizeof numbers / sizeof numbers[0])];
    s->program->checkpoint_interval = 1;
    return true;
}

static bool unroll(site *s) {
    enum { NODES_MAX = 1000 };
    return !edit_is_plain(s->graph) && s->graph->node_count <= NODES_MAX &&
           vd_graph_unroll(s->graph, NULL) == VD_OK;
}

/* Widens a stated range, so that data contain unexpected numbers. */
static bool range(site *s) {
    if (s->program->data_count == 0)
        return false;
    vd_data *data = &s->program->data[dice_below(s->d, s->program->data_count)];
    const bool stated = data->range.stated;
    data->range = (vd_range){.stated = false};
    return stated;
}

const mutation value_mutations[] = {
    {"another attribute", attribute, 8},
    {"another slope", slope, 1},
    {"another operator", operator_of_node, 4},
    {"another size", size_of_all, 8},
    {"other steps", steps, 1},
    {"repeats unrolled", unroll, 2},
    {"no range of data", range, 1},
};
const uint32_t value_mutation_count = sizeof value_mutations / sizeof value_mutations[0];
