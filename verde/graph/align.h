/* Which node, leaf and data tensor of one program is which of another. For people: what is paired
 * need not be equal. */
#ifndef VD_ALIGN_H
#define VD_ALIGN_H

#include "verde/graph/graph.h"

/* Nodes that a graph means of programs that are compared: their names are all made. */
enum { VD_ALIGNED_NODES_MAX = 1 << 22 };

#define VD_UNPAIRED UINT32_MAX

/* Of each thing of one side its partner on the other side, or VD_UNPAIRED. */
typedef struct {
    uint32_t *of[2]; /* owned */
    uint32_t count[2];
} vd_pairs;

typedef struct {
    vd_pairs init, step, leaf, data;
} vd_alignment;

void vd_alignment_free(vd_alignment *alignment);
/* `same`: the programs have one structure (PROTOCOL.md section 1.7), and each thing is paired with
 * the one of its number. Else pairs by names, those that stand several times in their order; then a
 * node without a partner that follows a paired one with the node that follows the partner, if they
 * have one operator and one shape. VD_ERR_USAGE: a graph means more than VD_ALIGNED_NODES_MAX
 * nodes. */
VD_MUST_USE vd_status vd_align(const vd_program *a, const vd_program *b, bool same,
                               vd_alignment *out, vd_err *err);

#endif
