/* Numbers of operators and element types that programs may not have: SPEC.md sections 1 and 15. */
#include "verde/graph/validate.h"

enum { OPERATORS_LAST = UINT16_MAX, TYPES_LAST = UINT8_MAX };

static vd_text say(const char *what, int number, int experimental, int last) {
    vd_text why = {.status = VD_ERR_PEER};
    if (number == 0) {
        snprintf(why.text, sizeof why.text, "there is no %s 0", what);
    } else if (number >= experimental) {
        snprintf(why.text, sizeof why.text,
                 "%s %d is experimental (%d to %d): no program may have it", what, number,
                 experimental, last);
    } else {
        snprintf(why.text, sizeof why.text, "%s %d is not known to this version", what, number);
        why.status = VD_ERR_VERSION;
    }
    return why;
}

vd_text vd_say_operator(int op) {
    return say("operator", op, RO_OP_EXPERIMENTAL, OPERATORS_LAST);
}

vd_text vd_say_type(int dtype) {
    return say("element type", dtype, RO_DTYPE_EXPERIMENTAL, TYPES_LAST);
}

static vd_status check_leaf(const vd_leaf *leaf, vd_err *err) {
    if (leaf->shape.dtype < RO_DTYPE_EXPERIMENTAL)
        return VD_OK;
    return vd_fail(err, VD_ERR_PEER, "program: %s: %s", leaf->name,
                   vd_say_type(leaf->shape.dtype).text);
}

static vd_status check_graph(const vd_program *p, const vd_graph *graph, vd_err *err) {
    for (uint32_t i = 0; i < graph->stored_count; i++) {
        const vd_node *n = &graph->stored[i];
        if (n->op < RO_OP_EXPERIMENTAL && n->shape.dtype < RO_DTYPE_EXPERIMENTAL)
            continue;
        return vd_fail(err, VD_ERR_PEER, "program: %s graph, node %u (%s): %s",
                       vd_graph_name(p, graph), i, vd_stored_name(graph, n),
                       n->op < RO_OP_EXPERIMENTAL ? vd_say_type(n->shape.dtype).text
                                                  : vd_say_operator(n->op).text);
    }
    return VD_OK;
}

vd_status vd_refuse_experimental(const vd_program *p, vd_err *err) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < p->data_count; i++)
        status = check_leaf(&p->data[i].tensor, err);
    for (uint32_t i = 0; status == VD_OK && i < p->leaf_count; i++)
        status = check_leaf(&p->leaf[i], err);
    if (status == VD_OK)
        status = check_graph(p, &p->init, err);
    return status == VD_OK ? check_graph(p, &p->step, err) : status;
}
