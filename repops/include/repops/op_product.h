/* Operators of section `product` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_PRODUCT_H
#define REPOPS_OP_PRODUCT_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_MATMUL = 32,             /* (a, b f32 or bf16 or f16): alpha * a b; batches, transposes, masks */
    RO_OP_MATMUL_FIXED = 225,      /* (a, b): alpha * a b by exact sums of integers; batches, transposes */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_MATMUL_BATCH_DIMS = 0,
    RO_MATMUL_TRANS = 1,
    RO_MATMUL_ALPHA = 2, /* float */
    RO_MATMUL_CHUNK = 3,
    RO_MATMUL_MASK = 4,
    RO_MATMUL_WINDOW = 5,
    RO_MATMUL_FIXED_BATCH_DIMS = 0,
    RO_MATMUL_FIXED_TRANS = 1,
    RO_MATMUL_FIXED_ALPHA = 2, /* float */
    RO_MATMUL_FIXED_BITS = 3,
    RO_PRODUCT_BATCH_DIMS = RO_MATMUL_BATCH_DIMS,
    RO_PRODUCT_TRANS = RO_MATMUL_TRANS,
    RO_PRODUCT_ALPHA = RO_MATMUL_ALPHA,
};

/* clang-format on */

#endif
