/* This file compares runs of two programs. Commitments to states include the program, so it
 * compares single tensors that have a partner. */
#include <stdlib.h>

#include "verde/exec/divergence_internal.h"

/* Compares the tensors of a step's state. */
static vd_status compare_at(vd_parting *p, int64_t step, bool *differs) {
    vd_hash *leaf[2] = {NULL, NULL};
    vd_status status = VD_OK;
    for (int side = 0; side < 2 && status == VD_OK; side++) {
        const vd_source *s = &p->side[side].source;
        leaf[side] = calloc((size_t)p->side[side].program->leaf_count + 1, sizeof(vd_hash));
        status = leaf[side] ? s->leaves(s->user, step, leaf[side], p->err) : vd_parting_memory(p);
    }
    *differs = status == VD_OK && vd_parting_first_leaf(p, leaf) != VD_UNPAIRED;
    free(leaf[0]);
    free(leaf[1]);
    return status;
}

static uint64_t paired_leaves(const vd_parting *p) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < p->side[0].program->leaf_count; i++)
        count += vd_parting_leaf(p, i) != VD_UNPAIRED;
    return count;
}

/* ---- checkpoints ---- */

/* Returns whether the side has stored the state of this step. */
static bool holds(const vd_diverge_side *s, int64_t step) {
    for (uint32_t i = 0; i < s->checkpoints; i++)
        if (vd_run_leaf_step(s->program, i) == step)
            return s->holds(s->user, i);
    return false;
}

static vd_status find_checkpoint(vd_parting *p, bool *differs) {
    const vd_diverge_side *a = &p->side[0], *b = &p->side[1];
    vd_status status = VD_OK;
    *differs = false;
    for (uint32_t i = 0; i < a->checkpoints && status == VD_OK; i++) {
        const int64_t step = vd_run_leaf_step(a->program, i);
        if (!a->holds(a->user, i) || !holds(b, step))
            continue;
        status = compare_at(p, step, differs);
        if (status == VD_ERR_IO) { /* as if it were not stored; the report mentions it */
            status = vd_parting_unread(p, status);
            continue;
        }
        p->out->states++;
        p->out->differs_at = step;
        if (*differs || status != VD_OK)
            return status;
        p->out->equal_at = step;
    }
    p->out->differs_at = -1;
    return status;
}

/* ---- the step ---- */

/* Finds the first step in the interval after which a tensor differs; at its end one does. */
static vd_status find_step(vd_parting *p) {
    bool differs = false;
    vd_status status = VD_OK;
    p->out->step = p->out->equal_at;
    while (p->out->step + 1 < p->out->differs_at && status == VD_OK) {
        status = compare_at(p, p->out->step + 1, &differs);
        if (differs)
            break;
        p->out->step++;
    }
    return status;
}

vd_status vd_parting_programs(vd_parting *p, bool executes) {
    bool differs = false, found = false;
    p->out->tensors = paired_leaves(p);
    if (p->out->tensors == 0)
        return VD_OK;
    vd_status status = find_checkpoint(p, &differs);
    if (status != VD_OK || !differs)
        return status;
    p->out->kind = VD_DIVERGE_CHECKPOINT;
    if (!executes)
        return vd_parting_leaves(p, p->out->differs_at);
    if (p->out->equal_at < 0)
        p->out->step = -1;
    else
        status = find_step(p);
    if (status == VD_OK)
        status = vd_parting_find_node(p, NULL, &found);
    p->out->has_step = status == VD_OK;
    if (status == VD_OK && found)
        p->out->kind = VD_DIVERGE_NODE;
    if (status != VD_OK)
        return status;
    return found ? vd_parting_outputs(p) : vd_parting_leaves(p, p->out->step + 1);
}
