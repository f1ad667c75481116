/* The operators that a test covers: all of them, or the one named by OP, as in `make check
 * T=test_cpu OP=softmax`. */
#ifndef TESTS_EACH_OPERATOR_H
#define TESTS_EACH_OPERATOR_H

#include "repops/repops.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns the operator that OP names, or RO_OP_NONE for all. */
static inline int only_operator(void) {
    const char *name = getenv("OP");
    const int op = name ? ro_op_by_name(name) : RO_OP_NONE;
    if (name && *name && op == RO_OP_NONE) {
        fprintf(stderr, "[ERR] OP=%s: there is no operator of this name\n", name);
        exit(2);
    }
    return op;
}

static inline int is_tested(int op) {
    const int only = only_operator();
    return only == RO_OP_NONE || op == only;
}

/* Returns the operator after `op`; 0 is before the first and after the last. */
static inline int next_operator(int op) {
    do
        op++;
    while (op < RO_OP_END && (!ro_op_describe(op) || !is_tested(op)));
    return op < RO_OP_END ? op : 0;
}

/* Lists operators into `list`, which has room for RO_OP_END; returns their number. */
static inline size_t list_operators(int *list) {
    size_t count = 0;
    for (int op = next_operator(0); op; op = next_operator(op))
        list[count++] = op;
    return count;
}

#endif
