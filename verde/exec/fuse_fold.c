/* This file folds a graph with repeats into a plain one: it has each body once, and nodes without
 * an operator for values from elsewhere. Patterns are then found once for all iterations. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/fuse_match.h"

enum { RECENT = 256 };

typedef struct {
    const vd_program *program;
    const vd_graph *graph;
    vd_graph *out;
    vd_plan *plan;        /* receives the entries */
    uint32_t *extra;      /* of each stored node: reads from other iterations or from outside */
    uint32_t *total;      /* of each sum: the node that represents its total */
    uint32_t *carried;    /* of each carried value: the node that represents it */
    uint32_t capacity;    /* of the entries */
    uint32_t first_other; /* first node that may represent values read by this segment */
    bool counts, failed;  /* `counts`: reads are added to `extra` */
} folder;

static bool grow(void *list, size_t count, size_t size) {
    void *old;
    memcpy(&old, list, sizeof old);
    void *grown = realloc(old, count * size);
    if (grown)
        memcpy(list, &grown, sizeof grown);
    return grown != NULL;
}

/* Makes room for a node with `inputs` edges. */
static bool reserve(folder *f, uint32_t inputs) {
    vd_graph *g = f->out;
    if (g->node_count == f->capacity) {
        f->capacity = 2 * f->capacity + 64;
        f->failed |= !grow(&g->stored, f->capacity, sizeof *g->stored) ||
                     !grow(&f->plan->entry, f->capacity, sizeof *f->plan->entry);
    }
    if (g->edge_count + inputs > g->edge_capacity) {
        g->edge_capacity = 2 * g->edge_capacity + inputs + 64;
        f->failed |= !grow(&g->stored_edge, g->edge_capacity, sizeof *g->stored_edge);
    }
    return !f->failed;
}

/* Adds a node and returns its value. */
static uint32_t put(folder *f, const vd_node *like, vd_folded entry, uint32_t inputs,
                    const uint32_t *input) {
    vd_graph *g = f->out;
    if (!reserve(f, inputs))
        return 0;
    vd_node *n = &g->stored[g->node_count];
    *n = *like;
    n->input_count = (int32_t)inputs;
    n->first_input = g->edge_count;
    for (uint32_t i = 0; i < inputs; i++)
        g->stored_edge[g->edge_count++] = input[i];
    f->plan->entry[g->node_count] = entry;
    g->stored_count = g->node_count + 1;
    return f->graph->sources + g->node_count++;
}

/* Returns whether two entries mean the same. Edges with equal shifted inputs share one entry. */
static bool stands_for_same(const vd_graph *g, const vd_folded *a, const vd_folded *b) {
    if (a->kind != b->kind || a->number == b->number || a->kind != VD_FOLDED_SHIFTED)
        return a->kind == b->kind && a->number == b->number;
    const vd_shifted *s = &g->shifted[a->number], *t = &g->shifted[b->number];
    return s->first == t->first && s->slope == t->slope && s->count == t->count;
}

/* Returns a node for `entry`, perhaps one that the segment added recently. */
static uint32_t stand_for(folder *f, const ro_shape *shape, vd_folded entry) {
    const vd_node like = {.op = RO_OP_NONE, .shape = *shape};
    uint32_t seen = 0;
    for (uint32_t i = f->out->node_count; i-- > f->first_other && seen < RECENT;) {
        if (f->out->stored[i].op != RO_OP_NONE)
            continue;
        if (stands_for_same(f->graph, &f->plan->entry[i], &entry))
            return f->graph->sources + i;
        seen++;
    }
    return put(f, &like, entry, 0, NULL);
}

static uint32_t fold_value(folder *f, uint32_t value) {
    const vd_graph *g = f->graph;
    if (value < g->sources)
        return value;
    const vd_spot s = vd_node_spot(g, value - g->sources);
    if (!s.repeat)
        return g->sources + f->plan->folded_of[s.stored];
    if (s.stored == VD_SPOT_SUM && value == vd_repeat_sum_value(g, s.repeat, s.sum))
        return f->total[s.repeat->sum + s.sum];
    if (s.stored != VD_SPOT_SUM)
        f->extra[s.stored] += f->counts;
    return stand_for(f, vd_value_shape(f->program, g, value),
                     (vd_folded){VD_FOLDED_VALUE, value, NULL});
}

