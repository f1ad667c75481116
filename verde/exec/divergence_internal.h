/* Private to divergence*.c. */
#ifndef VD_DIVERGENCE_INTERNAL_H
#define VD_DIVERGENCE_INTERNAL_H

#include "verde/exec/divergence.h"

typedef struct {
    const vd_diverge_side *side;
    const vd_alignment *pairs; /* NULL: both sides have the same program */
    vd_divergence *out;
    vd_err *err;
} vd_parting;

const vd_graph *vd_parting_graph(const vd_parting *p, int side);
/* The partner of the first side's leaf, or node of the step. */
uint32_t vd_parting_leaf(const vd_parting *p, uint32_t leaf);
uint32_t vd_parting_node(const vd_parting *p, uint32_t node);
VD_MUST_USE vd_status vd_parting_memory(const vd_parting *p);
/* Turns VD_ERR_IO of a damaged state into VD_OK and a text in out->unread. */
VD_MUST_USE vd_status vd_parting_unread(const vd_parting *p, vd_status status);

/* divergence_node.c: finds the first node of out->step that differs, and what its records say.
 * next[side] receives the commitments that its nodes make for the next state; it has room for its
 * leaves. */
VD_MUST_USE vd_status vd_parting_find_node(vd_parting *p, vd_hash *next[2], bool *found);

/* divergence_element.c: fill out->tensor, from the node's outputs or from leaves after the step. */
VD_MUST_USE vd_status vd_parting_outputs(vd_parting *p);
VD_MUST_USE vd_status vd_parting_leaves(vd_parting *p, int64_t at);
/* Finds the node that makes the leaf in out->tensor, and its reference. At most one side is
 * broken. */
VD_MUST_USE vd_status vd_parting_refer_leaf(vd_parting *p);
/* The index of the first pair of leaves whose commitments differ; VD_UNPAIRED: none. */
uint32_t vd_parting_first_leaf(const vd_parting *p, vd_hash *const leaf[2]);

/* divergence_programs.c: compares runs of two programs. */
VD_MUST_USE vd_status vd_parting_programs(vd_parting *p, bool executes);

#endif
