/* One small valid call of every operator: the rows RO_SAMPLE of operators.def, and what stands for
 * them where there is none. */
#ifndef TESTS_VALID_CALLS_H
#define TESTS_VALID_CALLS_H

#include "repops/operators.h"
#include "repops/repops.h"

#include <string.h>

#define FLOAT_1 0x3f800000

typedef struct {
    int op, input_count;
    int64_t attr[RO_MAX_ATTRS];
    ro_shape input[7];
    ro_shape output; /* what ro_infer must give, or what is declared */
} valid_call;

/* clang-format off */
#define SHAPE(type, ...) {type, (int32_t)(sizeof (int64_t[]){__VA_ARGS__} / sizeof(int64_t)), {__VA_ARGS__}}
#define F32(...) SHAPE(RO_F32, __VA_ARGS__)
#define I32(...) SHAPE(RO_I32, __VA_ARGS__)
#define U8(...) SHAPE(RO_U8, __VA_ARGS__)
#define U16(...) SHAPE(RO_U16, __VA_ARGS__)
#define BF16(...) SHAPE(RO_BF16, __VA_ARGS__)
#define ATTRS(...) {__VA_ARGS__}
#define INPUTS(...) {__VA_ARGS__}

static const valid_call samples[] = {
#define RO_SAMPLE(NAME, cases, attrs, inputs, output) {RO_OP_##NAME, 0, attrs, inputs, output},
#include "repops/src/operators.def"
};
#undef SHAPE
#undef F32
#undef I32
#undef U8
#undef U16
#undef BF16
#undef ATTRS
#undef INPUTS
/* clang-format on */

/* Without a row: tensors of one shape, and attributes that are 1. */
static inline valid_call usual_call(int op) {
    const ro_op_info *info = ro_op_describe(op);
    const ro_shape usual = {RO_F32, 2, {3, 4}};
    valid_call v = {.op = op, .output = usual};
    for (int i = 0; i < info->min_inputs && i < 7; i++)
        v.input[i] = usual;
    for (int i = 0; i < info->attr_count; i++)
        v.attr[i] = info->attr[i].kind == 'f' ? FLOAT_1 : 1;
    return v;
}

static inline valid_call valid_call_of(int op) {
    valid_call v = {.op = RO_OP_NONE};
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        if (samples[i].op == op)
            v = samples[i];
    if (v.op == RO_OP_NONE)
        v = usual_call(op);
    while (v.input_count < 7 && v.input[v.input_count].ndim > 0)
        v.input_count++;
    return v;
}

#endif
