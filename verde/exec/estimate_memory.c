/* This file estimates the memory of a step or initialisation from its program alone. It works on
 * stored nodes, because a program of a few hundred bytes may mean 2^26 nodes. */
#include <stdlib.h>

#include "verde/commit/record.h"
#include "verde/exec/estimate.h"

/* Holds any sum: foreign programs may have tensors of 2^40 elements, and mean 2^26 of them. */
__extension__ typedef __int128 bytes128;

/* Readers of values, numbered in the order in which they run; the last one is the next state. */
typedef uint32_t reader;
enum { NONE, BEFORE_ALL, FIRST_NODE };

/* Reads of a body's stored node from outside of its repeat, in iterations first..last; the repeat's
 * last iteration is treated apart. The estimate keeps as many of these values as there are reads,
 * at most one per iteration, until `by`, the last of the readers. */
typedef struct {
    bool is_read;
    uint32_t first, last;
    uint64_t reads;
    reader by;
} span;

typedef struct {
    const vd_program *program;
    const vd_graph *graph;
    uint32_t states, sources;
    reader *leaf;  /* of each leaf of the state: its last reader */
    reader *last;  /* of each stored node: last reader from outside; in bodies, of the last value */
    reader *later; /* of a body's node: last reader in later repeats, in the same iteration */
    reader *here;  /* of a body's node: its last reader in the same iteration */
    reader *slot;  /* of each carried value: its last reader in an iteration */
    reader *total; /* of each sum: last reader of its total */
    span *shifted; /* of a body's node that shifted inputs read: see `span` */
    bool *carried; /* whether a stored node's value is carried */
    uint32_t *summed; /* number of sums that a stored node's value is added to */
    bytes128 *freed;  /* bytes freed after each reader; in bodies, in each iteration but the last */
    bytes128 *freed_last; /* in bodies: bytes freed after each reader in the last iteration */
    bytes128 *ended;      /* bytes freed after the reader, or after its repeat */
    bytes128 *early; /* of each repeat: bytes of earlier iterations that are read from outside */
    bytes128 live, most;
} estimate;

static uint64_t stored_bytes(const estimate *e, uint32_t stored) {
    return vd_estimate_shape(&e->graph->stored[stored].shape);
}

static bool in_body(const vd_repeat *r, uint32_t stored) {
    return r && stored >= r->first && stored - r->first < r->size;
}

/* ---- who reads what ---- */

static void read_by(reader *last, reader by) {
    if (by > *last)
        *last = by;
}

static void hold_early(estimate *e, const vd_repeat *r, uint64_t size, reader by) {
    e->early[r - e->graph->repeat] += size;
    e->ended[by] += size;
}

static void read_sum(estimate *e, const vd_spot *s, reader by) {
    const vd_repeat *r = s->repeat;
    const uint32_t end = r->count - 1, sum = r->sum + s->sum;
    if (s->iteration == end && s->merge == (uint32_t)__builtin_popcount(end))
        read_by(&e->total[sum], by);
    else
        hold_early(e, r, vd_estimate_shape(&e->graph->sum[sum].add.shape), by);
}

static void read_span(span *s, uint32_t iteration, reader by) {
    s->first = s->reads == 0 || iteration < s->first ? iteration : s->first;
    s->last = s->reads == 0 || iteration > s->last ? iteration : s->last;
    s->reads++;
    read_by(&s->by, by);
}

/* Notes a read of a value from outside of the repeat that makes it. */
static void read_value(estimate *e, uint32_t value, reader by) {
    if (value < e->states)
        read_by(&e->leaf[value], by);
    if (value < e->sources)
        return;
    const vd_spot s = vd_node_spot(e->graph, value - e->sources);
    if (s.stored == VD_SPOT_SUM)
        read_sum(e, &s, by);
    else if (!s.repeat || s.iteration == s.repeat->count - 1)
        read_by(&e->last[s.stored], by);
    else if (e->shifted[s.stored].is_read)
        read_span(&e->shifted[s.stored], s.iteration, by);
    else
        hold_early(e, s.repeat, stored_bytes(e, s.stored), by);
}

/* Notes a read of a carried value. Its first value, from before the repeat, is copied to the
 * carried value's place when the repeat begins. */
