/* This file finds owners: nodes and leaves of a parameter are joined into one set, and sets are
 * distributed over ranks by their bytes. */
#include <stdlib.h>

#include "verde/team/plan.h"

/* Disjoint sets of leaves, stored nodes and sums, in this order, as trees. A node behind the
 * repeats joins the sets of the tensors that it reads, except single elements, which are sent
 * instead. */
typedef struct {
    vd_team_plan *plan;
    const vd_graph *graph;
    uint32_t leaves, sources, count;
    uint32_t last; /* first stored node behind all repeats */
    uint32_t *parent;
    bool *joined;    /* whether each element is in a set with a node */
    uint64_t *bytes; /* of each root: bytes of the leaves that its set makes */
    uint32_t *rank;  /* of each root: its owner */
} owners;

#define IN_NO_SET UINT32_MAX

static uint32_t root_of(const owners *o, uint32_t i) {
    while (o->parent[i] != i)
        i = o->parent[i] = o->parent[o->parent[i]];
    return i;
}

static uint32_t of_node(const owners *o, uint32_t stored) {
    return o->leaves + stored;
}

static uint32_t of_sum(const owners *o, uint32_t sum) {
    return o->leaves + o->graph->stored_count + sum;
}

/* Returns the set that a node joins because it reads this value, or IN_NO_SET. */
static uint32_t set_of(const owners *o, uint32_t value) {
    if (ro_shape_numel(vd_value_shape(o->plan->program, o->graph, value)) == 1)
        return IN_NO_SET;
    if (value < o->sources)
        return value < o->leaves ? value : IN_NO_SET;
    const vd_spot s = vd_node_spot(o->graph, value - o->sources);
    if (s.stored == VD_SPOT_SUM)
        return of_sum(o, s.repeat->sum + s.sum);
    return !s.repeat && o->joined[of_node(o, s.stored)] ? of_node(o, s.stored) : IN_NO_SET;
}

static void join(owners *o, uint32_t a, uint32_t b) {
    o->joined[a] = o->joined[b] = true;
    o->parent[root_of(o, b)] = root_of(o, a);
}

/* Joins nodes behind the last repeat with what they read. Nodes before its end, and those that join
 * no set, run everywhere. */
static void join_nodes(owners *o) {
    for (uint32_t i = o->last; i < o->graph->stored_count; i++) {
        const vd_node *n = &o->graph->stored[i];
        for (int32_t k = 0; k < n->input_count; k++) {
            const uint32_t set = set_of(o, o->graph->stored_edge[n->first_input + (uint32_t)k]);
            if (set != IN_NO_SET)
                join(o, of_node(o, i), set);
        }
    }
}

/* The set of the node that makes the next value of a leaf. */
static uint32_t maker_of(const owners *o, uint32_t leaf) {
    const vd_spot s = vd_node_spot(o->graph, o->graph->output[leaf] - o->sources);
    return !s.repeat && o->joined[of_node(o, s.stored)] ? root_of(o, of_node(o, s.stored))
                                                        : IN_NO_SET;
}

typedef struct {
    uint64_t bytes;
    uint32_t root;
} weighed_set;

static int by_bytes(const void *a, const void *b) {
    const weighed_set *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->root < y->root ? -1 : x->root > y->root;
}

/* Gives sets to ranks, the largest set first, each to the rank with the fewest bytes. */
static void share_out(owners *o, weighed_set *set, uint32_t sets, uint64_t *has) {
    qsort(set, sets, sizeof *set, by_bytes);
    for (uint32_t i = 0; i < sets; i++) {
        uint32_t least = 0;
        for (uint32_t r = 1; r < o->plan->ranks; r++)
            if (has[r] < has[least])
                least = r;
        has[least] += set[i].bytes;
        o->rank[set[i].root] = least;
    }
}

static bool weigh(owners *o) {
    const vd_program *p = o->plan->program;
    weighed_set *set = calloc((size_t)o->count + 1, sizeof *set);
    uint64_t *has = calloc(o->plan->ranks, sizeof *has);
    uint32_t sets = 0;
    for (uint32_t i = 0; i < o->leaves; i++) {
        const uint32_t root = maker_of(o, i);
        if (root != IN_NO_SET)
            o->bytes[root] += vd_shape_bytes(&p->leaf[i].shape);
    }
    for (uint32_t i = 0; set && i < o->count; i++)
        if (o->joined[i] && root_of(o, i) == i)
            set[sets++] = (weighed_set){o->bytes[i], i};
    if (set && has)
        share_out(o, set, sets, has);
    const bool ok = set && has;
    free(set);
    free(has);
    return ok;
}

static void take_owners(owners *o) {
    vd_team_plan *plan = o->plan;
    for (uint32_t i = 0; i < o->graph->stored_count; i++)
        plan->owner[i] =
            o->joined[of_node(o, i)] ? o->rank[root_of(o, of_node(o, i))] : VD_TEAM_ALL;
    for (uint32_t i = 0; i < o->graph->sum_count; i++)
        plan->sum_owner[i] = o->joined[of_sum(o, i)] ? o->rank[root_of(o, of_sum(o, i))] : 0;
    for (uint32_t i = 0; i < o->leaves; i++) {
        const uint32_t owner = vd_team_value_owner(plan, o->graph->output[i]);
        plan->leaf_owner[i] = owner == VD_TEAM_ALL ? 0 : owner;
    }
}

vd_status vd_team_find_owners(vd_team_plan *plan, vd_err *err) {
    const vd_graph *g = &plan->program->step;
    owners o = {.plan = plan, .graph = g, .leaves = plan->program->leaf_count};
    o.sources = vd_source_count(plan->program, g);
    o.count = o.leaves + g->stored_count + g->sum_count;
    if (g->repeat_count > 0) {
        const vd_repeat *last = &g->repeat[g->repeat_count - 1];
        o.last = last->first + last->size;
    }
    o.parent = calloc((size_t)o.count + 1, sizeof *o.parent);
    o.joined = calloc((size_t)o.count + 1, sizeof *o.joined);
    o.bytes = calloc((size_t)o.count + 1, sizeof *o.bytes);
    o.rank = calloc((size_t)o.count + 1, sizeof *o.rank);
    bool ok = o.parent && o.joined && o.bytes && o.rank;
    for (uint32_t i = 0; ok && i < o.count; i++)
        o.parent[i] = i;
    if (ok) {
        join_nodes(&o);
        ok = weigh(&o);
    }
    if (ok)
        take_owners(&o);
    free(o.parent);
    free(o.joined);
    free(o.bytes);
    free(o.rank);
    return ok ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory for the owners of a team");
}
