/* This file frees programs, and says what a value's number stands for. */
#include "verde/graph/graph.h"

#include <stdlib.h>
#include <string.h>

static void graph_free(vd_graph *graph) {
    free(graph->stored);
    free(graph->stored_edge);
    free(graph->stored_from);
    free(graph->repeat);
    free(graph->carried);
    free(graph->shifted);
    free(graph->sum);
    free(graph->names);
    free(graph->output);
    *graph = (vd_graph){.loss = UINT32_MAX};
}

void vd_program_free(vd_program *program) {
    graph_free(&program->init);
    graph_free(&program->step);
    free(program->leaf);
    free(program->data);
    *program = (vd_program){0};
}

const char *vd_stored_name(const vd_graph *graph, const vd_node *node) {
    return graph->names ? graph->names + node->name : "";
}

bool vd_store_name(vd_graph *graph, vd_node *node, const char *name, size_t length) {
    const size_t needed = graph->names_size + length + 1;
    if (needed > UINT32_MAX)
        return false;
    if (needed > graph->names_capacity) {
        const size_t capacity = 2 * needed;
        char *grown = realloc(graph->names, capacity);
        if (!grown)
            return false;
        graph->names = grown;
        graph->names_capacity = capacity;
    }
    node->name = (uint32_t)graph->names_size;
    memcpy(graph->names + graph->names_size, name, length);
    graph->names[needed - 1] = 0;
    graph->names_size = needed;
    return true;
}

vd_status vd_program_take_data(vd_program *program, uint32_t count, vd_err *err) {
    program->data = calloc((size_t)count + 1, sizeof *program->data);
    program->data_count = program->data ? count : 0;
    return program->data ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

const char *vd_graph_name(const vd_program *program, const vd_graph *graph) {
    return graph == &program->init ? "init" : "step";
}

uint32_t vd_state_sources(const vd_program *program, const vd_graph *graph) {
    return graph == &program->init ? 0 : program->leaf_count;
}

uint32_t vd_source_count(const vd_program *program, const vd_graph *graph) {
    return vd_state_sources(program, graph) + program->data_count + 1;
}

vd_source_kind vd_source_of(const vd_program *program, const vd_graph *graph, uint32_t value,
                            uint32_t *index) {
    uint32_t states = vd_state_sources(program, graph);
    if (value < states) {
        *index = value;
        return VD_SOURCE_STATE;
    }
    *index = value - states;
    if (*index < program->data_count)
        return VD_SOURCE_DATA;
    *index = 0;
    return VD_SOURCE_STEP;
}

const ro_shape *vd_value_shape(const vd_program *program, const vd_graph *graph, uint32_t value) {
    static const ro_shape step_shape = {.dtype = RO_I32, .ndim = 1, .dim = {1}};
    uint32_t sources = vd_source_count(program, graph), index;
    if (value >= sources)
        return &vd_node_stored(graph, value - sources)->shape;
    switch (vd_source_of(program, graph, value, &index)) {
    case VD_SOURCE_STATE: return &program->leaf[index].shape;
    case VD_SOURCE_DATA: return &program->data[index].tensor.shape;
    case VD_SOURCE_STEP: break;
    }
    return &step_shape;
}

void vd_node_call(const vd_program *program, const vd_graph *graph, uint32_t node, ro_call *call,
                  ro_shape *shapes) {
    const vd_node *n = vd_node_stored(graph, node);
    *call = (ro_call){.op = n->op, .input_count = n->input_count, .input = shapes};
    memcpy(call->attr, n->attr, sizeof call->attr);
    if (n->slope != 0) /* one attribute grows with a repeat's iterations */
        call->attr[n->moving] = vd_node_attr(graph, node, n->moving);
    for (int32_t i = 0; i < n->input_count; i++)
        shapes[i] = *vd_value_shape(program, graph, vd_node_input(graph, node, i));
    call->output = n->shape;
}

uint64_t vd_run_leaves(const vd_program *program) {
    uint64_t n = (uint64_t)program->steps, c = (uint64_t)program->checkpoint_interval;
    return (n + c - 1) / c + 1;
}

int64_t vd_run_leaf_step(const vd_program *program, uint64_t leaf) {
    uint64_t step = leaf * (uint64_t)program->checkpoint_interval;
    return step < (uint64_t)program->steps ? (int64_t)step : program->steps;
}

bool vd_is_committed(const vd_program *program, int64_t step) {
    return step % program->checkpoint_interval == 0 || step == program->steps;
}