static void read_carried(estimate *e, const vd_repeat *r, uint32_t number, reader by) {
    const vd_carried *c = &e->graph->carried[r->carried + number];
    read_by(&e->slot[r->carried + number], by);
    e->carried[c->node] = true;
    read_value(e, c->before, r->first + FIRST_NODE - 1);
}

static void read_edge(estimate *e, const vd_repeat *r, uint32_t edge, reader by) {
    const vd_graph *g = e->graph;
    const uint32_t number = g->stored_edge[edge];
    const int from = r && g->stored_from ? g->stored_from[edge] : VD_FROM_VALUE;
    if (from == VD_FROM_VALUE)
        read_value(e, number, by);
    else if (from == VD_FROM_CARRIED)
        read_carried(e, r, number, by);
    else if (from == VD_FROM_SHIFTED)
        for (uint32_t m = 0; m < r->count; m++)
            read_value(e, vd_shifted_value(&g->shifted[number], m), by);
    else
        read_by(in_body(r, number) ? &e->here[number] : &e->later[number], by);
}

static void find_shifted(estimate *e) {
    const vd_graph *g = e->graph;
    for (uint32_t i = 0; i < g->shifted_count; i++)
        for (uint32_t m = 0; m < g->shifted[i].count; m++) {
            const uint32_t value = vd_shifted_value(&g->shifted[i], m);
            if (value < e->sources)
                continue;
            const vd_spot s = vd_node_spot(g, value - e->sources);
            if (s.stored != VD_SPOT_SUM)
                e->shifted[s.stored].is_read = true;
        }
}

static void find_readers(estimate *e) {
    const vd_graph *g = e->graph;
    find_shifted(e);
    for (uint32_t i = 0; i < g->stored_count; i++) {
        const vd_repeat *r = vd_repeat_of(g, i);
        for (int32_t k = 0; k < g->stored[i].input_count; k++)
            read_edge(e, r, g->stored[i].first_input + (uint32_t)k, i + FIRST_NODE);
    }
    for (uint32_t i = 0; i < g->sum_count; i++)
        e->summed[g->sum[i].node]++;
    for (uint32_t i = 0; i < e->program->leaf_count; i++)
        read_value(e, g->output[i], g->stored_count + FIRST_NODE);
}

/* ---- when values are freed ---- */

/* Notes when a body's value is freed; if nobody reads it, that is as soon as it is made. */
static void free_body_value(estimate *e, uint32_t i) {
    const reader by = e->here[i] ? e->here[i] : i + FIRST_NODE;
    const uint64_t size = stored_bytes(e, i);
    if (!e->summed[i] && !e->later[i] && !e->carried[i])
        e->freed[by] += size;
    if (!e->summed[i] && !e->later[i] && !e->last[i])
        e->freed_last[by] += size;
    if (e->later[i]) {
        e->freed[e->later[i]] += size;
        e->freed_last[e->later[i]] += size;
    }
    if (e->last[i])
        e->ended[e->last[i]] += size;
}

static void free_span(estimate *e, uint32_t i) {
    const span *s = &e->shifted[i];
    const uint64_t there = (uint64_t)s->last - s->first + 1;
    const bytes128 size = stored_bytes(e, i);
    if (s->reads == 0)
        return;
    e->early[vd_repeat_of(e->graph, i) - e->graph->repeat] +=
        size * (s->reads < there ? s->reads : there);
    e->ended[s->by] += size * (s->reads < there ? s->reads : there);
}

/* Notes when other values are freed: those that a body reads from outside, at its repeat's end. */
static void find_ends(estimate *e) {
    const vd_graph *g = e->graph;
    for (uint32_t i = 0; i < e->states; i++)
        e->ended[e->leaf[i]] += e->leaf[i] ? vd_estimate_shape(&e->program->leaf[i].shape) : 0;
    for (uint32_t i = 0; i < g->stored_count; i++) {
        free_span(e, i);
        if (vd_repeat_of(g, i))
            free_body_value(e, i);
        else
            e->ended[e->last[i] ? e->last[i] : i + FIRST_NODE] += stored_bytes(e, i);
    }
    for (uint32_t i = 0; i < g->repeat_count; i++)
        for (uint32_t c = g->repeat[i].carried;
             c < g->repeat[i].carried + g->repeat[i].carried_count; c++)
            if (e->slot[c]) {
                e->freed[e->slot[c]] += stored_bytes(e, g->carried[c].node);
                e->freed_last[e->slot[c]] += stored_bytes(e, g->carried[c].node);
            }
    for (uint32_t i = 0; i < g->sum_count; i++)
        e->ended[e->total[i]] += e->total[i] ? vd_estimate_shape(&g->sum[i].add.shape) : 0;
}