/* Folds a shifted input. Each of its values is a read from another iteration or segment. */
static uint32_t fold_shifted(folder *f, uint32_t number) {
    const vd_graph *g = f->graph;
    const vd_shifted *s = &g->shifted[number];
    for (uint32_t m = 0; m < s->count && f->counts; m++) {
        const uint32_t value = vd_shifted_value(s, m);
        if (value < g->sources)
            continue;
        const vd_spot spot = vd_node_spot(g, value - g->sources);
        if (spot.stored != VD_SPOT_SUM)
            f->extra[spot.stored]++;
    }
    return stand_for(f, vd_value_shape(f->program, g, s->first),
                     (vd_folded){VD_FOLDED_SHIFTED, number, NULL});
}

static uint32_t fold_edge(folder *f, const vd_repeat *r, uint32_t edge) {
    const vd_graph *g = f->graph;
    const uint32_t number = g->stored_edge[edge];
    if (!r || g->stored_from[edge] == VD_FROM_VALUE)
        return fold_value(f, number);
    if (g->stored_from[edge] == VD_FROM_CARRIED)
        return f->carried[r->carried + number];
    if (g->stored_from[edge] == VD_FROM_SHIFTED)
        return fold_shifted(f, number);
    if (number >= r->first)
        return g->sources + f->plan->folded_of[number];
    f->extra[number] += f->counts;
    return stand_for(f, &g->stored[number].shape, (vd_folded){VD_FOLDED_NODE, number, NULL});
}

/* Adds nodes for values from elsewhere before their readers, as inputs come first in a graph. */
static void stand_first(folder *f, const vd_repeat *r, uint32_t first, uint32_t end) {
    f->counts = false;
    for (uint32_t i = first; i < end && !f->failed; i++) {
        const vd_node *n = &f->graph->stored[i];
        for (int32_t k = 0; k < n->input_count; k++)
            (void)fold_edge(f, r, n->first_input + (uint32_t)k);
    }
    f->counts = true;
}

static void fold_nodes(folder *f, const vd_repeat *r, uint32_t first, uint32_t end) {
    uint32_t input[RO_MAX_INPUTS];
    f->first_other = f->out->node_count;
    stand_first(f, r, first, end);
    for (uint32_t i = first; i < end && !f->failed; i++) {
        const vd_node *n = &f->graph->stored[i];
        for (int32_t k = 0; k < n->input_count; k++)
            input[k] = fold_edge(f, r, n->first_input + (uint32_t)k);
        f->plan->folded_of[i] =
            put(f, n, (vd_folded){VD_FOLDED_NODE, i, NULL}, (uint32_t)n->input_count, input) -
            f->graph->sources;
    }
}

/* Counts a read that is no edge. */
static void read_also(folder *f, uint32_t value) {
    if (value < f->graph->sources)
        return;
    const vd_spot s = vd_node_spot(f->graph, value - f->graph->sources);
    if (s.stored != VD_SPOT_SUM)
        f->extra[s.stored]++;
}

static void fold_repeat(folder *f, const vd_repeat *r) {
    const vd_graph *g = f->graph;
    vd_node like = {.op = RO_OP_NONE};
    for (uint32_t i = r->carried; i < r->carried + r->carried_count; i++) {
        like.shape = g->stored[g->carried[i].node].shape;
        f->carried[i] = put(f, &like, (vd_folded){VD_FOLDED_CARRIED, i, r}, 0, NULL);
        f->extra[g->carried[i].node]++;
        read_also(f, g->carried[i].before);
    }
    fold_nodes(f, r, r->first, r->first + r->size);
    for (uint32_t i = 0; i < r->sum_count; i++) {
        like.shape = g->sum[r->sum + i].add.shape;
        f->total[r->sum + i] = put(
            f, &like, (vd_folded){VD_FOLDED_VALUE, vd_repeat_sum_value(g, r, i), NULL}, 0, NULL);
        f->extra[g->sum[r->sum + i].node]++;
    }
}

