/* This file checks that a program's step is that of a batch. */
#include <string.h>

#include "verde/exec/batch_internal.h"

static vd_status differs(const char *what, const char *name, vd_err *err) {
    return vd_fail(err, VD_ERR_USAGE, "the program's step is not that of the others: %s %s differs",
                   what, name);
}

static vd_status check_sizes(const vd_batch_plan *plan, const vd_program *mine,
                             const vd_program *other, vd_err *err) {
    if (other->leaf_count != mine->leaf_count || other->data_count != mine->data_count ||
        other->step.node_count != mine->step.node_count ||
        other->step.edge_count != mine->step.edge_count || other->step.repeat_count > 0)
        return differs("the number of", "its leaves, data tensors or nodes", err);
    for (uint32_t i = 0; i < mine->leaf_count; i++)
        if (strcmp(mine->leaf[i].name, other->leaf[i].name) != 0 ||
            mine->step.output[i] != other->step.output[i])
            return differs("leaf", mine->leaf[i].name, err);
    if (!ro_shape_equal(&mine->leaf[plan->token].shape, &other->leaf[plan->token].shape))
        return differs("leaf", mine->leaf[plan->token].name, err);
    for (uint32_t i = plan->own_data; i < mine->data_count; i++)
        if (memcmp(mine->data[i].root, other->data[i].root, sizeof mine->data[i].root) != 0 ||
            !ro_shape_equal(&mine->data[i].tensor.shape, &other->data[i].tensor.shape))
            return differs("data tensor", mine->data[i].tensor.name, err);
    return VD_OK;
}

/* Compares two nodes. Attributes and shapes must be equal if the node runs once for all programs or
 * all rows; attention may have another length, or no window. */
static bool same_node(const vd_batch_plan *plan, const vd_program *mine, const vd_program *other,
                      uint32_t node) {
    const vd_node *a = vd_node_stored(&mine->step, node), *b = vd_node_stored(&other->step, node);
    const uint32_t group = plan->plan.group_of[node];
    const vd_batch_value *v = &plan->value[plan->sources + node];
    if (a->op != b->op || a->input_count != b->input_count || a->first_input != b->first_input)
        return false;
    if (plan->plan.idle[node] || v->held == VD_HELD_STATE || v->held == VD_HELD_PROGRAM)
        return true;
    if (group != VD_NO_GROUP && plan->plan.group[group].kind == VD_FUSED_ATTENTION)
        return true;
    return ro_shape_equal(&a->shape, &b->shape) && memcmp(a->attr, b->attr, sizeof a->attr) == 0;
}

/* Returns whether a node's inputs have the same shapes in both programs, which a single call for
 * all rows needs. */
static bool same_inputs(const vd_program *mine, const vd_program *other, uint32_t node) {
    const vd_node *n = vd_node_stored(&mine->step, node);
    for (int32_t i = 0; i < n->input_count; i++)
        if (!ro_shape_equal(
                vd_value_shape(mine, &mine->step, vd_node_input(&mine->step, node, i)),
                vd_value_shape(other, &other->step, vd_node_input(&other->step, node, i))))
            return false;
    return true;
}

static bool same_group(const vd_fused *a, const vd_fused *b) {
    const ro_attention *x = &a->attention, *y = &b->attention;
    return a->kind == b->kind && a->member_count == b->member_count &&
           memcmp(a->member, b->member, a->member_count * sizeof *a->member) == 0 &&
           memcmp(a->input, b->input, sizeof a->input) == 0 &&
           memcmp(a->output, b->output, sizeof a->output) == 0 && a->placed == b->placed &&
           x->heads == y->heads && x->kv_heads == y->kv_heads && x->head_size == y->head_size &&
           x->queries == y->queries && x->batch == y->batch && x->q_row == y->q_row &&
           x->out_row == y->out_row;
}

vd_status vd_batch_plan_fits(const vd_batch_plan *plan, const vd_program *mine,
                             const vd_program *other, const vd_plan *theirs, vd_err *err) {
    vd_status status = check_sizes(plan, mine, other, err);
    if (status != VD_OK)
        return status;
    if (memcmp(mine->step.stored_edge, other->step.stored_edge,
               mine->step.edge_count * sizeof(uint32_t)) != 0)
        return differs("what", "its nodes read", err);
    for (uint32_t i = 0; i < mine->step.node_count; i++)
        if (!same_node(plan, mine, other, i) || theirs->group_of[i] != plan->plan.group_of[i] ||
            theirs->idle[i] != plan->plan.idle[i])
            return differs("node", vd_node_name(&mine->step, i).text, err);
    for (uint32_t i = 0; i < plan->unit_count; i++)
        if (plan->unit[i].kind == VD_UNIT_TOGETHER &&
            !same_inputs(mine, other, plan->unit[i].index))
            return differs("the size of an input of",
                           vd_node_name(&mine->step, plan->unit[i].index).text, err);
    for (uint32_t i = 0; i < theirs->group_count; i++)
        if (!same_group(&plan->plan.group[i], &theirs->group[i]))
            return differs("group of node",
                           vd_node_name(&mine->step, plan->plan.group[i].member[0]).text, err);
    return VD_OK;
}
