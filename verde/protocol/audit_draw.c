/* This file draws the steps and places that an audit looks at. PROTOCOL.md section 13.4. */
#include "verde/protocol/audit_draw.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/run.h"

/* ---- numbers ---- */

bool vd_secret_hash(const vd_hash *secret, vd_hash *out) {
    return vd_hash_tagged("verde/secret/1", secret->b, sizeof secret->b, out);
}

bool vd_draw_seed(const void *secret, size_t size, const vd_hash *root, vd_hash *out) {
    vd_buf bytes = {0};
    vd_put(&bytes, secret, size);
    vd_put(&bytes, root->b, sizeof root->b);
    const bool ok =
        vd_buf_ok(&bytes) && vd_hash_tagged("verde/seed/1", bytes.data, bytes.size, out);
    vd_buf_free(&bytes);
    return ok;
}

/* Returns the upper 64 bits of the product of two 64-bit numbers. */
static uint64_t high(uint64_t a, uint64_t b) {
    const uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    const uint64_t middle = ah * bl + (al * bl >> 32), other = al * bh + (uint32_t)middle;
    return ah * bh + (middle >> 32) + (other >> 32);
}

bool vd_draw_below(const vd_hash *seed, uint64_t index, uint64_t below, uint64_t *out) {
    uint8_t bytes[VD_HASH_SIZE + 8];
    vd_hash drawn;
    uint64_t word = 0;
    memcpy(bytes, seed->b, VD_HASH_SIZE);
    for (int i = 0; i < 8; i++)
        bytes[VD_HASH_SIZE + i] = (uint8_t)(index >> 8 * i);
    if (!vd_hash_tagged("verde/word/1", bytes, sizeof bytes, &drawn))
        return false;
    for (int i = 8; i-- > 0;)
        word = word << 8 | drawn.b[i];
    *out = high(word, below);
    return true;
}

static vd_status no_memory(vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "audit: out of memory");
}

/* ---- steps ---- */

static int64_t interval_end(const vd_program *program, int64_t from) {
    const int64_t to = from + program->checkpoint_interval;
    return to < program->steps ? to : program->steps;
}

static vd_drawn_interval interval_of(const vd_program *program, int64_t step) {
    if (step < 0)
        return (vd_drawn_interval){.from = -1, .to = 0};
    const int64_t from = step / program->checkpoint_interval * program->checkpoint_interval;
    return (vd_drawn_interval){.from = from, .to = interval_end(program, from)};
}

/* Draws one more step of this interval. False: all are drawn. The list is sorted by `from`. */
static bool add_to(vd_drawn_interval *list, uint32_t *count, vd_drawn_interval interval) {
    uint32_t at = *count;
    while (at > 0 && list[at - 1].from > interval.from)
        at--;
    if (at > 0 && list[at - 1].from == interval.from) {
        if (list[at - 1].steps == (uint64_t)(interval.to - interval.from))
            return false;
        list[at - 1].steps++;
        return true;
    }
    memmove(&list[at + 1], &list[at], (*count - at) * sizeof *list);
    list[at] = interval;
    list[at].steps = 1;
    ++*count;
    return true;
}

vd_status vd_draw_intervals(const vd_program *program, const vd_hash *seed, uint32_t steps,
                            vd_drawn_interval **list, uint32_t *count, vd_err *err) {
    const uint64_t all = (uint64_t)program->steps + 1;
    *count = 0;
    *list = calloc((size_t)steps + 1, sizeof **list);
    if (!*list)
        return no_memory(err);
    for (uint64_t i = 0, left = steps; left > 0; i++) {
        uint64_t drawn = i;
        if (steps < all && !vd_draw_below(seed, i, all, &drawn))
            return no_memory(err);
        left -= add_to(*list, count, interval_of(program, (int64_t)drawn - 1));
    }
    return VD_OK;
}

uint64_t vd_interval_count(const vd_program *program) {
    return vd_run_leaves(program);
}

/* Interval 0 is initialisation; each other one ends at the leaf of its number. */
vd_status vd_draw_again(const vd_program *program, const vd_hash *seed, uint32_t wanted,
                        vd_drawn_interval **list, uint32_t *count, vd_err *err) {
    const uint64_t all = vd_interval_count(program);
    *count = 0;
    *list = calloc((size_t)wanted + 1, sizeof **list);
    if (!*list)
        return no_memory(err);
    for (uint64_t i = 0; *count < wanted; i++) {
        uint64_t drawn = i;
        if (wanted < all && !vd_draw_below(seed, i, all, &drawn))
            return no_memory(err);
        const vd_drawn_interval interval =
            interval_of(program, drawn ? vd_run_leaf_step(program, drawn - 1) : -1);
        (void)add_to(*list, count, interval); /* adds no entry if the list has the interval */
    }
    return VD_OK;
}

static bool put_step(int64_t *step, uint32_t count, int64_t drawn) {
    uint32_t at = count;
    while (at > 0 && step[at - 1] > drawn)
        at--;
    if (at > 0 && step[at - 1] == drawn)
        return false;
    memmove(&step[at + 1], &step[at], (count - at) * sizeof *step);
    step[at] = drawn;
    return true;
}

