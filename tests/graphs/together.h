/* Programs that generate tokens, run together as a daemon runs those of a stranger's pack. */
#ifndef TESTS_GRAPHS_TOGETHER_H
#define TESTS_GRAPHS_TOGETHER_H

#include "tests/graphs/ways.h"

/* Do prompts of this program and of a similar one have the same states run together as alone? *ran:
 * how many could be run together. If false, *why says what differs. */
bool together_agree(const machines *m, const vd_program *p, const vd_program *similar,
                    uint64_t seed, int *ran, ways_why *why);

#endif
