/* Operators of section `sampling` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_SAMPLING_H
#define REPOPS_OP_SAMPLING_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_WEIGHT = 219,            /* (x, m): exp(x - m) in units of 2^-31 */
    RO_OP_TOP_K = 220,             /* (q i32): the cut that keeps the k largest weights */
    RO_OP_TOP_P = 221,             /* (q i32): the cut that keeps the largest weights that hold a share */
    RO_OP_KEEP_TOP = 222,          /* (q i32, cut i32): weights that a cut keeps, else 0 */
    RO_OP_RANDOM_WORDS = 223,      /* (key i32, position i32): 64 random bits of a key and a position */
    RO_OP_DRAW = 224,              /* (q i32, words i32): an index drawn with weights q */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_TOP_K_K = 0,
    RO_TOP_P_P = 0,
    RO_RANDOM_WORDS_SEED = 0,
    RO_RANDOM_WORDS_STREAM = 1,
};

/* clang-format on */

#endif