vd_status vd_draw_steps(const vd_drawn_interval *interval, const vd_hash *seed, int64_t *step,
                        vd_err *err) {
    const uint64_t length = (uint64_t)(interval->to - interval->from);
    uint32_t count = 0;
    for (uint64_t i = 0; count < interval->steps; i++) {
        uint64_t drawn = i;
        if (interval->steps < length && !vd_draw_below(seed, i, length, &drawn))
            return no_memory(err);
        count += put_step(step, count, interval->from + (int64_t)drawn);
    }
    return VD_OK;
}

/* ---- crumbs ---- */

static bool is_long(const vd_program *program, const vd_graph *graph, uint32_t node) {
    vd_fold fold;
    return vd_fold_open(&fold, program, graph, node, 0);
}

static bool reads_data(const vd_program *program, const vd_graph *graph, uint32_t node) {
    const vd_node *n = vd_node_stored(graph, node);
    uint32_t index;
    for (int32_t i = 0; i < n->input_count; i++)
        if (vd_source_of(program, graph, vd_node_input(graph, node, i), &index) == VD_SOURCE_DATA)
            return true;
    return false;
}

bool vd_is_whole(const vd_program *program, const vd_graph *graph, uint32_t node) {
    const int64_t numel = ro_shape_numel(&vd_node_stored(graph, node)->shape);
    return numel == 1 || (numel <= VD_WHOLE_MAX && reads_data(program, graph, node) &&
                          !is_long(program, graph, node));
}

bool vd_reads_are_whole(const vd_program *program, const vd_graph *graph) {
    for (uint32_t node = 0; node < graph->node_count; node++)
        if (reads_data(program, graph, node) && !vd_is_whole(program, graph, node))
            return false;
    return true;
}

typedef struct {
    vd_crumb *list;
    size_t count, capacity;
} crumbs;

static bool add_crumb(crumbs *c, vd_crumb crumb) {
    if (c->count == c->capacity) {
        const size_t capacity = c->capacity ? 2 * c->capacity : 256;
        vd_crumb *grown = realloc(c->list, capacity * sizeof *grown);
        if (!grown)
            return false;
        c->list = grown;
        c->capacity = capacity;
    }
    c->list[c->count++] = crumb;
    return true;
}

static bool add_seams(crumbs *c, const vd_program *program, int64_t step) {
    bool ok = true;
    for (uint64_t leaf = 0; ok && leaf < program->leaf_count; leaf += VD_SEAM_LEAVES_MAX) {
        const uint64_t left = program->leaf_count - leaf;
        ok = add_crumb(
            c, (vd_crumb){.step = step,
                          .node = -1,
                          .part = -1,
                          .leaf = leaf,
                          .leaf_count = left < VD_SEAM_LEAVES_MAX ? left : VD_SEAM_LEAVES_MAX});
    }
    return ok;
}

/* Adds the node's whole output: one crumb for each leaf of its tensor. */
static bool add_whole(crumbs *c, const vd_graph *graph, int64_t step, uint32_t node) {
    const ro_shape *shape = &vd_node_stored(graph, node)->shape;
    const int64_t in_leaf = VD_LEAF_SIZE / (int64_t)ro_dtype_size(shape->dtype);
    bool ok = true;
    for (int64_t e = 0; ok && e < ro_shape_numel(shape); e += in_leaf) {
        const int64_t left = ro_shape_numel(shape) - e;
        ok = add_crumb(c, (vd_crumb){.step = step,
                                     .node = node,
                                     .element = e,
                                     .count = left < in_leaf ? left : in_leaf,
                                     .part = -1});
    }
    return ok;
}

static bool add_drawn(crumbs *c, const vd_graph *graph, int64_t step, const vd_hash *seed,
                      uint32_t count) {
    bool ok = true;
    for (uint64_t i = 0; ok && i < count; i++) {
        uint64_t node = 0, element = 0;
        ok = vd_draw_below(seed, 2 * i, graph->node_count, &node);
        const ro_shape *shape = &vd_node_stored(graph, (uint32_t)node)->shape;
        ok = ok && vd_draw_below(seed, 2 * i + 1, (uint64_t)ro_shape_numel(shape), &element) &&
             add_crumb(c, (vd_crumb){.step = step,
                                     .node = (int64_t)node,
                                     .element = (int64_t)element,
                                     .count = 1,
                                     .part = -1,
                                     .drawn = true});
    }
    return ok;
}

/* Orders by node: a provider that keeps one node's tensors then computes each node once. */
static int by_node(const void *a, const void *b) {
    const vd_crumb *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->node < 0)
        return x->leaf < y->leaf ? -1 : x->leaf > y->leaf;
    return x->element < y->element ? -1 : x->element > y->element;
}

vd_status vd_draw_crumbs(const vd_program *program, int64_t step, const vd_hash *seed,
                         uint32_t count, vd_crumb **list, size_t *listed, vd_err *err) {
    const vd_graph *graph = vd_step_graph(program, step);
    crumbs c = {0};
    bool ok = add_seams(&c, program, step);
    for (uint32_t node = 0; ok && node < graph->node_count; node++)
        ok = !vd_is_whole(program, graph, node) || add_whole(&c, graph, step, node);
    ok = ok && add_drawn(&c, graph, step, seed, count);
    *list = c.list;
    *listed = c.count;
    if (!ok)
        return no_memory(err);
    qsort(c.list, c.count, sizeof *c.list, by_node);
    return VD_OK;
}
