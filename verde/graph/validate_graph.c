/* Checks what a graph of a program must satisfy. PROTOCOL.md sections 1.3 and 1.5. */
#include "verde/graph/validate.h"

#include <stdlib.h>
#include <string.h>

bool vd_valid_name(const char *name, int markers, int digits) {
    int length = 0;
    for (int i = 0; i < VD_NAME_SIZE; i++) {
        if (name[i] == 0)
            return length < VD_NAME_SIZE;
        const bool marks = name[i] >= 1 && name[i] <= markers;
        if (!marks && (name[i] < ' ' || name[i] > '~'))
            return false;
        length += marks ? digits : 1;
    }
    return false;
}

static int digits_of(uint32_t number) {
    int digits = 1;
    for (; number >= 10; number /= 10)
        digits++;
    return digits;
}

bool vd_has_elements(const ro_shape *shape) {
    return ro_shape_numel(shape) > 0;
}

/* ---- stored nodes ---- */

typedef struct {
    const vd_program *program;
    const vd_graph *graph;
    ro_shape *shapes; /* room for RO_MAX_INPUTS */
    vd_err *err;
} checker;

static vd_status refuse(const checker *c, uint32_t stored, const char *why) {
    return vd_fail(c->err, VD_ERR_PEER, "%s graph, node %u: %s",
                   vd_graph_name(c->program, c->graph), stored, why);
}

/* The kind of a value, where a shifted input reads values of only one kind. */
static int kind_of(const checker *c, uint32_t value) {
    uint32_t index;
    if (value >= vd_source_count(c->program, c->graph))
        return 0;
    return (int)vd_source_of(c->program, c->graph, value, &index);
}

/* Returns whether all values that a shifted input reads are from before the repeat, of one kind and
 * one shape. As slopes are not 0, none of them is the step's number. */
static bool is_shifted_earlier(const checker *c, const vd_shifted *s, uint32_t values) {
    int64_t last;
    if (s->first >= values || s->slope == 0 ||
        __builtin_mul_overflow(s->slope, (int64_t)s->count - 1, &last) ||
        __builtin_add_overflow(last, (int64_t)s->first, &last) || last < 0 || last >= values ||
        kind_of(c, s->first) != kind_of(c, (uint32_t)last))
        return false;
    const ro_shape *shape = vd_value_shape(c->program, c->graph, s->first);
    for (uint32_t m = 1; m < s->count; m++)
        if (!ro_shape_equal(shape, vd_value_shape(c->program, c->graph, vd_shifted_value(s, m))))
            return false;
    return true;
}

/* Returns whether edge `edge` of stored node `stored` refers to an earlier value. */
static bool is_earlier(const checker *c, const vd_repeat *r, uint32_t stored, uint32_t edge) {
    const vd_graph *g = c->graph;
    const uint32_t number = g->stored_edge[edge];
    const uint32_t values =
        vd_source_count(c->program, g) + (r ? r->start : vd_node_number(g, stored, 0));
    const int from = r ? g->stored_from[edge] : VD_FROM_VALUE;
    if (from == VD_FROM_VALUE)
        return number < values;
    if (from == VD_FROM_SHIFTED)
        return number < g->shifted_count && g->shifted[number].count == r->count &&
               is_shifted_earlier(c, &g->shifted[number], values);
    if (from == VD_FROM_CARRIED)
        return number < r->carried_count;
    const vd_repeat *other = vd_repeat_of(g, number);
    return from == VD_FROM_NODE && number < stored && other && other->count == r->count;
}

static vd_status refuse_input(const checker *c, const vd_repeat *r, uint32_t stored, int32_t i) {
    const vd_node *n = &c->graph->stored[stored];
    const uint32_t edge = n->first_input + (uint32_t)i;
    const bool is_shifted = r && c->graph->stored_from[edge] == VD_FROM_SHIFTED;
    return vd_fail(c->err, VD_ERR_PEER, "%s graph, node %u (%s): input %d is not %s",
                   vd_graph_name(c->program, c->graph), stored, vd_stored_name(c->graph, n), i,
                   is_shifted ? "in each iteration a value from before the repeat, of one kind and "
                                "one shape"
                              : "an earlier value");
}

