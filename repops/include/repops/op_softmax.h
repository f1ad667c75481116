/* Operators and their attributes, the part `softmax`: `make operators` writes this file from
 * repops/src/operators.def. SPEC.md has their formulas and special values. */
#ifndef REPOPS_OP_SOFTMAX_H
#define REPOPS_OP_SOFTMAX_H

/* clang-format off */

/* The inputs, as SPEC.md names them, and what is computed. The numbers are part of the canonical
 * encoding of graphs: never reuse one. */
enum {
    RO_OP_XENT = 64,               /* (x, m, l, ids i32): losses of rows */
    RO_OP_XENT_GRAD = 65,          /* (x, m, l, ids i32, dloss): of x */
    RO_OP_SOFTMAX = 110,           /* (x, m, l) */
    RO_OP_SOFTMAX_GRAD = 111,      /* (y, dy, d): y = softmax(x) */
    RO_OP_LOG_SOFTMAX = 112,       /* (x, m, l) */
    RO_OP_LOG_SOFTMAX_GRAD = 113,  /* (y, dy, s): y = log_softmax(x) */
    RO_OP_XENT_IGNORE = 114,       /* (x, m, l, ids i32): xent, but 0 where the id is `ignore` */
    RO_OP_XENT_IGNORE_GRAD = 115,  /* (x, m, l, ids i32, dloss) */
    RO_OP_KEPT = 116,              /* (ids i32): 0 where the id is `ignore`, else 1 */
};

/* Places in ro_call.attr; those of kind f hold the bits of a float (ro_attr_f32), and the last ones
 * are of attributes that all operators of a family have. */
enum {
    RO_XENT_IGNORE_IGNORE = 0,
    RO_XENT_IGNORE_GRAD_IGNORE = 0,
    RO_KEPT_IGNORE = 0,
    RO_LABELS_IGNORE = RO_XENT_IGNORE_IGNORE,
};

/* clang-format on */

#endif