static void fold_all(folder *f) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < f->graph->repeat_count; i++) {
        const vd_repeat *r = &f->graph->repeat[i];
        fold_nodes(f, NULL, at, r->first);
        fold_repeat(f, r);
        at = r->first + r->size;
    }
    fold_nodes(f, NULL, at, f->graph->stored_count);
}

/* Counts the reads of each folded value, by folded nodes and by everything else. */
static void count_uses(folder *f, uint32_t *uses) {
    const vd_graph *g = f->graph;
    for (uint32_t i = 0; i < f->out->edge_count; i++)
        uses[f->out->stored_edge[i]]++;
    for (uint32_t i = 0; i < f->program->leaf_count + 1; i++) {
        const uint32_t value = i < f->program->leaf_count ? g->output[i] : g->loss;
        if (value != UINT32_MAX)
            read_also(f, value);
    }
    for (uint32_t i = 0; i < g->stored_count; i++)
        uses[g->sources + f->plan->folded_of[i]] += f->extra[i];
}

bool vd_fold_graph(const vd_program *program, const vd_graph *graph, vd_plan *plan, vd_graph *out,
                   uint32_t **uses) {
    folder f = {.program = program, .graph = graph, .out = out, .plan = plan};
    *out = (vd_graph){.sources = graph->sources, .loss = UINT32_MAX};
    plan->folded_of = calloc((size_t)graph->stored_count + 1, sizeof *plan->folded_of);
    f.extra = calloc((size_t)graph->stored_count + 1, sizeof *f.extra);
    f.total = calloc((size_t)graph->sum_count + 1, sizeof *f.total);
    f.carried = calloc((size_t)graph->carried_count + 1, sizeof *f.carried);
    f.failed = !plan->folded_of || !f.extra || !f.total || !f.carried;
    if (!f.failed)
        fold_all(&f);
    *uses = f.failed ? NULL : calloc((size_t)graph->sources + out->node_count + 1, sizeof **uses);
    if (*uses)
        count_uses(&f, *uses);
    free(f.extra);
    free(f.total);
    free(f.carried);
    return *uses != NULL;
}

/* ---- a plan for the nodes that a graph means ---- */

static vd_planned planned(const vd_plan *plan, uint32_t folded, uint32_t iteration) {
    const uint32_t group = plan->group_of[folded];
    const bool waits = group != VD_NO_GROUP && plan->group[group].kind == VD_FUSED_ELEMENTS &&
                       plan->group[group].member[0] != folded;
    return (vd_planned){group, iteration, plan->idle[folded], waits};
}

vd_planned vd_plan_of(const vd_plan *plan, const vd_graph *graph, uint32_t node) {
    if (!plan->folded_of)
        return planned(plan, node, 0);
    const vd_spot s = vd_node_spot(graph, node);
    return s.stored == VD_SPOT_SUM ? (vd_planned){VD_NO_GROUP, s.iteration, false, false}
                                   : planned(plan, plan->folded_of[s.stored], s.iteration);
}

uint32_t vd_plan_value(const vd_plan *plan, const vd_graph *graph, uint32_t value,
                       uint32_t iteration) {
    if (!plan->entry || value < graph->sources)
        return value;
    const vd_folded *e = &plan->entry[value - graph->sources];
    if (e->kind == VD_FOLDED_VALUE)
        return e->number;
    if (e->kind == VD_FOLDED_NODE)
        return graph->sources + vd_node_number(graph, e->number, iteration);
    if (e->kind == VD_FOLDED_SHIFTED)
        return vd_shifted_value(&graph->shifted[e->number], iteration);
    const vd_carried *c = &graph->carried[e->number];
    return iteration == 0 ? c->before
                          : graph->sources + vd_node_number(graph, c->node, iteration - 1);
}

uint32_t vd_plan_iterations(const vd_plan *plan, const vd_graph *graph, uint32_t group) {
    if (!plan->entry)
        return 1;
    const vd_repeat *r = vd_repeat_of(graph, plan->entry[plan->group[group].member[0]].number);
    return r ? r->count : 1;
}