/* Checks what makes a stored node's fields safe to follow. */
static vd_status check_stored(const checker *c, const vd_repeat *r, uint32_t stored) {
    const vd_node *n = &c->graph->stored[stored];
    if (!ro_op_describe(n->op) || n->input_count < 0 || n->input_count > RO_MAX_INPUTS ||
        (uint64_t)n->first_input + (uint32_t)n->input_count > c->graph->edge_count)
        return refuse(c, stored, "no such operator or inputs");
    if (!vd_valid_name(vd_stored_name(c->graph, n), r ? VD_NAME_ITERATION : 0,
                       r ? digits_of(r->count - 1) : 0))
        return refuse(c, stored, "name is not printable ASCII, or too long");
    if (n->shape.ndim > 0 && ro_dtype_size(n->shape.dtype) == 0) {
        const vd_text why = vd_say_type(n->shape.dtype);
        return vd_fail(c->err, why.status, "%s graph, node %u (%s): %s",
                       vd_graph_name(c->program, c->graph), stored, vd_stored_name(c->graph, n),
                       why.text);
    }
    for (int32_t i = 0; i < n->input_count; i++)
        if (!is_earlier(c, r, stored, n->first_input + (uint32_t)i))
            return refuse_input(c, r, stored, i);
    return VD_OK;
}

/* Only these attributes may grow: every number between two valid ones is valid for them. */
static bool may_move(const vd_node *n) {
    const ro_op_info *info = ro_op_describe(n->op);
    return n->moving >= 0 && n->moving < info->attr_count &&
           (strcmp(info->attr[n->moving].name, "first") == 0 ||
            strcmp(info->attr[n->moving].name, "stream") == 0 ||
            strcmp(info->attr[n->moving].name, "start") == 0);
}

static vd_status check_slope(const checker *c, const vd_repeat *r, uint32_t stored) {
    const vd_node *n = &c->graph->stored[stored];
    int64_t last;
    if (n->slope == 0)
        return VD_OK;
    if (!may_move(n) || __builtin_mul_overflow(n->slope, (int64_t)r->count - 1, &last) ||
        __builtin_add_overflow(n->attr[n->moving], last, &last))
        return refuse(c, stored, "an attribute that may not grow with the iterations, or so much");
    return VD_OK;
}

/* ---- nodes that the graph means ---- */

static vd_status check_node(const checker *c, uint32_t node) {
    const char *name = vd_graph_name(c->program, c->graph);
    char why[256];
    ro_call call;
    vd_node_call(c->program, c->graph, node, &call, c->shapes);
    if (call.output.ndim == 0 || ro_infer(&call, why, sizeof why) != RO_OK)
        return vd_fail(c->err, VD_ERR_PEER, "%s graph, node %u (%s): %.256s", name, node,
                       vd_node_name(c->graph, node).text,
                       call.output.ndim == 0 ? "no output shape" : why);
    if (!vd_has_elements(&call.output))
        return vd_fail(c->err, VD_ERR_PEER, "%s graph, node %u (%s): its output has no elements",
                       name, node, vd_node_name(c->graph, node).text);
    return VD_OK;
}

static vd_status check_plain(const checker *c, uint32_t first, uint32_t end) {
    vd_status status = VD_OK;
    for (uint32_t i = first; status == VD_OK && i < end; i++) {
        status = check_stored(c, NULL, i);
        if (status == VD_OK)
            status = check_node(c, vd_node_number(c->graph, i, 0));
    }
    return status;
}

/* Checks a body's node in its first and last iteration: shapes do not change in between. */
static vd_status check_body_node(const checker *c, const vd_repeat *r, uint32_t stored) {
    vd_status status = check_stored(c, r, stored);
    if (status == VD_OK)
        status = check_slope(c, r, stored);
    if (status == VD_OK)
        status = check_node(c, vd_node_number(c->graph, stored, 0));
    if (status == VD_OK && c->graph->stored[stored].slope)
        status = check_node(c, vd_node_number(c->graph, stored, r->count - 1));
    return status;
}

static vd_status check_carried(const checker *c, const vd_repeat *r) {
    const vd_graph *g = c->graph;
    for (uint32_t i = r->carried; i < r->carried + r->carried_count; i++) {
        const vd_carried *x = &g->carried[i];
        if (x->before >= vd_source_count(c->program, g) + r->start || x->node < r->first ||
            x->node - r->first >= r->size ||
            !ro_shape_equal(vd_value_shape(c->program, g, x->before), &g->stored[x->node].shape))
            return refuse(c, r->first,
                          "a carried value is none of its repeat, or of another shape");
    }
    return VD_OK;
}

