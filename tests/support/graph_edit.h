/* Edits of graphs without repeats. The result need not be a valid program. */
#ifndef TEST_GRAPH_EDIT_H
#define TEST_GRAPH_EDIT_H

#include "verde/graph/graph.h"

/* Are all nodes stored one by one? */
bool edit_is_plain(const vd_graph *g);
/* Inserts a copy of *node at position `at`. `input`: node->input_count values from before that
 * position. */
void edit_insert(vd_program *p, vd_graph *g, uint32_t at, const vd_node *node,
                 const uint32_t *input);
/* Moves the node at position `from` to position `to`. */
void edit_move(vd_program *p, vd_graph *g, uint32_t from, uint32_t to);
/* Adds an f32 leaf whose next state is the step's value `value`, which must be a node's. */
void edit_add_leaf(vd_program *p, uint32_t value);
/* Infers all nodes' output shapes from their inputs. Returns false if a node refuses them. */
bool edit_infer(vd_program *p, vd_graph *g);

#endif
