/* The meaning of ro_linear, the functions of rows and ro_sgd (SPEC.md sections 3.1, 7 and 9): their
 * operators, run one by one. */
#ifndef TESTS_SUPPORT_BY_OPERATORS_H
#define TESTS_SUPPORT_BY_OPERATORS_H

#include "repops/src/backend.h"

/* Replaces those functions of a table. */
void by_operators(ro_table *table);

#endif
