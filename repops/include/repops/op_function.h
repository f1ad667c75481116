/* Operators of section `function` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_FUNCTION_H
#define REPOPS_OP_FUNCTION_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_GELU = 18,               /* (x): GELU by tanh */
    RO_OP_GELU_GRAD = 19,          /* (x, dy) */
    RO_OP_RELU = 20,               /* (x): max(x, 0) */
    RO_OP_RELU_GRAD = 21,          /* (x, dy) */
    RO_OP_LEAKY_RELU = 212,        /* (x): x, but x * slope below 0 */
    RO_OP_LEAKY_RELU_GRAD = 213,   /* (x, dy) */
    RO_OP_SOFT_SHRINK = 230,       /* (x): x moved by lambd towards 0 */
    RO_OP_SOFT_SHRINK_GRAD = 231,  /* (x, dy) */
    RO_OP_EXP = 28,                /* (x) */
    RO_OP_LOG = 29,                /* (x): natural logarithm */
    RO_OP_SQRT = 30,               /* (x) */
    RO_OP_RSQRT = 31,              /* (x): 1 / sqrt(x) */
    RO_OP_TANH = 100,              /* (x) */
    RO_OP_ERF = 101,               /* (x) */
    RO_OP_SIGMOID = 102,           /* (x) */
    RO_OP_SILU = 103,              /* (x): x * sigmoid(x) */
    RO_OP_GELU_ERF = 104,          /* (x): GELU by erf */
    RO_OP_TANH_GRAD = 105,         /* (y, dy): y = tanh(x) */
    RO_OP_ERF_GRAD = 106,          /* (x, dy) */
    RO_OP_SIGMOID_GRAD = 107,      /* (y, dy): y = sigmoid(x) */
    RO_OP_SILU_GRAD = 108,         /* (x, dy) */
    RO_OP_GELU_ERF_GRAD = 109,     /* (x, dy) */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_LEAKY_RELU_SLOPE = 0, /* float */
    RO_LEAKY_RELU_GRAD_SLOPE = 0, /* float */
    RO_SOFT_SHRINK_LAMBD = 0, /* float */
    RO_SOFT_SHRINK_GRAD_LAMBD = 0, /* float */
    RO_LEAKY_SLOPE = RO_LEAKY_RELU_SLOPE,
};

/* clang-format on */

#endif
