/* Operators and their attributes, the part `product`: `make operators` writes this file from
 * repops/src/operators.def. SPEC.md has their formulas and special values. */
#ifndef REPOPS_OP_PRODUCT_H
#define REPOPS_OP_PRODUCT_H

/* clang-format off */

/* The inputs, as SPEC.md names them, and what is computed. The numbers are part of the canonical
 * encoding of graphs: never reuse one. */
enum {
    RO_OP_MATMUL = 32,             /* (a, b f32 or bf16 or f16): alpha * a b; batches, transposes, masks */
    RO_OP_MATMUL_FIXED = 225,      /* (a, b): alpha * a b by exact sums of integers; batches, transposes */
};

/* Places in ro_call.attr; those of kind f hold the bits of a float (ro_attr_f32), and the last ones
 * are of attributes that all operators of a family have. */
enum {
    RO_MATMUL_BATCH_DIMS = 0,
    RO_MATMUL_TRANS = 1,
    RO_MATMUL_ALPHA = 2, /* f */
    RO_MATMUL_CHUNK = 3,
    RO_MATMUL_MASK = 4,
    RO_MATMUL_WINDOW = 5,
    RO_MATMUL_FIXED_BATCH_DIMS = 0,
    RO_MATMUL_FIXED_TRANS = 1,
    RO_MATMUL_FIXED_ALPHA = 2, /* f */
    RO_MATMUL_FIXED_BITS = 3,
    RO_PRODUCT_BATCH_DIMS = RO_MATMUL_BATCH_DIMS,
    RO_PRODUCT_TRANS = RO_MATMUL_TRANS,
    RO_PRODUCT_ALPHA = RO_MATMUL_ALPHA,
};

/* clang-format on */

#endif
