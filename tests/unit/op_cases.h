/* Random valid calls of every operator, with data. Rows RO_SAMPLE in operators.def name the
 * functions that roll shapes and attributes. */
#ifndef TESTS_OP_CASES_H
#define TESTS_OP_CASES_H

#include "op_dice.h"

/* Rolls a valid call of `op` with data; free it with case_free. Returns NULL, or why ro_infer
 * refused it. */
const char *case_roll(op_case *c, int op, uint64_t seed);

#endif
