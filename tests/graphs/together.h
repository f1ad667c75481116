/* Programs that make tokens, run beside each other as a daemon runs those of a stranger's pack. */
#ifndef TESTS_GRAPHS_TOGETHER_H
#define TESTS_GRAPHS_TOGETHER_H

#include "tests/graphs/ways.h"

/* Whether two prompts of this program have the states, run together, that each has alone; *ran is
 * set if they can be run together at all. False: *why says what differs. */
bool together_agree(const machines *m, const vd_program *p, uint64_t seed, bool *ran,
                    ways_why *why);

#endif
