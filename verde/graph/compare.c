/* This file lists the differences of two programs. */
#include "verde/graph/compare.h"

#include <string.h>

#include "verde/graph/print.h"

typedef struct {
    const vd_program *program[2];
    const vd_alignment *pairs;
    vd_tell_difference tell;
    void *user;
    vd_buf text[2]; /* the two texts being compared */
    vd_program_difference at;
    bool failed;
} comparing;

static void clear(comparing *c) {
    c->text[0].size = c->text[1].size = 0;
}

/* Reports text[0] and text[1] as a difference; has_a, has_b: whether each program has the thing. */
static void tell(comparing *c, const char *what, bool has_a, bool has_b) {
    const bool has[] = {has_a, has_b};
    char text[2][VD_DIFFERENCE_TEXT];
    c->at.what = what;
    for (int side = 0; side < 2; side++) {
        c->failed |= !vd_buf_ok(&c->text[side]);
        snprintf(text[side], sizeof text[side], "%.*s", (int)c->text[side].size,
                 c->text[side].data ? (const char *)c->text[side].data : "");
        c->at.text[side] = has[side] ? text[side] : NULL;
    }
    c->tell(c->user, &c->at);
    clear(c);
}

/* Reports a difference if the two texts are not equal. */
static void settle(comparing *c, const char *what) {
    const vd_buf *a = &c->text[0], *b = &c->text[1];
    if (a->size != b->size || (a->size && memcmp(a->data, b->data, a->size) != 0))
        tell(c, what, true, true);
    clear(c);
}

static void compare_numbers(comparing *c, const char *what, long long a, long long b) {
    vd_printf(&c->text[0], "%lld", a);
    vd_printf(&c->text[1], "%lld", b);
    settle(c, what);
}

/* ---- the head ---- */

static void compare_heads(comparing *c) {
    const vd_program *a = c->program[0], *b = c->program[1];
    c->at = (vd_program_difference){"program", "", NULL, {NULL}, {VD_UNPAIRED, VD_UNPAIRED}};
    compare_numbers(c, "seed", (long long)a->seed, (long long)b->seed);
    compare_numbers(c, "steps", a->steps, b->steps);
    compare_numbers(c, "checkpoint interval", a->checkpoint_interval, b->checkpoint_interval);
    compare_numbers(c, "nodes of initialisation", a->init.node_count, b->init.node_count);
    compare_numbers(c, "nodes of a step", a->step.node_count, b->step.node_count);
    compare_numbers(c, "bits of rounding", a->rounding.bits, b->rounding.bits);
    compare_numbers(c, "encoding of rounding", a->rounding.encoding, b->rounding.encoding);
}

/* ---- leaves and data ---- */

static void print_root(vd_buf *out, const vd_data *data) {
    char hex[65];
    vd_hex(data->root, sizeof data->root, hex);
    vd_printf(out, "%s", hex);
}

static void print_range(vd_buf *out, const vd_data *d) {
    if (d->range.stated)
        vd_printf(out, "%lld..%lld", (long long)d->range.least, (long long)d->range.greatest);
    else
        vd_printf(out, "none");
}

static const vd_leaf *leaf_of(const vd_program *p, bool data, uint32_t i) {
    return data ? &p->data[i].tensor : &p->leaf[i];
}

static void tell_alone(comparing *c, int side, bool data, uint32_t i) {
    const vd_leaf *leaf = leaf_of(c->program[side], data, i);
    c->at.name = leaf->name;
    vd_print_shape(&c->text[side], &leaf->shape);
    tell(c, "tensor", side == 0, side == 1);
}

static void compare_tensors(comparing *c, bool data, uint32_t i, uint32_t k) {
    const vd_leaf *a = leaf_of(c->program[0], data, i), *b = leaf_of(c->program[1], data, k);
    c->at.name = a->name;
    vd_print_shape(&c->text[0], &a->shape);
    vd_print_shape(&c->text[1], &b->shape);
    settle(c, "shape");
    if (!data)
        return;
    print_root(&c->text[0], &c->program[0]->data[i]);
    print_root(&c->text[1], &c->program[1]->data[k]);
    settle(c, "contents");
    print_range(&c->text[0], &c->program[0]->data[i]);
    print_range(&c->text[1], &c->program[1]->data[k]);
    settle(c, "range");
}

