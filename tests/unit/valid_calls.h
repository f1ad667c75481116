/* One small valid call of every operator: the rows RO_SAMPLE of operators.def, and what stands for
 * them where there is none. */
#ifndef TESTS_VALID_CALLS_H
#define TESTS_VALID_CALLS_H

#include "repops/repops.h"

enum { FLOAT_1 = 0x3f800000 };

typedef struct {
    int op, input_count;
    int64_t attr[RO_MAX_ATTRS];
    ro_shape input[7];
    ro_shape output; /* what ro_infer must give, or what is declared */
} valid_call;

valid_call valid_call_of(int op);

#endif
