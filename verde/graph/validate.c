/* Checks what a program must satisfy, whoever wrote its bytes. PROTOCOL.md section 1.3. */
#include "verde/graph/graph.h"

#include <stdlib.h>

static const char *graph_name(const vd_program *program, const vd_graph *graph) {
    return graph == &program->init ? "init" : "step";
}

/* Printable ASCII with an end: names are shown to people, whoever chose them. */
static bool valid_name(const char name[VD_NAME_SIZE]) {
    for (int i = 0; i < VD_NAME_SIZE; i++) {
        if (name[i] == 0)
            return true;
        if (name[i] < ' ' || name[i] > '~')
            return false;
    }
    return false;
}

/* Operators take tensors without elements; programs have none: there would be nothing to commit to.
 */
static bool has_elements(const ro_shape *shape) {
    return ro_shape_numel(shape) > 0;
}

static vd_status check_node(const vd_program *program, const vd_graph *graph, uint32_t index,
                            ro_shape *shapes, vd_err *err) {
    const vd_node *n = &graph->stored[index];
    const char *name = graph_name(program, graph);
    char why[256];
    uint32_t values = vd_source_count(program, graph) + index;
    if (!ro_op_describe(n->op) || n->input_count < 0 || n->input_count > RO_MAX_INPUTS ||
        (uint64_t)n->first_input + (uint32_t)n->input_count > graph->edge_count)
        return vd_fail(err, VD_ERR_PEER, "%s graph, node %u: no such operator or inputs", name,
                       index);
    if (!valid_name(n->name))
        return vd_fail(err, VD_ERR_PEER, "%s graph, node %u: name is not printable ASCII", name,
                       index);
    for (int32_t i = 0; i < n->input_count; i++)
        if (graph->stored_edge[n->first_input + (uint32_t)i] >= values)
            return vd_fail(err, VD_ERR_PEER,
                           "%s graph, node %u (%s): input %d is not an earlier value", name, index,
                           n->name, i);
    ro_call call;
    vd_node_call(program, graph, index, &call, shapes);
    if (call.output.ndim == 0 || ro_infer(&call, why, sizeof why) != RO_OK)
        return vd_fail(err, VD_ERR_PEER, "%s graph, node %u (%s): %.256s", name, index, n->name,
                       call.output.ndim == 0 ? "no output shape" : why);
    if (!has_elements(&call.output))
        return vd_fail(err, VD_ERR_PEER, "%s graph, node %u (%s): its output has no elements", name,
                       index, n->name);
    return VD_OK;
}

static vd_status check_outputs(const vd_program *program, const vd_graph *graph, vd_err *err) {
    uint32_t sources = vd_source_count(program, graph), values = sources + graph->node_count;
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        uint32_t value = graph->output[i];
        if (value < sources || value >= values ||
            !ro_shape_equal(vd_value_shape(program, graph, value), &program->leaf[i].shape))
            return vd_fail(err, VD_ERR_PEER,
                           "%s graph: state leaf %u (%s) has no node's output of its shape",
                           graph_name(program, graph), i, program->leaf[i].name);
    }
    return VD_OK;
}

/* One number: whoever runs the graph reads four bytes of it. */
static vd_status check_loss(const vd_program *program, const vd_graph *graph, vd_err *err) {
    static const ro_shape scalar = {.dtype = RO_F32, .ndim = 1, .dim = {1}};
    uint32_t values = vd_source_count(program, graph) + graph->node_count;
    if (graph->loss == UINT32_MAX ||
        (graph->loss < values &&
         ro_shape_equal(vd_value_shape(program, graph, graph->loss), &scalar)))
        return VD_OK;
    return vd_fail(err, VD_ERR_PEER, "%s graph: loss is not a value of type f32[1]",
                   graph_name(program, graph));
}

static vd_status check_graph(const vd_program *program, const vd_graph *graph, ro_shape *shapes,
                             vd_err *err) {
    if (graph->node_count == 0 || graph->node_count > VD_NODES_MAX)
        return vd_fail(err, VD_ERR_PEER, "%s graph: %u nodes, expected 1..%d",
                       graph_name(program, graph), graph->node_count, VD_NODES_MAX);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        vd_status status = check_node(program, graph, i, shapes, err);
        if (status != VD_OK)
            return status;
    }
    vd_status status = check_outputs(program, graph, err);
    return status != VD_OK ? status : check_loss(program, graph, err);
}

/* A state leaf or a data tensor. */
static bool valid_leaf(const vd_leaf *leaf) {
    return valid_name(leaf->name) && ro_shape_valid(&leaf->shape) && has_elements(&leaf->shape);
}

static vd_status check_sources(const vd_program *program, vd_err *err) {
    if (program->steps < 1 || program->steps > INT32_MAX || program->checkpoint_interval < 1 ||
        program->checkpoint_interval > program->steps)
        return vd_fail(err, VD_ERR_PEER, "program: steps %lld, checkpoint interval %lld",
                       (long long)program->steps, (long long)program->checkpoint_interval);
    if (program->leaf_count == 0 || program->leaf_count > VD_LEAVES_MAX ||
        program->data_count > VD_DATA_MAX)
        return vd_fail(err, VD_ERR_PEER, "program: %u state leaves and %u data tensors",
                       program->leaf_count, program->data_count);
    for (uint32_t i = 0; i < program->leaf_count; i++)
        if (!valid_leaf(&program->leaf[i]))
            return vd_fail(err, VD_ERR_PEER, "program: name or shape of state leaf %u", i);
    for (uint32_t i = 0; i < program->data_count; i++)
        if (!valid_leaf(&program->data[i].tensor))
            return vd_fail(err, VD_ERR_PEER, "program: name or shape of data tensor %u", i);
    return VD_OK;
}

static bool valid_rounding(const vd_program_rounding *r) {
    bool valid =
        r->bits == 0 || (r->bits >= 16 && r->bits <= 32 && (r->encoding == 1 || r->encoding == 2));
    for (int op = 0; op < RO_OP_END; op++)
        valid &= r->threshold[op] == 0 || (r->encoding == 2 && ro_op_describe(op) &&
                                           r->threshold[op] >= 0x1p-1022 && r->threshold[op] <= 1);
    return valid;
}

vd_status vd_program_validate(const vd_program *program, vd_err *err) {
    vd_status status = check_sources(program, err);
    if (status == VD_OK && !valid_rounding(&program->rounding))
        status = vd_fail(err, VD_ERR_PEER, "program: rounding to %d bits in encoding %d",
                         (int)program->rounding.bits, (int)program->rounding.encoding);
    if (status != VD_OK)
        return status;
    ro_shape *shapes = calloc(RO_MAX_INPUTS, sizeof *shapes);
    if (!shapes)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    status = check_graph(program, &program->init, shapes, err);
    if (status == VD_OK)
        status = check_graph(program, &program->step, shapes, err);
    free(shapes);
    return status;
}
