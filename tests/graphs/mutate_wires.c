/* Changes of edges: which values nodes read, the nodes' order, the values of the next state. */
#include <stdlib.h>
#include <string.h>

#include "repops/op_elementwise.h"
#include "tests/support/graph_edit.h"
#include "tests/graphs/mutate.h"

enum { NEAR = 12, RANGE = 24 };

uint32_t site_node(site *s) {
    const uint32_t count = s->graph->stored_count;
    const int64_t at = (int64_t)s->centre - NEAR + dice_below(s->d, 2 * NEAR);
    return at >= 0 && at < count && !dice_one_in(s->d, 3) ? (uint32_t)at : dice_below(s->d, count);
}

uint32_t site_value(site *s, const ro_shape *shape, uint32_t limit, uint32_t but) {
    const uint32_t first = limit ? dice_below(s->d, limit) : 0;
    for (uint32_t i = 0; i < limit; i++) {
        const uint32_t value = (first + i) % limit;
        if (value != but && ro_shape_equal(vd_value_shape(s->program, s->graph, value), shape))
            return value;
    }
    return UINT32_MAX;
}

static uint32_t sources_of(const site *s) {
    return vd_source_count(s->program, s->graph);
}

static uint32_t *edge_of(site *s, uint32_t node, uint32_t i) {
    return &s->graph->stored_edge[s->graph->stored[node].first_input + i];
}

/* ---- one edge ---- */

/* Within a repeat's body: reads another node of the same iteration, or another carried value. */
static bool rewire_in_body(site *s, const vd_repeat *r, uint32_t node, uint32_t i) {
    const uint32_t edge = s->graph->stored[node].first_input + i;
    const uint32_t before = r->carried_count + (node - r->first);
    const uint32_t pick = before ? dice_below(s->d, before) : 0;
    if (!before)
        return false;
    s->graph->stored_from[edge] = pick < r->carried_count ? VD_FROM_CARRIED : VD_FROM_NODE;
    s->graph->stored_edge[edge] =
        pick < r->carried_count ? pick : r->first + pick - r->carried_count;
    return true;
}

static bool rewire(site *s) {
    const uint32_t node = site_node(s);
    const vd_node *n = &s->graph->stored[node];
    const vd_repeat *r = vd_repeat_of(s->graph, node);
    if (n->input_count == 0)
        return false;
    const uint32_t i = dice_below(s->d, (uint32_t)n->input_count);
    if (r && !dice_one_in(s->d, 3))
        return rewire_in_body(s, r, node, i);
    const uint32_t edge = n->first_input + i;
    const uint32_t was = vd_edge_value(s->graph, r, edge, 0);
    const uint32_t place = r ? r->start : vd_node_number(s->graph, node, 0);
    const ro_shape shape = *vd_value_shape(s->program, s->graph, was);
    const uint32_t value = site_value(s, &shape, sources_of(s) + place, was);
    if (value == UINT32_MAX)
        return false;
    s->graph->stored_edge[edge] = value;
    if (r)
        s->graph->stored_from[edge] = VD_FROM_VALUE;
    return true;
}

/* Makes a shifted input of a repeat begin at another value, or go backwards. */
static bool reshift(site *s) {
    if (s->graph->shifted_count == 0)
        return false;
    vd_shifted *x = &s->graph->shifted[dice_below(s->d, s->graph->shifted_count)];
    if (dice_one_in(s->d, 2)) {
        x->first = vd_shifted_value(x, x->count - 1);
        x->slope = -x->slope;
    } else {
        x->first += (uint32_t)(dice_one_in(s->d, 2) ? x->slope : 1);
    }
    return true;
}

/* Finds the next input with the shape of input `first`; `first` itself if there is none. */
static uint32_t input_alike(site *s, uint32_t node, uint32_t first) {
    const uint32_t count = (uint32_t)s->graph->stored[node].input_count;
    const ro_shape *shape = vd_value_shape(s->program, s->graph, *edge_of(s, node, first));
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t k = (first + i) % count;
        if (ro_shape_equal(shape, vd_value_shape(s->program, s->graph, *edge_of(s, node, k))))
            return k;
    }
    return first;
}