static void compare_lists(comparing *c, bool data) {
    const vd_pairs *pairs = data ? &c->pairs->data : &c->pairs->leaf;
    c->at = (vd_program_difference){
        data ? "data" : "state", "", NULL, {NULL}, {VD_UNPAIRED, VD_UNPAIRED}};
    for (uint32_t i = 0; i < pairs->count[0]; i++)
        if (pairs->of[0][i] == VD_UNPAIRED)
            tell_alone(c, 0, data, i);
        else
            compare_tensors(c, data, i, pairs->of[0][i]);
    for (uint32_t k = 0; k < pairs->count[1]; k++)
        if (pairs->of[1][k] == VD_UNPAIRED)
            tell_alone(c, 1, data, k);
}

/* ---- nodes ---- */

static const vd_graph *graph_of(const comparing *c, int side, bool init) {
    return init ? &c->program[side]->init : &c->program[side]->step;
}

static void tell_node(comparing *c, int side, const vd_graph *g, uint32_t node) {
    const vd_name name = vd_node_name(g, node);
    const vd_node *n = vd_node_stored(g, node);
    c->at.name = name.text;
    c->at.node[side] = node;
    c->at.node[!side] = VD_UNPAIRED;
    vd_printf(&c->text[side], "%s -> ", ro_op_describe(n->op)->name);
    vd_print_shape(&c->text[side], &n->shape);
    tell(c, "node", side == 0, side == 1);
}

static void compare_attrs(comparing *c, const vd_graph *a, uint32_t i, const vd_graph *b,
                          uint32_t k) {
    const ro_op_info *info = ro_op_describe(vd_node_stored(a, i)->op);
    char what[64];
    for (int attr = 0; attr < info->attr_count; attr++) {
        const int64_t x = vd_node_attr(a, i, attr), y = vd_node_attr(b, k, attr);
        if (x == y)
            continue;
        vd_print_attr(&c->text[0], info, attr, x);
        vd_print_attr(&c->text[1], info, attr, y);
        snprintf(what, sizeof what, "attribute %s", info->attr[attr].name);
        tell(c, what, true, true);
    }
}

/* Returns the partner of a value of `a` as a value of `b`, or no value if it has none. */
static uint32_t partner(const comparing *c, const vd_pairs *nodes, const vd_graph *a,
                        const vd_graph *b, uint32_t value) {
    const vd_program *p = c->program[0], *q = c->program[1];
    const uint32_t sources = vd_source_count(p, a), others = vd_source_count(q, b);
    uint32_t index;
    if (value >= sources) {
        const uint32_t node = nodes->of[0][value - sources];
        return node == VD_UNPAIRED ? node : others + node;
    }
    switch (vd_source_of(p, a, value, &index)) {
    case VD_SOURCE_STATE: return c->pairs->leaf.of[0][index];
    case VD_SOURCE_DATA:
        index = c->pairs->data.of[0][index];
        return index == VD_UNPAIRED ? index : vd_state_sources(q, b) + index;
    default: return others - 1;
    }
}

/* Prints an input. A node is printed by its name, because its number may have changed. */
static void print_input(vd_buf *out, const vd_program *p, const vd_graph *g, uint32_t value) {
    const uint32_t sources = vd_source_count(p, g);
    if (value < sources) {
        vd_print_value(out, p, g, value);
        return;
    }
    const vd_name name = vd_node_name(g, value - sources);
    vd_printf(out, "%%%u %s", value - sources, name.text);
}

static void compare_input(comparing *c, bool init, uint32_t i, uint32_t k, int32_t input) {
    const vd_graph *a = graph_of(c, 0, init), *b = graph_of(c, 1, init);
    const vd_pairs *nodes = init ? &c->pairs->init : &c->pairs->step;
    const uint32_t x = vd_node_input(a, i, input), y = vd_node_input(b, k, input);
    char what[32];
    if (partner(c, nodes, a, b, x) == y)
        return;
    print_input(&c->text[0], c->program[0], a, x);
    print_input(&c->text[1], c->program[1], b, y);
    snprintf(what, sizeof what, "input %d", (int)input);
    tell(c, what, true, true);
}

