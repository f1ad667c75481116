/* This file gives an existing program another first state, and another number to its first step. */
#include <stdlib.h>
#include <string.h>

#include "repops/op_movement.h"
#include "verde/graph/begin.h"
#include "verde/graph/build.h"

/* How the values of a graph are numbered after sources or nodes are inserted. */
typedef struct {
    const uint32_t *source; /* new number of each source that there was */
    uint32_t before, after; /* number of sources, before and after the change */
    uint32_t inserted;      /* nodes inserted before all others */
} numbering;

static uint32_t renumbered(const numbering *n, uint32_t value) {
    if (value == UINT32_MAX)
        return value;
    return value < n->before ? n->source[value] : value - n->before + n->after + n->inserted;
}

/* Renumbers values in a graph. Its first `first` nodes and `edges` edges are new, and
 * have their final numbers. */
static void renumber(const numbering *n, const vd_program *p, vd_graph *g, uint32_t first,
                     uint32_t edges) {
    for (uint32_t i = edges; i < g->edge_count; i++) {
        const int from = g->stored_from ? g->stored_from[i] : VD_FROM_VALUE;
        if (from == VD_FROM_VALUE)
            g->stored_edge[i] = renumbered(n, g->stored_edge[i]);
        else if (from == VD_FROM_NODE)
            g->stored_edge[i] += first;
    }
    for (uint32_t i = 0; i < g->carried_count; i++) {
        g->carried[i].before = renumbered(n, g->carried[i].before);
        g->carried[i].node += first;
    }
    for (uint32_t i = 0; i < g->shifted_count; i++)
        g->shifted[i].first = renumbered(n, g->shifted[i].first);
    for (uint32_t i = 0; i < g->sum_count; i++)
        g->sum[i].node += first;
    for (uint32_t i = 0; i < g->repeat_count; i++) {
        g->repeat[i].first += first;
        g->repeat[i].start += n->inserted;
    }
    for (uint32_t i = 0; i < p->leaf_count; i++)
        g->output[i] = renumbered(n, g->output[i]);
    g->loss = renumbered(n, g->loss);
    if (g->repeat_count > 0)
        g->sources = vd_source_count(p, g);
}

/* ---- data ---- */

/* Renumbers both graphs after a change of data: what was data[i], of `before` tensors, is now
 * data[number[i]] of p->data_count. */
static vd_status renumber_data(vd_program *p, uint32_t before, const uint32_t *number,
                               vd_err *err) {
    uint32_t *source = calloc((size_t)p->leaf_count + before + 1, sizeof *source);
    if (!source)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_graph *const graph[] = {&p->init, &p->step};
    for (int k = 0; k < 2; k++) {
        const uint32_t states = vd_state_sources(p, graph[k]);
        const numbering n = {source, states + before + 1, states + p->data_count + 1, 0};
        for (uint32_t i = 0; i < states; i++)
            source[i] = i;
        for (uint32_t i = 0; i < before; i++)
            source[states + i] = states + number[i];
        source[states + before] = states + p->data_count;
        renumber(&n, p, graph[k], 0, 0);
    }
    free(source);
    return VD_OK;
}

/* Marks all data tensors between those that shifted inputs read, too: if one were dropped, the
 * numbers of the others would no longer be one slope apart. */
static void mark_shifted(const vd_program *p, const vd_graph *g, bool *read) {
    const uint32_t first = vd_state_sources(p, g), end = first + p->data_count;
    uint32_t least = end, most = first;
    for (uint32_t i = 0; i < g->shifted_count; i++) {
        const vd_shifted *s = &g->shifted[i];
        const uint32_t ends[] = {s->first, vd_shifted_value(s, s->count - 1)};
        for (int k = 0; k < 2 && s->first >= first && s->first < end; k++) {
            least = ends[k] < least ? ends[k] : least;
            most = ends[k] > most ? ends[k] : most;
        }
    }
    for (; least < end && least <= most; least++)
        read[least - first] = true;
}

