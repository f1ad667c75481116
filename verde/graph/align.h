/* This header pairs the nodes, state leaves and data tensors of two programs that people compare.
 * Paired things need not be equal. */
#ifndef VD_ALIGN_H
#define VD_ALIGN_H

#include "verde/graph/graph.h"

/* Limit on the nodes of a graph, after unrolling, that can be paired: a name is made for each. */
enum { VD_ALIGNED_NODES_MAX = 1 << 22 };

#define VD_UNPAIRED UINT32_MAX

/* For each thing of one program the index of its partner in the other program, or VD_UNPAIRED. */
typedef struct {
    uint32_t *of[2]; /* owned */
    uint32_t count[2];
} vd_pairs;

typedef struct {
    vd_pairs init, step, leaf, data;
} vd_alignment;

void vd_alignment_free(vd_alignment *alignment);
/* Pairs equal indices if `same` is set: the programs have one structure (PROTOCOL.md section 1.7).
 * Otherwise pairs equal names, repeated names in their order. Then, where a paired node is followed
 * by an unpaired one on both sides, these two are paired too if their operator and shape agree.
 * VD_ERR_USAGE: a graph has more than VD_ALIGNED_NODES_MAX nodes. */
VD_MUST_USE vd_status vd_align(const vd_program *a, const vd_program *b, bool same,
                               vd_alignment *out, vd_err *err);

#endif
