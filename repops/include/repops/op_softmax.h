/* Operators of section `softmax` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_SOFTMAX_H
#define REPOPS_OP_SOFTMAX_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_XENT = 64,               /* (x, m, l, ids i32): cross-entropy loss of each row */
    RO_OP_XENT_GRAD = 65,          /* (x, m, l, ids i32, dloss): gradient of x */
    RO_OP_SOFTMAX = 110,           /* (x, m, l) */
    RO_OP_SOFTMAX_GRAD = 111,      /* (y, dy, d): y = softmax(x) */
    RO_OP_LOG_SOFTMAX = 112,       /* (x, m, l) */
    RO_OP_LOG_SOFTMAX_GRAD = 113,  /* (y, dy, s): y = log_softmax(x) */
    RO_OP_XENT_IGNORE = 114,       /* (x, m, l, ids i32): xent, but 0 where the id is `ignore` */
    RO_OP_XENT_IGNORE_GRAD = 115,  /* (x, m, l, ids i32, dloss) */
    RO_OP_KEPT = 116,              /* (ids i32): 0 where the id is `ignore`, else 1 */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_XENT_IGNORE_IGNORE = 0,
    RO_XENT_IGNORE_GRAD_IGNORE = 0,
    RO_KEPT_IGNORE = 0,
    RO_LABELS_IGNORE = RO_XENT_IGNORE_IGNORE,
};

/* clang-format on */

#endif
