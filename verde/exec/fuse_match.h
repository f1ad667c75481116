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
bool vd_match_linear(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_product(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_cross_entropy(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_layer_norm(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_layer_norm_grad(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_rms_norm(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_rms_norm_grad(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_adamw(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_adamw_bf16(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_embedding_grad(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_rotary(const vd_matcher *m, uint32_t node, vd_fused *out);
bool vd_match_sgd(const vd_matcher *m, uint32_t node, vd_fused *out);

/* The longest chain of operators of elements that ends at node `node`. False: none of two. On
 * success g->elements is owned by the caller. *failed: out of memory. */
bool vd_match_elements(const vd_matcher *m, const vd_plan *plan, uint32_t node, vd_fused *g,
                       bool *failed);

/* A convolution of weights that are data. On success g->conv is owned by the caller. */
bool vd_match_conv(const vd_matcher *m, uint32_t node, vd_fused *g, bool *failed);

/* Once there are groups: those of attention leave out the copies of heads before and after them. */
void vd_lay_heads(const vd_matcher *m, vd_plan *plan);

/* Folds a graph that has repeats into a plain one, whose lists the caller frees, and tells how
 * often each value is read. False: out of memory. */
bool vd_fold_graph(const vd_program *program, const vd_graph *graph, vd_plan *plan, vd_graph *out,
                   uint32_t **uses);

/* How often members of the group read a value. */
uint32_t vd_reads_of(const vd_matcher *m, const vd_fused *g, uint32_t value);

/* ---- what patterns are made of ---- */

/* The node that computes `value` if it is an application of `op`, else NULL. */
const vd_node *vd_node_of(const vd_matcher *m, uint32_t value, int op);
/* The same; the node joins the group. NULL also if the group is full. */
const vd_node *vd_join(const vd_matcher *m, uint32_t value, int op, vd_fused *g);
uint32_t vd_input_of(const vd_matcher *m, const vd_node *n, int i);
const ro_shape *vd_shape_in(const vd_matcher *m, uint32_t value);

/* A node that is looked for: it has this operator, `value` as its first input, `second` as its
 * second (VD_NO_GROUP: any, or none), and attribute `attr` equal to `wanted` (attr < 0: any). */
typedef struct {
    int op;
    uint32_t value, second;
    int attr;
    int64_t wanted;
} vd_reader;

/* The value of the first such node, from node `from` on; VD_NO_GROUP if none is nearby. */
uint32_t vd_find_reader(const vd_matcher *m, uint32_t from, const vd_reader *r);
/* R of rows of g->cols elements in blocks of RO_REDUCE_BLOCK, all levels from `value` down to the
 * one, `lowest`, that reads x (and `second`, if it reads two): their nodes join. */
bool vd_join_levels(const vd_matcher *m, vd_fused *g, uint32_t value, int level, int lowest,
                    uint32_t x, uint32_t second);
void vd_put_inputs(vd_fused *g, uint32_t count, const uint32_t *value);
void vd_put_outputs(vd_fused *g, uint32_t count, const uint32_t *value);

#endif
