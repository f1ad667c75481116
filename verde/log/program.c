/* This file finds a program's free nodes, their rounding, and their sections of a log. */
#include "verde/log/program.h"

#include <math.h>

#include "repops/free.h"

/* ---- how nodes are rounded ---- */

static bool is_state(const vd_program *program, const vd_graph *graph, uint32_t value) {
    for (uint32_t i = 0; i < program->leaf_count; i++)
        if (graph->output[i] == value)
            return true;
    return false;
}

bool vd_node_is_state(const vd_program *program, const vd_graph *graph, uint32_t node) {
    return is_state(program, graph, vd_source_count(program, graph) + node);
}

int32_t vd_node_bits(const vd_program *program, const vd_graph *graph, uint32_t node) {
    return vd_node_is_state(program, graph, node) ? RO_ROUND_BITS_MAX : program->rounding.bits;
}

double vd_threshold_at(double threshold, int32_t bits, int32_t at) {
    const double less = ldexp(1, 8 - bits) - ldexp(1, 8 - at);
    return threshold > less ? threshold - less : 0;
}

/* ---- sections of a log ---- */

uint32_t vd_free_nodes(const vd_graph *graph, vd_log_node *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (!ro_op_is_free(vd_node_stored(graph, i)->op))
            continue;
        if (out)
            out[count] =
                (vd_log_node){i, (uint64_t)ro_shape_numel(&vd_node_stored(graph, i)->shape)};
        count++;
    }
    return count;
}

uint64_t vd_graph_sections(const vd_graph *graph, uint32_t node) {
    uint64_t sections = 0;
    for (uint32_t i = 0; i < node; i++)
        if (ro_op_is_free(vd_node_stored(graph, i)->op))
            sections += vd_log_sections((uint64_t)ro_shape_numel(&vd_node_stored(graph, i)->shape));
    return sections;
}

vd_log_range vd_logs_at(const vd_program *program, int64_t step) {
    if (step < 0)
        return (vd_log_range){0, 1, -1};
    const uint64_t leaf = (uint64_t)(step / program->checkpoint_interval) + 1;
    const int64_t first = vd_run_leaf_step(program, leaf - 1);
    return (vd_log_range){leaf, (uint64_t)(vd_run_leaf_step(program, leaf) - first), first};
}
