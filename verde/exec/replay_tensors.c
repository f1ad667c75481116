/* This file gets tensors of a step: the step runs again, and outputs and inputs of one node, or of
 * several consecutive ones, are cached. */
#include <stdlib.h>

#include "verde/exec/memory.h"
#include "verde/exec/replay_internal.h"

void vd_replay_clear(vd_replay *r) {
    for (uint32_t i = 0; i < r->cached; i++)
        free(r->cache[i].data);
    r->cached = 0;
    r->captured = -1;
}

typedef struct {
    vd_replay *replay;
    const vd_program *program;
    const vd_graph *graph;
    uint32_t sources, node;
    uint64_t left; /* bytes left for nodes after the first; 0: caches only one node */
    bool failed;
    vd_err *err;
} capture;

static bool holds(const vd_replay *r, uint32_t value) {
    for (uint32_t i = 0; i < r->cached; i++)
        if (r->cache[i].value == value)
            return true;
    return false;
}

static void keep(capture *c, uint32_t value, const void *data) {
    vd_replay *r = c->replay;
    if (value < c->sources || holds(r, value))
        return;
    size_t size = vd_shape_bytes(vd_value_shape(c->program, c->graph, value));
    void *copy = r->cached < VD_REPLAY_CACHE ? malloc(size) : NULL;
    if (!copy) {
        c->failed = true;
        return;
    }
    if (vd_memory_read(r->exec->ro, copy, data, size, c->err) != VD_OK) {
        free(copy);
        c->failed = true;
        return;
    }
    r->cache[r->cached++] = (vd_cached){value, copy};
}

/* Bytes that caching a node would add. */
static uint64_t bytes_of(const capture *c, uint32_t node) {
    const vd_node *n = vd_node_stored(c->graph, node);
    uint64_t bytes = vd_shape_bytes(&n->shape);
    for (int32_t i = 0; i < n->input_count; i++) {
        const uint32_t value = vd_node_input(c->graph, node, i);
        if (value >= c->sources && !holds(c->replay, value))
            bytes += vd_shape_bytes(vd_value_shape(c->program, c->graph, value));
    }
    return bytes;
}

static bool fits(capture *c, uint32_t node) {
    const uint64_t bytes = bytes_of(c, node);
    const uint32_t inputs = (uint32_t)vd_node_stored(c->graph, node)->input_count;
    if (bytes > c->left || c->replay->cached + inputs + 1 > VD_REPLAY_CACHE - VD_REPLAY_ROOM)
        return false;
    c->left -= bytes;
    return true;
}

/* Caches the node in question, and later nodes while there is room. */
static bool see(void *user, uint32_t node, const void *const *input, const void *output) {
    capture *c = user;
    if (node < c->node)
        return true;
    if (node > c->node && !fits(c, node))
        return false;
    const vd_node *n = vd_node_stored(c->graph, node);
    keep(c, c->sources + node, output);
    for (int32_t i = 0; i < n->input_count && i < VD_REPLAY_ROOM - 1; i++)
        keep(c, vd_node_input(c->graph, node, i), input[i]);
    if (!c->failed)
        c->replay->captured_to = (int64_t)node + 1;
    c->failed &= node == c->node; /* only the node in question must succeed */
    return !c->failed && c->left > 0 && c->replay->captured_to == (int64_t)node + 1;
}

static const void *replay_find(const vd_replay *r, int64_t step, uint32_t value) {
    for (uint32_t i = 0; i < r->cached && r->cache_step == step; i++)
        if (r->cache[i].value == value)
            return r->cache[i].data;
    return NULL;
}

static vd_status capture_node(vd_replay *r, int64_t step, uint32_t node, vd_err *err) {
    const vd_program *p = r->exec->program;
    const vd_graph *graph = step < 0 ? &p->init : &p->step;
    /* An audit asks about many nodes of a step in order, a dispute about one: only a second
     * question about a step caches several. */
    const bool again = r->cache_step == step && r->captured >= 0;
    vd_replay_clear(r);
    r->cache_step = step;
    capture c = {.replay = r,
                 .program = p,
                 .graph = graph,
                 .sources = vd_source_count(p, graph),
                 .node = node,
                 .left = again ? VD_REPLAY_WINDOW_BYTES : 0,
                 .err = err};
    atomic_fetch_add(&r->executed, 1);
    vd_status status = vd_emit_begin(&r->emits, step, err);
    if (status == VD_OK)
        status = vd_replay_observe(r, step, node, &(vd_observer){see, &c}, err);
    if (status == VD_OK && (c.failed || !r->cached))
        status =
            vd_fail(err, VD_ERR_LOCAL, "out of memory for a tensor of step %lld", (long long)step);
    if (status == VD_OK)
        r->captured = node;
    return status;
}

