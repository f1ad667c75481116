/* A program whose repeats have shifted inputs (PROTOCOL.md 1.5). */
#ifndef TEST_SHIFTED_H
#define TEST_SHIFTED_H

#include "tests/support/dispute.h"
#include "verde/graph/build.h"

/* The inputs [times, 4], a weight [4, 4] for each time, a row [1, 4]: leaves in this order. Biased:
 * with 2 * times data tensors, of which each second one is a time's, and the others are of the
 * initialisation. The step has two repeats, forward and backward, and changes each weight. */
void test_shifted_program(vd_program *program, int64_t steps, uint32_t times, bool biased);
void test_job_open_shifted(test_job *job, int64_t steps, uint32_t times); /* not biased */

/* An input, of a body's node that makes `value` in iteration 0, is shifted from now on: it reads
 * what it read in iteration 0, and then by this slope more each time. */
void test_shift(vd_graph *graph, vd_value value, uint32_t input, int64_t slope);

#endif
