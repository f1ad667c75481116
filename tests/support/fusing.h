/* Programs whose step is executed in fused groups and node by node. */
#ifndef TEST_FUSING_H
#define TEST_FUSING_H

#include "verde/exec/fuse.h"

/* Tensors of f32, each number between -scale and scale; the same each time. Owned by the caller. */
vd_state test_random_state(const vd_program *p, float scale);
/* Brings tensors back that vd_state_place moved to where a context computes. */
void test_state_in_host(const vd_program *p, vd_state *state);
/* Expects the same bytes, and frees both states. `number`: of the case, for messages. */
void test_expect_equal_states(const vd_program *p, vd_state *fused, vd_state *nodes, int number);
/* Groups of the plan of a step, one for each iteration that they are in. */
uint32_t test_groups_of(const vd_program *p);
/* The k-th node of this operator, and the value that a node makes, in a step without repeats. */
vd_node *test_node_at(vd_program *p, int op, int k);
uint32_t test_node_value(const vd_program *p, const vd_node *n);
ro_ctx *test_two_threads(void);

#endif
