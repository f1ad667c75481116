/* Operators and their attributes, the part `along`: `make operators` writes this file from
 * repops/src/operators.def. SPEC.md has their formulas and special values. */
#ifndef REPOPS_OP_ALONG_H
#define REPOPS_OP_ALONG_H

/* clang-format off */

/* The inputs, as SPEC.md names them, and what is computed. The numbers are part of the canonical
 * encoding of graphs: never reuse one. */
enum {
    RO_OP_NORMAL_AT = 251,         /* (step i32): normally distributed numbers, other ones in each step */
    RO_OP_UNIFORM_AT = 252,        /* (step i32): numbers between low and high, other ones in each step */
    RO_OP_TAKE_ALONG = 253,        /* (x any, ids i32): elements of each line, by their places on it */
    RO_OP_PUT_ALONG = 254,         /* (x f32 or i32, ids i32, rows f32 or i32): x, with rows put at places of its lines, one after the other */
    RO_OP_ARGSORT = 255,           /* (x f32 or i32): places on each line, in the order of their elements */
    RO_OP_RUNNING = 256,           /* (x f32 or i32): totals of each line, up to each element */
    RO_OP_ISUM = 257,              /* (x i32): the sum of each line of integers */
};

/* Places in ro_call.attr; those of kind f hold the bits of a float (ro_attr_f32), and the last ones
 * are of attributes that all operators of a family have. */
enum {
    RO_NORMAL_AT_SEED = 0,
    RO_NORMAL_AT_STREAM = 1,
    RO_NORMAL_AT_MEAN = 2, /* f */
    RO_NORMAL_AT_STD = 3, /* f */
    RO_UNIFORM_AT_SEED = 0,
    RO_UNIFORM_AT_STREAM = 1,
    RO_UNIFORM_AT_LOW = 2, /* f */
    RO_UNIFORM_AT_HIGH = 3, /* f */
    RO_TAKE_ALONG_AXIS = 0,
    RO_PUT_ALONG_AXIS = 0,
    RO_PUT_ALONG_KIND = 1,
    RO_ARGSORT_AXIS = 0,
    RO_ARGSORT_DESCENDING = 1,
    RO_RUNNING_AXIS = 0,
    RO_RUNNING_KIND = 1,
    RO_ISUM_AXIS = 0,
};

/* clang-format on */

#endif