static void compare_nodes(comparing *c, bool init, uint32_t i, uint32_t k) {
    const vd_graph *a = graph_of(c, 0, init), *b = graph_of(c, 1, init);
    const vd_node *x = vd_node_stored(a, i), *y = vd_node_stored(b, k);
    const vd_name name = vd_node_name(a, i), other = vd_node_name(b, k);
    c->at.name = name.text;
    c->at.node[0] = i;
    c->at.node[1] = k;
    vd_printf(&c->text[0], "%s", name.text);
    vd_printf(&c->text[1], "%s", other.text);
    settle(c, "name");
    vd_printf(&c->text[0], "%s", ro_op_describe(x->op)->name);
    vd_printf(&c->text[1], "%s", ro_op_describe(y->op)->name);
    settle(c, "operator");
    vd_print_shape(&c->text[0], &x->shape);
    vd_print_shape(&c->text[1], &y->shape);
    settle(c, "shape");
    if (x->op == y->op)
        compare_attrs(c, a, i, b, k);
    compare_numbers(c, "number of inputs", x->input_count, y->input_count);
    for (int32_t input = 0; input < x->input_count && input < y->input_count; input++)
        compare_input(c, init, i, k, input);
}

static void compare_graphs(comparing *c, bool init) {
    const vd_pairs *pairs = init ? &c->pairs->init : &c->pairs->step;
    c->at.where = init ? "init" : "step";
    for (uint32_t i = 0; i < pairs->count[0]; i++)
        if (pairs->of[0][i] == VD_UNPAIRED)
            tell_node(c, 0, graph_of(c, 0, init), i);
        else
            compare_nodes(c, init, i, pairs->of[0][i]);
    for (uint32_t k = 0; k < pairs->count[1]; k++)
        if (pairs->of[1][k] == VD_UNPAIRED)
            tell_node(c, 1, graph_of(c, 1, init), k);
}

/* ---- outputs: the next state ---- */

static void compare_outputs(comparing *c, bool init) {
    const vd_graph *a = graph_of(c, 0, init), *b = graph_of(c, 1, init);
    const vd_pairs *nodes = init ? &c->pairs->init : &c->pairs->step;
    c->at = (vd_program_difference){
        init ? "init" : "step", "", NULL, {NULL}, {VD_UNPAIRED, VD_UNPAIRED}};
    for (uint32_t i = 0; i < c->pairs->leaf.count[0]; i++) {
        const uint32_t k = c->pairs->leaf.of[0][i];
        if (k == VD_UNPAIRED || partner(c, nodes, a, b, a->output[i]) == b->output[k])
            continue;
        c->at.name = c->program[0]->leaf[i].name;
        print_input(&c->text[0], c->program[0], a, a->output[i]);
        print_input(&c->text[1], c->program[1], b, b->output[k]);
        tell(c, "next state", true, true);
    }
    const bool has[] = {a->loss != UINT32_MAX, b->loss != UINT32_MAX};
    if (has[0] == has[1] && (!has[0] || partner(c, nodes, a, b, a->loss) == b->loss))
        return;
    c->at.name = "";
    if (has[0])
        print_input(&c->text[0], c->program[0], a, a->loss);
    if (has[1])
        print_input(&c->text[1], c->program[1], b, b->loss);
    tell(c, "loss", has[0], has[1]);
}

/* Reports paired nodes whose partners stand in another order. */
static void compare_order(comparing *c, bool init) {
    const vd_pairs *pairs = init ? &c->pairs->init : &c->pairs->step;
    uint32_t last = 0;
    c->at = (vd_program_difference){
        init ? "init" : "step", "", NULL, {NULL}, {VD_UNPAIRED, VD_UNPAIRED}};
    for (uint32_t i = 0; i < pairs->count[0]; i++) {
        const uint32_t k = pairs->of[0][i];
        if (k == VD_UNPAIRED)
            continue;
        if (k < last) {
            const vd_name name = vd_node_name(graph_of(c, 0, init), i);
            c->at.name = name.text;
            vd_printf(&c->text[0], "%%%u", i);
            vd_printf(&c->text[1], "%%%u", k);
            tell(c, "order of nodes", true, true);
            return;
        }
        last = k;
    }
}

vd_status vd_program_compare(const vd_program *a, const vd_program *b, const vd_alignment *pairs,
                             vd_tell_difference take, void *user, vd_err *err) {
    comparing c = {.program = {a, b}, .pairs = pairs, .tell = take, .user = user};
    compare_heads(&c);
    compare_lists(&c, false);
    compare_lists(&c, true);
    for (int init = 1; init >= 0; init--) {
        compare_graphs(&c, init);
        compare_order(&c, init);
        compare_outputs(&c, init);
    }
    vd_buf_free(&c.text[0]);
    vd_buf_free(&c.text[1]);
    return c.failed
               ? vd_fail(err, VD_ERR_LOCAL, "out of memory for the differences of two programs")
               : VD_OK;
}