/* ---- how much is alive ---- */

static void stand(estimate *e, bytes128 live) {
    e->most = live > e->most ? live : e->most;
}

/* The largest number up to `to` with exactly `ones` one-bits; -1: there is none. */
static int64_t largest_with_ones(uint32_t to, int ones) {
    int64_t most = __builtin_popcount(to) == ones ? (int64_t)to : -1;
    for (int bit = 0; bit < 32; bit++) {
        const uint32_t before = bit < 31 ? to >> (bit + 1) << (bit + 1) : 0;
        const int more = ones - __builtin_popcount(before);
        if (!(to >> bit & 1) || more < 0 || more > bit)
            continue;
        const int64_t number = before + ((INT64_C(1) << bit) - (INT64_C(1) << (bit - more)));
        most = number > most ? number : most;
    }
    return most;
}

/* Runs one iteration on top of `live` bytes, and returns the bytes that are alive after it. */
static bytes128 run_body(estimate *e, const vd_repeat *r, const bytes128 *freed, bytes128 live) {
    for (uint32_t i = r->first; i < r->first + r->size; i++) {
        live += stored_bytes(e, i);
        stand(e, live);
        live -= freed[i + FIRST_NODE];
    }
    return live;
}

/* Runs the first addition of each sum after an iteration: it reads a total and the iteration's
 * value, which others may still read. Later additions need no more. */
static void run_sums(estimate *e, const vd_repeat *r, bytes128 live) {
    for (uint32_t i = r->sum; i < r->sum + r->sum_count; i++) {
        const uint32_t node = e->graph->sum[i].node;
        const uint64_t size = vd_estimate_shape(&e->graph->sum[i].add.shape);
        live += size;
        stand(e, live);
        live -= size;
        if (e->summed[node] == 1 && !e->carried[node] && !e->later[node] && !e->last[node])
            live -= size;
    }
}

typedef struct {
    bytes128 slots;   /* bytes of carried values */
    bytes128 each;    /* bytes that stay per iteration, less those it frees of earlier repeats */
    bytes128 partial; /* bytes of one total per sum, over some of the iterations */
    bytes128 left;    /* bytes of the last iteration and of totals that are read after the repeat */
} repeated;

static repeated weigh(const estimate *e, const vd_repeat *r) {
    repeated w = {0};
    for (uint32_t c = r->carried; c < r->carried + r->carried_count; c++)
        w.slots += e->slot[c] ? stored_bytes(e, e->graph->carried[c].node) : 0;
    for (uint32_t i = r->first; i < r->first + r->size; i++) {
        w.each += e->later[i] ? stored_bytes(e, i) : 0;
        w.left += e->last[i] ? stored_bytes(e, i) : 0;
    }
    for (uint32_t i = 0; i < r->first; i++)
        if (e->later[i] && in_body(r, e->later[i] - FIRST_NODE))
            w.each -= stored_bytes(e, i);
    for (uint32_t i = r->sum; i < r->sum + r->sum_count; i++) {
        const uint64_t size = vd_estimate_shape(&e->graph->sum[i].add.shape);
        w.partial += size;
        w.left += e->total[i] ? size : 0;
    }
    return w;
}

/* The most that is alive at the beginning of an iteration in 0..to, besides what was before the
 * repeat: one total per sum for each one-bit of its number, and what earlier iterations left. */
static bytes128 most_before(const repeated *w, uint32_t to) {
    bytes128 most = 0;
    for (int ones = 1; ones <= 32; ones++) {
        const int64_t last = largest_with_ones(to, ones), first = (INT64_C(1) << ones) - 1;
        const bytes128 live = ones * w->partial + w->each * (w->each < 0 ? first : last);
        if (last >= 0 && live > most)
            most = live;
    }
    return most;
}

