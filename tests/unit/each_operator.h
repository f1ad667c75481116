/* The operators that a test goes over: all of them, or the one that OP names, as in
 * `make check T=test_cpu OP=softmax`. */
#ifndef TESTS_EACH_OPERATOR_H
#define TESTS_EACH_OPERATOR_H

#include "repops/repops.h"

#include <stdio.h>
#include <stdlib.h>

/* RO_OP_NONE: all. */
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

/* The next one behind `op`, which is 0 for the first; 0 behind the last. */
static inline int next_operator(int op) {
    do
        op++;
    while (op < RO_OP_END && (!ro_op_describe(op) || !is_tested(op)));
    return op < RO_OP_END ? op : 0;
}

/* Into a list with room for RO_OP_END; how many there are. */
static inline size_t list_operators(int *list) {
    size_t count = 0;
    for (int op = next_operator(0); op; op = next_operator(op))
        list[count++] = op;
    return count;
}

#endif
