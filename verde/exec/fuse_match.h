/* Patterns of nodes that fuse.c looks for. Private to verde/exec. */
#ifndef VD_FUSE_MATCH_H
#define VD_FUSE_MATCH_H

#include "verde/exec/fuse.h"

typedef struct {
    const vd_program *program;
    const vd_graph *graph;
    uint32_t sources;
    const uint32_t *uses; /* of each value, by all nodes, the next state and the loss */
} vd_matcher;

/* Whether node `node` is the telling one of the pattern; fills in all of *out. That nobody else
 * reads what is inside is the caller's to check. */
bool vd_match_attention(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_attention_grad(const vd_matcher *m, uint32_t node, vd_fused *out);

#endif
