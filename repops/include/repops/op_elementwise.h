/* Operators of section `elementwise` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_ELEMENTWISE_H
#define REPOPS_OP_ELEMENTWISE_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_ADD = 16,                /* (a, b): a + b; b repeats */
    RO_OP_DIV_CONST = 17,          /* (x): x / divisor */
    RO_OP_MAX = 207,               /* (a, b): the larger; b repeats */
    RO_OP_MIN = 208,               /* (a, b): the smaller; b repeats */
    RO_OP_ABS = 209,               /* (x): x without its sign */
    RO_OP_COMPARE = 210,           /* (a f32 or i32, b f32 or i32): 1 where the relation holds, else 0; b repeats */
    RO_OP_WHERE = 211,             /* (c i32, a any, b any): a where c is not 0, else b */
    RO_OP_IADD = 214,              /* (a i32, b i32): a + b of integers; b repeats */
    RO_OP_DROPOUT = 22,            /* (x, step i32): 0 at random, else x * scale; also its own gradient */
    RO_OP_MUL = 24,                /* (a, b): a * b; b repeats */
    RO_OP_SUB = 25,                /* (a, b): a - b; b repeats */
    RO_OP_DIV = 26,                /* (a, b): a / b; b repeats */
    RO_OP_SCALE = 27,              /* (x): x * factor */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_DIV_CONST_DIVISOR = 0, /* float */
    RO_COMPARE_KIND = 0,
    RO_DROPOUT_SEED = 0,
    RO_DROPOUT_STREAM = 1,
    RO_DROPOUT_THRESHOLD = 2,
    RO_DROPOUT_SCALE = 3, /* float */
    RO_SCALE_FACTOR = 0, /* float */
};

/* clang-format on */

#endif
