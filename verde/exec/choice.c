/* This file finds the node that chooses a token, and checks that the token follows from its
 * logits. */
#include "verde/exec/choice.h"
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"
#include "repops/op_sampling.h"

#include <math.h>
#include <string.h>

/* The node that makes a value, if it is of this operator; else UINT32_MAX. */
static uint32_t made_by(const vd_program *p, uint32_t value, int op) {
    const uint32_t sources = vd_source_count(p, &p->step);
    if (value == UINT32_MAX || value < sources ||
        vd_node_stored(&p->step, value - sources)->op != op)
        return UINT32_MAX;
    return value - sources;
}

static uint32_t input_of(const vd_program *p, uint32_t node, int32_t i) {
    return node == UINT32_MAX ? node : vd_node_input(&p->step, node, i);
}

static uint32_t leaf_named(const vd_program *p, const char *name) {
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (strcmp(p->leaf[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

uint32_t vd_stopped_leaf(const vd_program *p) {
    return leaf_named(p, "stopped");
}

/* Finds the choice from leaf `token`, which becomes where(stopped, token, reshape(choice)). */
uint32_t vd_choosing_node(const vd_program *p) {
    const uint32_t leaf = leaf_named(p, "token");
    if (leaf == UINT32_MAX)
        return UINT32_MAX;
    const uint32_t where = made_by(p, p->step.output[leaf], RO_OP_WHERE);
    const uint32_t word = made_by(p, input_of(p, where, 2), RO_OP_RESHAPE);
    const uint32_t value = input_of(p, word, 0), draw = made_by(p, value, RO_OP_DRAW);
    return draw != UINT32_MAX ? draw : made_by(p, value, RO_OP_ARGMAX);
}

bool vd_choice_follows(const vd_program *p, uint32_t node, const void *input, const void *output) {
    const int64_t count =
        ro_shape_numel(vd_value_shape(p, &p->step, vd_node_input(&p->step, node, 0)));
    const int32_t *weight = input, chosen = *(const int32_t *)output;
    if (vd_node_stored(&p->step, node)->op == RO_OP_ARGMAX)
        return chosen >= 0 && chosen < count && isfinite(((const float *)input)[chosen]);
    for (int64_t i = 0; i < count; i++)
        if (weight[i] > 0)
            return true;
    return false;
}