/* Returns whether the node is cached, with room for leaves of the state that it reads. */
static bool is_captured(const vd_replay *r, int64_t step, int64_t node) {
    return r->cache_step == step && r->captured >= 0 && r->captured <= node &&
           node < r->captured_to && r->cached <= VD_REPLAY_CACHE - VD_FOLD_INPUTS;
}

static vd_status node_output(vd_replay *r, int64_t step, uint32_t value, const void **data,
                             vd_err *err) {
    const vd_program *p = r->exec->program;
    const vd_graph *graph = step < 0 ? &p->init : &p->step;
    vd_status status = VD_OK;
    *data = replay_find(r, step, value);
    if (!*data)
        status = capture_node(r, step, value - vd_source_count(p, graph), err);
    if (status == VD_OK && !*data)
        *data = replay_find(r, step, value);
    return status;
}

/* Gets leaf `index` of the state reached, in host memory. */
static vd_status state_tensor(vd_replay *r, int64_t step, uint32_t value, uint32_t index,
                              const void **data, vd_err *err) {
    void *copy;
    *data = replay_find(r, step, value);
    if (*data)
        return VD_OK;
    *data = vd_replay_leaf(r, index, &copy, err);
    if (copy && (r->cache_step != step || r->cached == VD_REPLAY_CACHE))
        vd_replay_clear(r);
    if (copy) {
        r->cache_step = step;
        r->cache[r->cached++] = (vd_cached){value, copy};
    }
    return *data ? VD_OK : VD_ERR_LOCAL;
}

vd_status vd_replay_tensor(void *user, int64_t step, uint32_t value, const void **data,
                           vd_err *err) {
    vd_replay *r = user;
    const vd_program *p = r->exec->program;
    const vd_graph *graph = step < 0 ? &p->init : &p->step;
    uint32_t index;
    vd_status status = step < 0 ? VD_OK : vd_replay_reach(r, step, err);
    if (status != VD_OK || value >= vd_source_count(p, graph))
        return status != VD_OK ? status : node_output(r, step, value, data, err);
    switch (vd_source_of(p, graph, value, &index)) {
    case VD_SOURCE_STATE: return state_tensor(r, step, value, index, data, err);
    case VD_SOURCE_DATA: *data = r->exec->data[index]; break;
    case VD_SOURCE_STEP:
        r->step_word = step < 0 ? 0 : (int32_t)step;
        *data = &r->step_word;
        break;
    }
    return VD_OK;
}

vd_status vd_replay_tree(void *user, int64_t step, uint32_t value, const void *data,
                         const vd_tree **out, vd_err *err) {
    vd_replay *r = user;
    const vd_program *p = r->exec->program;
    vd_tree fresh = {0};
    *out = vd_kept_trees_find(&r->trees, step, value);
    if (*out)
        return VD_OK;
    vd_status status = vd_tensor_tree(
        r->exec->ro, vd_value_shape(p, step < 0 ? &p->init : &p->step, value), data, &fresh, err);
    if (status == VD_OK)
        *out = vd_kept_trees_put(&r->trees, step, value, &fresh);
    return status;
}

/* Runs a fold. All its inputs must be in the cache at once, with room for those from a device's
 * state, so that none replaces another. */
vd_status vd_replay_fold(void *user, int64_t step, uint32_t node, int64_t element, vd_records *out,
                         vd_err *err) {
    vd_replay *r = user;
    const vd_program *p = r->exec->program;
    const vd_graph *graph = step < 0 ? &p->init : &p->step;
    const vd_node *n = vd_node_stored(graph, node);
    const void *input[VD_FOLD_INPUTS];
    vd_fold f;
    if (!vd_fold_open(&f, p, graph, node, element))
        return vd_fail(err, VD_ERR_LOCAL, "%s is no long fold", vd_node_name(graph, node).text);
    vd_status status = step < 0 ? VD_OK : vd_replay_reach(r, step, err);
    if (status == VD_OK && !is_captured(r, step, node))
        status = capture_node(r, step, node, err);
    for (int32_t i = 0; status == VD_OK && i < n->input_count; i++)
        status = vd_replay_tensor(user, step, vd_node_input(graph, node, i), &input[i], err);
    return status == VD_OK ? vd_fold_run(&f, input, out, err) : status;
}
