/* Operators and their attributes, the part `sampling`: `make operators` writes this file from
 * repops/src/operators.def. SPEC.md has their formulas and special values. */
#ifndef REPOPS_OP_SAMPLING_H
#define REPOPS_OP_SAMPLING_H

/* clang-format off */

/* The inputs, as SPEC.md names them, and what is computed. The numbers are part of the canonical
 * encoding of graphs: never reuse one. */
enum {
    RO_OP_WEIGHT = 219,            /* (x, m): exp(x - m) in units of 2^-31 */
    RO_OP_TOP_K = 220,             /* (q i32): where the k largest end */
    RO_OP_TOP_P = 221,             /* (q i32): where the largest that hold a share end */
    RO_OP_KEEP_TOP = 222,          /* (q i32, cut i32): 0 from such a place on */
    RO_OP_RANDOM_WORDS = 223,      /* (key i32, position i32): 64 random bits of a key and a position */
    RO_OP_DRAW = 224,              /* (q i32, words i32): an index, as often as q says */
};

/* Places in ro_call.attr; those of kind f hold the bits of a float (ro_attr_f32), and the last ones
 * are of attributes that all operators of a family have. */
enum {
    RO_TOP_K_K = 0,
    RO_TOP_P_P = 0,
    RO_RANDOM_WORDS_SEED = 0,
    RO_RANDOM_WORDS_STREAM = 1,
};

/* clang-format on */

#endif