static void mark_read(const vd_program *p, const vd_graph *g, bool *read) {
    const uint32_t states = vd_state_sources(p, g);
    mark_shifted(p, g, read);
    for (uint32_t i = 0; i < g->edge_count; i++) {
        const uint32_t value = g->stored_edge[i];
        const bool is_value = !g->stored_from || g->stored_from[i] == VD_FROM_VALUE;
        if (is_value && value >= states && value - states < p->data_count)
            read[value - states] = true;
    }
    for (uint32_t i = 0; i < g->carried_count; i++)
        if (g->carried[i].before >= states && g->carried[i].before - states < p->data_count)
            read[g->carried[i].before - states] = true;
}

/* Adds data tensors after the existing ones, which keep their numbers. */
static vd_status add_data(vd_program *p, const vd_beginning *how, vd_err *err) {
    const uint32_t before = p->data_count, after = before + how->count;
    if (after > VD_DATA_MAX)
        return vd_fail_limit(err, NULL, after, "data tensors", VD_DATA_MAX);
    vd_data *grown = realloc(p->data, ((size_t)after + 1) * sizeof *grown);
    uint32_t *number = calloc((size_t)before + 1, sizeof *number);
    if (grown)
        p->data = grown;
    if (!grown || !number) {
        free(number);
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    memcpy(p->data + before, how->tensor, how->count * sizeof *grown);
    p->data_count = after;
    for (uint32_t i = 0; i < before; i++)
        number[i] = i;
    const vd_status status = renumber_data(p, before, number, err);
    free(number);
    return status;
}

/* Drops the data tensors that the program read before its change and no longer reads. */
static vd_status drop_data(vd_program *p, const bool *was_read, uint32_t *from, vd_err *err) {
    const uint32_t before = p->data_count;
    bool *read = calloc((size_t)before + 1, sizeof *read);
    uint32_t *number = calloc((size_t)before + 1, sizeof *number);
    vd_status status = read && number ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK) {
        mark_read(p, &p->init, read);
        mark_read(p, &p->step, read);
        p->data_count = 0;
        for (uint32_t i = 0; i < before; i++) {
            number[i] = p->data_count;
            if (was_read[i] && !read[i])
                continue;
            from[p->data_count] = i;
            p->data[p->data_count++] = p->data[i];
        }
        status = renumber_data(p, before, number, err);
    }
    free(read);
    free(number);
    return status;
}

/* ---- the first state ---- */

static vd_status begin_state(vd_program *p, const vd_beginning *how, vd_err *err) {
    vd_builder b = {.program = p, .graph = &p->init};
    const uint32_t first = p->data_count - how->count;
    for (uint32_t i = 0; i < how->count; i++) {
        const vd_leaf *leaf = &p->leaf[how->leaf[i]];
        const vd_op same = {.op = RO_OP_RESHAPE, .shape = &leaf->shape};
        const vd_value x = vd_data_value(&b, first + i);
        const vd_value y = how->tensor[i].tensor.shape.dtype == leaf->shape.dtype
                               ? VD_EMIT(&b, leaf->name, same, x)
                               : vd_cast(&b, leaf->name, x, leaf->shape.dtype);
        p->init.output[how->leaf[i]] = y;
    }
    if (p->init.repeat_count == 0)
        vd_prune(&b);
    const vd_status status = b.status == VD_OK ? VD_OK : vd_fail(err, b.status, "%s", b.err.text);
    vd_builder_free(&b);
    return status;
}

/* ---- the first step ---- */

