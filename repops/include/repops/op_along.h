/* Operators of section `along` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_ALONG_H
#define REPOPS_OP_ALONG_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_NORMAL_AT = 251,         /* (step i32): normally distributed numbers, different in each step */
    RO_OP_UNIFORM_AT = 252,        /* (step i32): numbers between low and high, different in each step */
    RO_OP_TAKE_ALONG = 253,        /* (x any, ids i32): elements of each line at the places `ids` */
    RO_OP_PUT_ALONG = 254,         /* (x f32 or i32, ids i32, rows f32 or i32): x with `rows` put at the places `ids` of each line, in order */
    RO_OP_ARGSORT = 255,           /* (x f32 or i32): indices that sort each line */
    RO_OP_RUNNING = 256,           /* (x f32 or i32): running totals of each line */
    RO_OP_ISUM = 257,              /* (x i32): sum of each line of integers */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_NORMAL_AT_SEED = 0,
    RO_NORMAL_AT_STREAM = 1,
    RO_NORMAL_AT_MEAN = 2, /* float */
    RO_NORMAL_AT_STD = 3, /* float */
    RO_UNIFORM_AT_SEED = 0,
    RO_UNIFORM_AT_STREAM = 1,
    RO_UNIFORM_AT_LOW = 2, /* float */
    RO_UNIFORM_AT_HIGH = 3, /* float */
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