static vd_status check_sums(const checker *c, const vd_repeat *r) {
    const vd_graph *g = c->graph;
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < r->sum_count; i++) {
        if (!vd_valid_name(vd_stored_name(g, &g->sum[r->sum + i].add), VD_NAME_LAST,
                           digits_of(r->count - 1)))
            return refuse(c, g->sum[r->sum + i].node, "name of its sum");
        status = check_node(c, vd_repeat_sum_value(g, r, i) - vd_source_count(c->program, g));
    }
    return status;
}

static vd_status check_repeat(const checker *c, const vd_repeat *r) {
    vd_status status = check_carried(c, r);
    for (uint32_t i = 0; status == VD_OK && i < r->size; i++)
        status = check_body_node(c, r, r->first + i);
    return status == VD_OK ? check_sums(c, r) : status;
}

static vd_status check_outputs(const vd_program *program, const vd_graph *graph, vd_err *err) {
    uint32_t sources = vd_source_count(program, graph), values = sources + graph->node_count;
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        uint32_t value = graph->output[i];
        if (value < sources || value >= values ||
            !ro_shape_equal(vd_value_shape(program, graph, value), &program->leaf[i].shape))
            return vd_fail(err, VD_ERR_PEER,
                           "%s graph: state leaf %u (%s) has no node's output of its shape",
                           vd_graph_name(program, graph), i, program->leaf[i].name);
    }
    return VD_OK;
}

/* Checks that the loss is one f32, because a run reads four bytes of it. */
static vd_status check_loss(const vd_program *program, const vd_graph *graph, vd_err *err) {
    static const ro_shape scalar = {.dtype = RO_F32, .ndim = 1, .dim = {1}};
    uint32_t values = vd_source_count(program, graph) + graph->node_count;
    if (graph->loss == UINT32_MAX ||
        (graph->loss < values &&
         ro_shape_equal(vd_value_shape(program, graph, graph->loss), &scalar)))
        return VD_OK;
    return vd_fail(err, VD_ERR_PEER, "%s graph: loss is not a value of type f32[1]",
                   vd_graph_name(program, graph));
}

/* Number of values that shifted inputs read; each of them is checked. */
static uint64_t shifted_values(const vd_graph *graph) {
    uint64_t values = 0;
    for (uint32_t i = 0; i < graph->shifted_count; i++)
        values += graph->shifted[i].count;
    return values;
}

vd_status vd_check_graph(const vd_program *program, const vd_graph *graph, ro_shape *shapes,
                         vd_err *err) {
    const checker c = {program, graph, shapes, err};
    uint32_t at = 0;
    vd_status status = VD_OK;
    if (graph->node_count == 0 || graph->node_count > VD_UNROLLED_MAX || graph->stored_count == 0 ||
        graph->stored_count > VD_NODES_MAX)
        return vd_fail(err, VD_ERR_PEER, "%s graph: %u nodes that mean %u, expected 1..%d and %d",
                       vd_graph_name(program, graph), graph->stored_count, graph->node_count,
                       VD_NODES_MAX, VD_UNROLLED_MAX);
    if (vd_inputs_meant(graph) > VD_INPUTS_MEANT_MAX)
        return vd_fail_limit(err, vd_graph_name(program, graph), vd_inputs_meant(graph),
                             "inputs of nodes", VD_INPUTS_MEANT_MAX);
    if (shifted_values(graph) > VD_SHIFTED_MAX)
        return vd_fail_limit(err, vd_graph_name(program, graph), shifted_values(graph),
                             "values of shifted inputs", VD_SHIFTED_MAX);
    for (uint32_t i = 0; status == VD_OK && i < graph->repeat_count; i++) {
        const vd_repeat *r = &graph->repeat[i];
        status = check_plain(&c, at, r->first);
        if (status == VD_OK)
            status = check_repeat(&c, r);
        at = r->first + r->size;
    }
    if (status == VD_OK)
        status = check_plain(&c, at, graph->stored_count);
    if (status == VD_OK)
        status = check_outputs(program, graph, err);
    return status == VD_OK ? check_loss(program, graph, err) : status;
}