/* Appends the listed nodes of `from` with their inputs and names. */
static bool append(vd_graph *to, const vd_graph *from) {
    const size_t nodes = (size_t)to->stored_count + from->stored_count;
    const size_t edges = (size_t)to->edge_count + from->edge_count;
    const size_t names = to->names_size + from->names_size;
    vd_node *stored = realloc(to->stored, nodes * sizeof *stored);
    to->stored = stored ? stored : to->stored;
    uint32_t *edge = realloc(to->stored_edge, (edges + 1) * sizeof *edge);
    to->stored_edge = edge ? edge : to->stored_edge;
    uint8_t *kind = realloc(to->stored_from, edges + 1);
    to->stored_from = kind ? kind : to->stored_from;
    char *text = realloc(to->names, names + 1);
    to->names = text ? text : to->names;
    if (!stored || !edge || !kind || !text || names > UINT32_MAX)
        return false;
    for (uint32_t i = 0; i < from->stored_count; i++) {
        stored[to->stored_count + i] = from->stored[i];
        stored[to->stored_count + i].first_input += to->edge_count;
        stored[to->stored_count + i].name += (uint32_t)to->names_size;
    }
    for (uint32_t i = 0; i < from->sum_count; i++)
        from->sum[i].add.name += (uint32_t)to->names_size;
    memcpy(edge + to->edge_count, from->stored_edge, from->edge_count * sizeof *edge);
    memset(kind + to->edge_count, VD_FROM_VALUE, from->edge_count);
    if (from->stored_from)
        memcpy(kind + to->edge_count, from->stored_from, from->edge_count);
    memcpy(text + to->names_size, from->names, from->names_size);
    to->stored_count = to->node_capacity = (uint32_t)nodes;
    to->edge_count = to->edge_capacity = (uint32_t)edges;
    to->names_size = to->names_capacity = names;
    return true;
}

/* Frees the arrays of `g` and puts those of `to` in their place. */
static void take_nodes(vd_graph *g, vd_graph *to) {
    free(g->stored);
    free(g->stored_edge);
    free(g->stored_from);
    free(g->names);
    g->stored = to->stored;
    g->stored_edge = to->stored_edge;
    g->stored_from = to->stored_from;
    g->names = to->names;
    g->names_size = to->names_size;
    g->names_capacity = to->names_capacity;
    g->node_count += to->node_count;
    g->stored_count = to->stored_count;
    g->node_capacity = to->node_capacity;
    g->edge_count = to->edge_count;
    g->edge_capacity = to->edge_capacity;
}

static vd_status insert_number(vd_program *p, int64_t first, vd_err *err) {
    vd_graph ahead = {.loss = UINT32_MAX}, *g = &p->step;
    vd_builder b = vd_builder_of(p, &ahead);
    const uint32_t sources = vd_source_count(p, g);
    uint32_t *source = calloc((size_t)sources, sizeof *source);
    vd_number_steps(&b, first);
    const uint32_t nodes = ahead.stored_count, edges = ahead.edge_count;
    const numbering n = {source, sources, sources, nodes};
    vd_status status = b.status == VD_OK ? VD_OK : vd_fail(err, b.status, "%s", b.err.text);
    if (status == VD_OK && (!source || !append(&ahead, g)))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK) {
        for (uint32_t i = 0; i < sources; i++)
            source[i] = i;
        source[sources - 1] = b.numbered_step;
        take_nodes(g, &ahead);
        renumber(&n, p, g, nodes, edges);
    } else {
        free(ahead.stored);
        free(ahead.stored_edge);
        free(ahead.stored_from);
        free(ahead.names);
    }
    free(source);
    vd_builder_free(&b);
    return status;
}

static vd_status begin_steps(vd_program *p, int64_t first, vd_err *err) {
    if (first == 0)
        return VD_OK;
    p->steps -= first;
    if (p->checkpoint_interval > p->steps)
        p->checkpoint_interval = p->steps;
    return insert_number(p, first, err);
}

vd_status vd_program_begin(vd_program *p, const vd_beginning *how, uint32_t *from, vd_err *err) {
    bool *was_read = calloc((size_t)p->data_count + how->count + 1, sizeof *was_read);
    if (!was_read)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    mark_read(p, &p->init, was_read);
    mark_read(p, &p->step, was_read);
    vd_status status = add_data(p, how, err);
    if (status == VD_OK)
        status = begin_state(p, how, err);
    if (status == VD_OK)
        status = begin_steps(p, how->first_step, err);
    if (status == VD_OK)
        status = drop_data(p, was_read, from, err);
    free(was_read);
    return status == VD_OK ? vd_program_validate(p, err) : status;
}
