/* Executes a program's step in fused groups and node by node. */
#ifndef TEST_FUSING_H
#define TEST_FUSING_H

#include "verde/exec/fuse.h"

/* Returns f32 tensors with numbers between -scale and scale, the same each time. The caller frees
 * them. */
vd_state test_random_state(const vd_program *p, float scale);
/* Moves tensors back to host memory that vd_state_place moved to a device. */
void test_state_in_host(const vd_program *p, vd_state *state);
/* Expects equal bytes, and frees both states. `number`: of the case, for messages. */
void test_expect_equal_states(const vd_program *p, vd_state *fused, vd_state *nodes, int number);
/* Counts the groups in a step's plan, once for each iteration. */
uint32_t test_groups_of(const vd_program *p);
/* Return the k-th node with this operator, and a node's value, in a step without repeats. */
vd_node *test_node_at(vd_program *p, int op, int k);
uint32_t test_node_value(const vd_program *p, const vd_node *n);
ro_ctx *test_two_threads(void);

#endif
