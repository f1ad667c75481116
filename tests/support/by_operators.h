/* Defines ro_linear, the row functions and ro_sgd (SPEC.md sections 3.1, 7 and 9) by running their
 * operators one by one. */
#ifndef TESTS_SUPPORT_BY_OPERATORS_H
#define TESTS_SUPPORT_BY_OPERATORS_H

#include "repops/src/backend.h"

/* Replaces those functions in a table. */
void by_operators(ro_table *table);

#endif
