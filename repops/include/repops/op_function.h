/* Operators and their attributes, the part `function`: `make operators` writes this file from
 * repops/src/operators.def. SPEC.md has their formulas and special values. */
#ifndef REPOPS_OP_FUNCTION_H
#define REPOPS_OP_FUNCTION_H

/* clang-format off */

/* The inputs, as SPEC.md names them, and what is computed. The numbers are part of the canonical
 * encoding of graphs: never reuse one. */
enum {
    RO_OP_GELU = 18,               /* (x): by tanh */
    RO_OP_GELU_GRAD = 19,          /* (x, dy) */
    RO_OP_RELU = 20,               /* (x): max(x, 0) */
    RO_OP_RELU_GRAD = 21,          /* (x, dy) */
    RO_OP_LEAKY_RELU = 212,        /* (x): x, or below 0 x times slope */
    RO_OP_LEAKY_RELU_GRAD = 213,   /* (x, dy) */
    RO_OP_SOFT_SHRINK = 230,       /* (x): x, nearer to 0 by lambd */
    RO_OP_SOFT_SHRINK_GRAD = 231,  /* (x, dy) */
    RO_OP_EXP = 28,                /* (x) */
    RO_OP_LOG = 29,                /* (x): the natural one */
    RO_OP_SQRT = 30,               /* (x) */
    RO_OP_RSQRT = 31,              /* (x): 1 / sqrt(x) */
    RO_OP_TANH = 100,              /* (x) */
    RO_OP_ERF = 101,               /* (x) */
    RO_OP_SIGMOID = 102,           /* (x) */
    RO_OP_SILU = 103,              /* (x): x * sigmoid(x) */
    RO_OP_GELU_ERF = 104,          /* (x): by erf */
    RO_OP_TANH_GRAD = 105,         /* (y, dy): y = tanh(x) */
    RO_OP_ERF_GRAD = 106,          /* (x, dy) */
    RO_OP_SIGMOID_GRAD = 107,      /* (y, dy): y = sigmoid(x) */
    RO_OP_SILU_GRAD = 108,         /* (x, dy) */
    RO_OP_GELU_ERF_GRAD = 109,     /* (x, dy) */
};

/* Places in ro_call.attr; those of kind f hold the bits of a float (ro_attr_f32), and the last ones
 * are of attributes that all operators of a family have. */
enum {
    RO_LEAKY_RELU_SLOPE = 0, /* f */
    RO_LEAKY_RELU_GRAD_SLOPE = 0, /* f */
    RO_SOFT_SHRINK_LAMBD = 0, /* f */
    RO_SOFT_SHRINK_GRAD_LAMBD = 0, /* f */
    RO_LEAKY_SLOPE = RO_LEAKY_RELU_SLOPE,
};

/* clang-format on */

#endif
