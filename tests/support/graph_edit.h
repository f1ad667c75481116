/* Edits of graphs without repeats. What comes out need not be a valid program. */
#ifndef TEST_GRAPH_EDIT_H
#define TEST_GRAPH_EDIT_H

#include "verde/graph/graph.h"

/* Whether all of its nodes are stored one by one. */
bool edit_is_plain(const vd_graph *g);
/* Puts a copy of *node at place `at`. `input`: node->input_count values, of before that place. */
void edit_insert(vd_program *p, vd_graph *g, uint32_t at, const vd_node *node,
                 const uint32_t *input);
/* Moves the node at place `from` to place `to`. */
void edit_move(vd_program *p, vd_graph *g, uint32_t from, uint32_t to);
/* Adds a leaf of f32 that the step's value `value`, which a node makes, goes to. */
void edit_add_leaf(vd_program *p, uint32_t value);
/* Makes what the nodes' inputs say of the shapes of their outputs. False: a node refuses them. */
bool edit_infer(vd_program *p, vd_graph *g);

#endif