/* Runs the worst of all iterations but the last, and then the last one. */
static void run_repeat(estimate *e, const vd_repeat *r) {
    const repeated w = weigh(e, r);
    const uint32_t end = r->count - 1;
    const bytes128 before = e->live + e->early[r - e->graph->repeat];
    bytes128 left = run_body(e, r, e->freed, before + w.slots + most_before(&w, end - 1));
    if (end > 1)
        run_sums(e, r, left);
    left = run_body(e, r, e->freed_last,
                    before + w.slots + w.each * end + __builtin_popcount(end) * w.partial);
    run_sums(e, r, left);
    e->live = before + w.each * r->count + w.left;
    for (uint32_t i = r->first; i < r->first + r->size; i++)
        e->live -= e->ended[i + FIRST_NODE];
}

static void run_nodes(estimate *e) {
    const vd_graph *g = e->graph;
    for (uint32_t i = 0; i < e->states; i++)
        e->live += vd_estimate_shape(&e->program->leaf[i].shape);
    stand(e, e->live);
    e->live -= e->ended[BEFORE_ALL];
    for (uint32_t i = 0, r = 0; i < g->stored_count;) {
        if (r < g->repeat_count && g->repeat[r].first == i) {
            run_repeat(e, &g->repeat[r]);
            i += g->repeat[r++].size;
            continue;
        }
        e->live += stored_bytes(e, i);
        stand(e, e->live);
        e->live -= e->ended[i++ + FIRST_NODE];
    }
}

/* ---- the whole estimate ---- */

/* Bytes of a trace: the commitments of all values, both where records are made and where they are
 * checked; the records; and their tree. */
static uint64_t trace_bytes(const vd_program *program, const vd_graph *graph) {
    const uint64_t nodes = graph->node_count;
    const uint64_t values = nodes + vd_source_count(program, graph);
    return vd_records_bytes(nodes, vd_inputs_meant(graph)) + 2 * VD_HASH_SIZE * (values + nodes);
}

static bool take_memory(estimate *e) {
    const vd_graph *g = e->graph;
    const size_t nodes = (size_t)g->stored_count + FIRST_NODE + 1;
    return (e->leaf = calloc((size_t)e->states + 1, sizeof *e->leaf)) &&
           (e->last = calloc(nodes, sizeof *e->last)) &&
           (e->later = calloc(nodes, sizeof *e->later)) &&
           (e->here = calloc(nodes, sizeof *e->here)) &&
           (e->slot = calloc((size_t)g->carried_count + 1, sizeof *e->slot)) &&
           (e->total = calloc((size_t)g->sum_count + 1, sizeof *e->total)) &&
           (e->shifted = calloc(nodes, sizeof *e->shifted)) &&
           (e->carried = calloc(nodes, sizeof *e->carried)) &&
           (e->summed = calloc(nodes, sizeof *e->summed)) &&
           (e->freed = calloc(nodes, sizeof *e->freed)) &&
           (e->freed_last = calloc(nodes, sizeof *e->freed_last)) &&
           (e->ended = calloc(nodes, sizeof *e->ended)) &&
           (e->early = calloc((size_t)g->repeat_count + 1, sizeof *e->early));
}

static void free_memory(estimate *e) {
    free(e->leaf);
    free(e->last);
    free(e->later);
    free(e->here);
    free(e->slot);
    free(e->total);
    free(e->shifted);
    free(e->carried);
    free(e->summed);
    free(e->freed);
    free(e->freed_last);
    free(e->ended);
    free(e->early);
}

static vd_status estimate_graph(const vd_program *program, const vd_graph *graph, uint64_t *out,
                                vd_err *err) {
    estimate e = {.program = program,
                  .graph = graph,
                  .states = vd_state_sources(program, graph),
                  .sources = vd_source_count(program, graph)};
    const bool taken = take_memory(&e);
    if (taken) {
        find_readers(&e);
        find_ends(&e);
        run_nodes(&e);
        e.most += trace_bytes(program, graph);
        *out = e.most < UINT64_MAX ? (uint64_t)e.most : UINT64_MAX;
    }
    free_memory(&e);
    return taken ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

vd_status vd_estimate_memory(const vd_program *program, uint64_t *out, vd_err *err) {
    uint64_t init = 0, step = 0;
    vd_status status = estimate_graph(program, &program->init, &init, err);
    if (status == VD_OK)
        status = estimate_graph(program, &program->step, &step, err);
    *out = init > step ? init : step;
    return status;
}
