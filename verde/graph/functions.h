/* Layers of the operators whose gradient is an operator too: `make operators` writes
 * this file from repops/src/operators.def. */
#ifndef VD_FUNCTIONS_H
#define VD_FUNCTIONS_H

#include "repops/op_function.h"
#include "verde/graph/build.h"

/* clang-format off */

/* GELU by tanh */
static inline vd_value vd_gelu(vd_builder *b, vd_value x) {
    vd_op op = {.op = RO_OP_GELU};
    return VD_APPLY(b, "gelu", op, x);
}

/* max(x, 0) */
static inline vd_value vd_relu(vd_builder *b, vd_value x) {
    vd_op op = {.op = RO_OP_RELU};
    return VD_APPLY(b, "relu", op, x);
}

/* x, but x * slope below 0 */
static inline vd_value vd_leaky_relu(vd_builder *b, vd_value x, float slope) {
    vd_op op = {.op = RO_OP_LEAKY_RELU};
    op.attr[RO_LEAKY_RELU_SLOPE] = ro_attr_f32(slope);
    return VD_APPLY(b, "leaky_relu", op, x);
}

/* x moved by lambd towards 0 */
static inline vd_value vd_soft_shrink(vd_builder *b, vd_value x, float lambd) {
    vd_op op = {.op = RO_OP_SOFT_SHRINK};
    op.attr[RO_SOFT_SHRINK_LAMBD] = ro_attr_f32(lambd);
    return VD_APPLY(b, "soft_shrink", op, x);
}

static inline vd_value vd_tanh(vd_builder *b, vd_value x) {
    vd_op op = {.op = RO_OP_TANH};
    return VD_APPLY(b, "tanh", op, x);
}

static inline vd_value vd_erf(vd_builder *b, vd_value x) {
    vd_op op = {.op = RO_OP_ERF};
    return VD_APPLY(b, "erf", op, x);
}

static inline vd_value vd_sigmoid(vd_builder *b, vd_value x) {
    vd_op op = {.op = RO_OP_SIGMOID};
    return VD_APPLY(b, "sigmoid", op, x);
}

/* x * sigmoid(x) */
static inline vd_value vd_silu(vd_builder *b, vd_value x) {
    vd_op op = {.op = RO_OP_SILU};
    return VD_APPLY(b, "silu", op, x);
}

/* GELU by erf */
static inline vd_value vd_gelu_erf(vd_builder *b, vd_value x) {
    vd_op op = {.op = RO_OP_GELU_ERF};
    return VD_APPLY(b, "gelu_erf", op, x);
}

/* clang-format on */

#endif