/* Makes two inputs the same tensor, or exchanges two inputs. */
static bool share(site *s) {
    const uint32_t node = site_node(s);
    const uint32_t count = (uint32_t)s->graph->stored[node].input_count;
    if (count < 2 || vd_repeat_of(s->graph, node))
        return false;
    const uint32_t first = dice_below(s->d, count);
    uint32_t *a = edge_of(s, node, first);
    uint32_t *b = edge_of(s, node, input_alike(s, node, first));
    const uint32_t was = *a;
    *a = *b;
    if (dice_one_in(s->d, 2))
        *b = was;
    return was != *a;
}

/* Makes readers of a node read one of its inputs instead, or another value of its shape. */
static bool bypass(site *s) {
    const uint32_t node = site_node(s), value = sources_of(s) + node;
    if (!edit_is_plain(s->graph))
        return false;
    const uint32_t by =
        site_value(s, &s->graph->stored[node].shape, sources_of(s) + node, UINT32_MAX);
    if (by == UINT32_MAX)
        return false;
    const bool all = dice_one_in(s->d, 2);
    for (uint32_t i = 0; i < s->graph->edge_count; i++)
        if (s->graph->stored_edge[i] == value && (all || dice_one_in(s->d, 2)))
            s->graph->stored_edge[i] = by;
    return true;
}

/* ---- nodes ---- */

/* Makes about half of the readers of value `from` read `to`, which a node at `place` makes. */
static void redirect(site *s, uint32_t from, uint32_t to, uint32_t place) {
    for (uint32_t i = place + 1; i < s->graph->stored_count; i++)
        for (uint32_t k = 0; k < (uint32_t)s->graph->stored[i].input_count; k++)
            if (*edge_of(s, i, k) == from && dice_one_in(s->d, 2))
                *edge_of(s, i, k) = to;
    for (uint32_t i = 0; i < s->program->leaf_count; i++)
        if (s->graph->output[i] == from && dice_one_in(s->d, 2))
            s->graph->output[i] = to;
}

static bool duplicate(site *s) {
    const uint32_t node = site_node(s);
    if (!edit_is_plain(s->graph))
        return false;
    const uint32_t left = s->graph->stored_count - node;
    const uint32_t at = node + 1 + dice_below(s->d, left < RANGE ? left : RANGE);
    edit_insert(s->program, s->graph, at, &s->graph->stored[node],
                s->graph->stored_edge + s->graph->stored[node].first_input);
    redirect(s, sources_of(s) + node, sources_of(s) + at, at);
    return true;
}

/* Inserts a copy of a range of nodes, perhaps a whole pattern, after it. */
static bool duplicate_range(site *s) {
    const uint32_t first = site_node(s);
    if (!edit_is_plain(s->graph))
        return false;
    const uint32_t left = s->graph->stored_count - first;
    const uint32_t count = 2 + dice_below(s->d, RANGE);
    if (count > left)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const vd_node n = s->graph->stored[first + i];
        uint32_t input[RO_MAX_INPUTS];
        for (uint32_t k = 0; k < (uint32_t)n.input_count; k++) {
            const uint32_t value = s->graph->stored_edge[n.first_input + k];
            const bool inside = value >= sources_of(s) + first && value < sources_of(s) + first + i;
            input[k] = inside ? value + count : value;
        }
        edit_insert(s->program, s->graph, first + count + i, &n, input);
    }
    for (uint32_t i = 0; i < count; i++)
        redirect(s, sources_of(s) + first + i, sources_of(s) + first + count + i,
                 first + 2 * count - 1);
    return true;
}

/* Finds the range of positions that a node may take: after all that it reads, before all its
 * readers. */
