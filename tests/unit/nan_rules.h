/* Which f32 operators pass on any NaN. All others only give the canonical NaN. */
#ifndef TESTS_NAN_RULES_H
#define TESTS_NAN_RULES_H

#include "repops/operators.h"

#include "repops/repops.h"

#include <string.h>

/* Does the operator pass on any NaN? Operators that take any type move elements, and do so. */
static inline int keeps_nans(int op) {
    static const char *const inputs_of[RO_OP_END] = {
#define RO_OPERATOR(number, NAME, name, least, most, shape, order, onto, check, inputs, ...)       \
    [number] = inputs,
#include "repops/src/operators.def"
    };
    return strstr(inputs_of[op], " any") || op == RO_OP_FILL || op == RO_OP_EMBEDDING ||
           op == RO_OP_CONCAT || op == RO_OP_RELU_GRAD || op == RO_OP_MAX_GRAD ||
           op == RO_OP_PUT_ALONG;
}

#endif
