#include "verde/exec/estimate.h"

#include <stdlib.h>

#include "verde/commit/record.h"
#include "verde/exec/journal.h"

/* Programs of strangers may name tensors of 2^40 elements, 2^20 of them. */
static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t bytes_of(const ro_shape *shape) {
    uint64_t bytes = ro_dtype_size(shape->dtype);
    for (int i = 0; i < shape->ndim; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)shape->dim[i], &bytes))
            return UINT64_MAX;
    return bytes;
}

static uint64_t state_bytes(const vd_program *program) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < program->leaf_count; i++)
        bytes = add(bytes, bytes_of(&program->leaf[i].shape));
    return bytes;
}

/* The node that reads each value last; node_count for what the next state takes. */
static void find_last_uses(const vd_program *program, const vd_graph *graph, uint32_t *last) {
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (int32_t i = 0; i < vd_node_stored(graph, n)->input_count; i++)
            last[vd_node_input(graph, n, i)] = n;
    for (uint32_t i = 0; i < program->leaf_count; i++)
        last[graph->output[i]] = graph->node_count;
}

static uint64_t largest_sum(const vd_program *program, const vd_graph *graph, uint32_t *last) {
    const uint32_t states = vd_state_sources(program, graph);
    const uint32_t sources = vd_source_count(program, graph);
    uint64_t live = states ? state_bytes(program) : 0, most = live;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const vd_node *node = vd_node_stored(graph, n);
        const uint64_t size = bytes_of(&node->shape);
        live = add(live, size);
        most = live > most ? live : most;
        if (live == UINT64_MAX)
            return live;
        for (int32_t i = 0; i < node->input_count; i++) {
            const uint32_t value = vd_node_input(graph, n, i);
            if (last[value] != n || (value >= states && value < sources))
                continue;
            live -= bytes_of(vd_value_shape(program, graph, value));
            last[value] = UINT32_MAX; /* freed, though the node may read it twice */
        }
        if (last[sources + n] == UINT32_MAX)
            live -= size; /* nobody reads it */
    }
    return most;
}

/* The commitment of each value, where records are made and where they are checked; the records; and
 * their tree. */
static uint64_t trace_bytes(const vd_program *program, const vd_graph *graph) {
    const uint64_t nodes = graph->node_count;
    const uint64_t values = nodes + vd_source_count(program, graph);
    return vd_records_bytes(nodes, vd_inputs_meant(graph)) + 2 * VD_HASH_SIZE * (values + nodes);
}

static vd_status estimate_graph(const vd_program *program, const vd_graph *graph, uint64_t *out,
                                vd_err *err) {
    const size_t count = (size_t)vd_source_count(program, graph) + graph->node_count;
    uint32_t *last = malloc(count * sizeof *last);
    if (!last)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (size_t i = 0; i < count; i++)
        last[i] = UINT32_MAX;
    find_last_uses(program, graph, last);
    *out = add(largest_sum(program, graph, last), trace_bytes(program, graph));
    free(last);
    return VD_OK;
}

vd_status vd_estimate_memory(const vd_program *program, uint64_t *out, vd_err *err) {
    uint64_t init = 0, step = 0;
    vd_status status = estimate_graph(program, &program->init, &init, err);
    if (status == VD_OK)
        status = estimate_graph(program, &program->step, &step, err);
    *out = init > step ? init : step;
    return status;
}

uint64_t vd_estimate_disk(const vd_program *program, int64_t keep) {
    const uint64_t leaves = vd_run_leaves(program), all = add(leaves, 1);
    const uint64_t kept = keep > 0 && (uint64_t)keep < leaves ? (uint64_t)keep + 1 : all;
    uint64_t bytes;
    return __builtin_mul_overflow(kept, state_bytes(program), &bytes) ? UINT64_MAX : bytes;
}

static uint64_t multiply(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Rows that are put into the leaf as it was are all that is written of it. */
static uint64_t written_bytes(const vd_program *program, uint32_t leaf) {
    enum { PLACE = 4 + 8 + 8 };
    const vd_graph *g = &program->step;
    const uint32_t sources = vd_source_count(program, g), value = g->output[leaf];
    const uint32_t node = value - sources;
    const vd_node *n = value >= sources ? vd_node_stored(g, node) : NULL;
    uint64_t places = 1;
    if (!n || n->op != RO_OP_PUT_ROWS || vd_node_input(g, node, 0) != leaf)
        return add(bytes_of(&program->leaf[leaf].shape), PLACE);
    for (int64_t i = 0; i < vd_node_attr(g, node, RO_PUT_ROWS_AXIS) && i < n->shape.ndim; i++)
        places = multiply(places, (uint64_t)n->shape.dim[i]);
    return add(bytes_of(vd_value_shape(program, g, vd_node_input(g, node, 1))),
               multiply(places, PLACE));
}

uint64_t vd_estimate_journal(const vd_program *program) {
    enum { HEAD = 64, RECORD = 8 + 8 + 4 + 2 * VD_HASH_SIZE };
    uint64_t step = RECORD, all;
    for (uint32_t i = 0; i < program->leaf_count; i++)
        step = add(step, written_bytes(program, i));
    all = add(multiply(step, (uint64_t)program->steps), HEAD + RECORD);
    return add(all, add(state_bytes(program), multiply(program->leaf_count, 4 + 8 + 8)));
}