static void room_of(site *s, uint32_t node, uint32_t *least, uint32_t *most) {
    const uint32_t value = sources_of(s) + node;
    *least = 0, *most = s->graph->stored_count - 1;
    for (uint32_t k = 0; k < (uint32_t)s->graph->stored[node].input_count; k++) {
        const uint32_t read = *edge_of(s, node, k);
        if (read >= sources_of(s) && read - sources_of(s) + 1 > *least)
            *least = read - sources_of(s) + 1;
    }
    for (uint32_t i = node + 1; i < s->graph->stored_count; i++)
        for (uint32_t k = 0; k < (uint32_t)s->graph->stored[i].input_count; k++)
            if (*edge_of(s, i, k) == value && i - 1 < *most)
                *most = i - 1;
}

static bool move(site *s) {
    const uint32_t node = site_node(s);
    uint32_t least, most;
    if (!edit_is_plain(s->graph))
        return false;
    room_of(s, node, &least, &most);
    const uint32_t to = least + dice_below(s->d, most - least + 1);
    if (to == node)
        return false;
    edit_move(s->program, s->graph, node, to);
    return true;
}

/* Adds a second reader of a value: its sum with another value, which others may read. */
static bool consume(site *s) {
    const uint32_t node = site_node(s), value = sources_of(s) + node;
    const ro_shape shape = s->graph->stored[node].shape;
    if (!edit_is_plain(s->graph) || shape.dtype != RO_F32)
        return false;
    const uint32_t at = node + 1 + dice_below(s->d, s->graph->stored_count - node);
    const uint32_t other = site_value(s, &shape, sources_of(s) + at, UINT32_MAX);
    const vd_node sum = {.op = RO_OP_ADD, .input_count = 2, .shape = shape};
    edit_insert(s->program, s->graph, at, &sum, (uint32_t[]){value, other});
    redirect(s, dice_one_in(s->d, 2) ? value : other, sources_of(s) + at, at);
    return true;
}

/* ---- values of the next state ---- */

static bool expose(site *s) {
    const uint32_t node = site_node(s);
    if (!edit_is_plain(s->graph) || !edit_is_plain(&s->program->init) ||
        s->graph != &s->program->step || s->graph->stored[node].shape.dtype != RO_F32)
        return false;
    edit_add_leaf(s->program, sources_of(s) + node);
    return true;
}

static bool retake(site *s) {
    const uint32_t leaf = dice_below(s->d, s->program->leaf_count);
    const uint32_t values = sources_of(s) + s->graph->node_count;
    uint32_t *taken = &s->graph->output[leaf];
    if (dice_one_in(s->d, 3)) { /* two leaves swap their values, or share one */
        uint32_t *other = &s->graph->output[dice_below(s->d, s->program->leaf_count)];
        const uint32_t was = *taken;
        *taken = *other;
        if (dice_one_in(s->d, 2))
            *other = was;
        return was != *taken;
    }
    const uint32_t value = site_value(s, &s->program->leaf[leaf].shape, values, *taken);
    if (value == UINT32_MAX || value < sources_of(s))
        return false;
    *taken = value;
    return true;
}

static bool report(site *s) {
    const ro_shape scalar = {.dtype = RO_F32, .ndim = 1, .dim = {1}};
    s->graph->loss = site_value(s, &scalar, sources_of(s) + s->graph->node_count, s->graph->loss);
    return s->graph->loss != UINT32_MAX;
}

const mutation wire_mutations[] = {
    {"reads another value", rewire, 10},     {"shares or exchanges inputs", share, 3},
    {"readers pass it by", bypass, 2},       {"a node twice", duplicate, 4},
    {"a stretch twice", duplicate_range, 2}, {"a node elsewhere", move, 6},
    {"a second reader", consume, 3},         {"the state takes a value", expose, 4},
    {"a leaf takes another", retake, 3},     {"another loss", report, 1},
    {"reads with a slope", reshift, 2},
};
const uint32_t wire_mutation_count = sizeof wire_mutations / sizeof wire_mutations[0];
