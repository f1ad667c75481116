/* A program whose repeats have shifted inputs (PROTOCOL.md 1.5). */
#ifndef TEST_SHIFTED_H
#define TEST_SHIFTED_H

#include "tests/support/dispute.h"
#include "verde/graph/build.h"

/* Leaves: the inputs [times, 4], a weight [4, 4] for each time step, a row [1, 4], in this order.
 * biased: with 2 * times data tensors, every second one for a time step, the others for the
 * initialisation. The step has two repeats, forward and backward, and changes each weight. */
void test_shifted_program(vd_program *program, int64_t steps, uint32_t times, bool biased);
void test_job_open_shifted(test_job *job, int64_t steps, uint32_t times); /* not biased */

/* Shifts an input of the body's node that makes `value` in iteration 0: it reads what it read then,
 * and in each iteration a value further by `slope`. */
void test_shift(vd_graph *graph, vd_value value, uint32_t input, int64_t slope);

#endif
