/* Programs that make tokens, run beside each other as a daemon runs those of a stranger's pack. */
#ifndef TESTS_GRAPHS_TOGETHER_H
#define TESTS_GRAPHS_TOGETHER_H

#include "tests/graphs/ways.h"

/* Whether prompts of this program and of a similar one have the states, run together, that each has
 * alone; *ran counts those that can be run together. False: *why says what differs. */
bool together_agree(const machines *m, const vd_program *p, const vd_program *similar,
                    uint64_t seed, int *ran, ways_why *why);

#endif
