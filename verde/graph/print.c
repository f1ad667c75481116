/* Graphs for people: one line per node, or Graphviz. */
#include "verde/graph/print.h"

void vd_print_shape(vd_buf *out, const ro_shape *shape) {
    vd_printf(out, "%s[", ro_dtype_name(shape->dtype));
    for (int i = 0; i < shape->ndim; i++)
        vd_printf(out, "%s%lld", i ? "," : "", (long long)shape->dim[i]);
    vd_printf(out, "]");
}

void vd_print_attr(vd_buf *out, const ro_op_info *info, int attr, int64_t value) {
    if (info->attr[attr].kind == 'f')
        vd_printf(out, "%.9g", (double)ro_attr_to_f32(value));
    else
        vd_printf(out, "%lld", (long long)value);
}

static void print_attrs(vd_buf *out, const vd_graph *graph, uint32_t node) {
    const ro_op_info *info = ro_op_describe(vd_node_stored(graph, node)->op);
    for (int i = 0; i < info->attr_count; i++) {
        vd_printf(out, "%s%s=", i ? ", " : "", info->attr[i].name);
        vd_print_attr(out, info, i, vd_node_attr(graph, node, i));
    }
}

void vd_print_value(vd_buf *out, const vd_program *program, const vd_graph *graph, uint32_t value) {
    uint32_t sources = vd_source_count(program, graph), index;
    if (value >= sources) {
        vd_printf(out, "%%%u", value - sources);
        return;
    }
    switch (vd_source_of(program, graph, value, &index)) {
    case VD_SOURCE_STATE: vd_printf(out, "state:%s", program->leaf[index].name); break;
    case VD_SOURCE_DATA: vd_printf(out, "data:%s", program->data[index].tensor.name); break;
    case VD_SOURCE_STEP: vd_printf(out, "step"); break;
    }
}

void vd_graph_text(const vd_program *program, const vd_graph *graph, vd_buf *out) {
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const vd_node *n = vd_node_stored(graph, i);
        vd_printf(out, "%%%-5u %-32s %s(", i, vd_node_name(graph, i).text,
                  ro_op_describe(n->op)->name);
        for (int32_t k = 0; k < n->input_count; k++) {
            vd_printf(out, "%s", k ? ", " : "");
            vd_print_value(out, program, graph, vd_node_input(graph, i, k));
        }
        vd_printf(out, "; ");
        print_attrs(out, graph, i);
        vd_printf(out, ") -> ");
        vd_print_shape(out, &n->shape);
        vd_printf(out, "\n");
    }
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        vd_printf(out, "state:%s <- ", program->leaf[i].name);
        vd_print_value(out, program, graph, graph->output[i]);
        vd_printf(out, "\n");
    }
}

/* Replaces control characters: a peer's names may contain any bytes. */
static void print_quoted(vd_buf *out, const char *text) {
    for (; *text; text++)
        vd_printf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "",
                  *text < ' ' ? '?' : *text);
}

static void dot_edge(vd_buf *out, const vd_program *program, const vd_graph *graph,
                     uint32_t value) {
    vd_printf(out, "\"");
    vd_buf name = {0};
    vd_print_value(&name, program, graph, value);
    vd_put_u8(&name, 0);
    if (vd_buf_ok(&name))
        print_quoted(out, (const char *)name.data);
    vd_buf_free(&name);
    vd_printf(out, "\"");
}

void vd_graph_dot(const vd_program *program, const vd_graph *graph, vd_buf *out) {
    uint32_t sources = vd_source_count(program, graph);
    vd_printf(out, "digraph verde {\n  rankdir=TB; node [shape=box, fontsize=10];\n");
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const vd_node *n = vd_node_stored(graph, i);
        vd_printf(out, "  \"%%%u\" [label=\"", i);
        print_quoted(out, vd_node_name(graph, i).text);
        vd_printf(out, "\\n%s ", ro_op_describe(n->op)->name);
        vd_print_shape(out, &n->shape);
        vd_printf(out, "\"];\n");
        for (int32_t k = 0; k < n->input_count; k++) {
            vd_printf(out, "  ");
            dot_edge(out, program, graph, vd_node_input(graph, i, k));
            vd_printf(out, " -> \"%%%u\";\n", i);
        }
    }
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        if (graph->output[i] < sources)
            continue;
        vd_printf(out, "  ");
        dot_edge(out, program, graph, graph->output[i]);
        vd_printf(out, " -> \"next:");
        print_quoted(out, program->leaf[i].name);
        vd_printf(out, "\";\n");
    }
    vd_printf(out, "}\n");
}
