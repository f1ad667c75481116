/* Patterns of nodes that fuse.c finds. Private to verde/exec. */
#ifndef VD_FUSE_MATCH_H
#define VD_FUSE_MATCH_H

#include "verde/exec/fuse.h"

typedef struct {
    const vd_program *program;
    const vd_graph *graph;
    uint32_t sources;
    const uint32_t *uses; /* reads of each value, by all nodes, the next state and the loss */
} vd_matcher;

/* Each matches one pattern at its most distinctive node, and fills in *out. The caller checks that
 * nothing outside reads inner values. */
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

/* Finds the longest chain of elementwise nodes that ends at node `node`. False: shorter than two.
 * On success the caller frees g->elements. *failed: out of memory. */
bool vd_match_elements(const vd_matcher *m, const vd_plan *plan, uint32_t node, vd_fused *g,
                       bool *failed);

/* Matches a convolution of weights that are data. On success the caller frees g->conv. */
bool vd_match_conv(const vd_matcher *m, uint32_t node, vd_fused *g, bool *failed);

/* Lets existing groups of attention read and write heads in rows, without copies. */
void vd_lay_heads(const vd_matcher *m, vd_plan *plan);

/* Folds a graph with repeats into a plain one, whose lists the caller frees, and counts the reads
 * of each value. False: out of memory. */
bool vd_fold_graph(const vd_program *program, const vd_graph *graph, vd_plan *plan, vd_graph *out,
                   uint32_t **uses);

/* How often members of the group read a value. */
uint32_t vd_reads_of(const vd_matcher *m, const vd_fused *g, uint32_t value);

/* ---- parts of patterns ---- */

/* The node that computes `value`, if it is of operator `op`, else NULL. */
const vd_node *vd_node_of(const vd_matcher *m, uint32_t value, int op);
/* The same, and adds the node to the group. NULL also if the group is full. */
const vd_node *vd_join(const vd_matcher *m, uint32_t value, int op, vd_fused *g);
uint32_t vd_input_of(const vd_matcher *m, const vd_node *n, int i);
const ro_shape *vd_shape_in(const vd_matcher *m, uint32_t value);

/* Describes a node to search for: operator `op`, first input `value`, second input `second`
 * (VD_NO_GROUP: any or none), and attribute `attr` equal to `wanted` (attr < 0: any). */
typedef struct {
    int op;
    uint32_t value, second;
    int attr;
    int64_t wanted;
} vd_reader;

/* The value of the first such node from node `from` on; VD_NO_GROUP if none is near. */
uint32_t vd_find_reader(const vd_matcher *m, uint32_t from, const vd_reader *r);
/* Joins the reduction R of rows of g->cols elements in blocks of RO_REDUCE_BLOCK, from `value` down
 * to its first level, of operator `lowest`, which reads x (and `second`, if it has two inputs). */
bool vd_join_levels(const vd_matcher *m, vd_fused *g, uint32_t value, int level, int lowest,
                    uint32_t x, uint32_t second);
void vd_put_inputs(vd_fused *g, uint32_t count, const uint32_t *value);
void vd_put_outputs(vd_fused *g, uint32_t count, const uint32_t *value);

#endif
