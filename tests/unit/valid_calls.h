/* One small valid call of every operator: those of the rows RO_SAMPLE of operators.def, and calls
 * written here for the others. */
#ifndef TESTS_VALID_CALLS_H
#define TESTS_VALID_CALLS_H

#include "repops/repops.h"

enum { FLOAT_1 = 0x3f800000 };

typedef struct {
    int op, input_count;
    int64_t attr[RO_MAX_ATTRS];
    ro_shape input[7];
    ro_shape output; /* the shape that ro_infer gives, or a declared one */
} valid_call;

valid_call valid_call_of(int op);

#endif
