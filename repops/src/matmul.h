/* A view of matmul and matmul_fixed as batches of matrices. Private to repops. */
#ifndef RO_MATMUL_H
#define RO_MATMUL_H

#include "repops/op_product.h"
#include "repops/src/call.h"

/* SPEC 3.1 and 3.5: a as M x K, b as K x N (k_b rows), each possibly stored transposed. */
typedef struct {
    int64_t batch, m, n, k, k_b;
    int trans_a, trans_b;
    float alpha;
    int64_t chunk;
    ro_mask mask;
    int64_t window; /* 0: none */
    int bits;       /* bits of the integers of a fixed product; 0: the product is not fixed */
} ro_matmul;

RO_INLINE ro_matmul ro_matmul_of(const ro_call *call) {
    const ro_shape *a = &call->input[0], *b = &call->input[1];
    const int64_t *attr = call->attr;
    const int bd = (int)attr[RO_PRODUCT_BATCH_DIMS];
    ro_matmul v = {.batch = 1,
                   .trans_a = (int)(attr[RO_PRODUCT_TRANS] & 1),
                   .trans_b = (int)(attr[RO_PRODUCT_TRANS] >> 1 & 1),
                   .alpha = ro_from_bits((uint32_t)attr[RO_PRODUCT_ALPHA]),
                   .chunk = RO_DOT_CHUNK};
    if (call->op == RO_OP_MATMUL_FIXED) {
        v.bits = (int)attr[RO_MATMUL_FIXED_BITS];
    } else {
        v.chunk = attr[RO_MATMUL_CHUNK];
        v.mask = (ro_mask)attr[RO_MATMUL_MASK];
        v.window = attr[RO_MATMUL_WINDOW];
    }
    int64_t a_cols = a->dim[a->ndim - 1], a_rows = 1;
    int64_t b_cols = b->dim[b->ndim - 1], b_rows = 1;
    for (int i = 0; i < bd; i++)
        v.batch *= a->dim[i];
    for (int i = bd; i < a->ndim - 1; i++)
        a_rows *= a->dim[i];
    for (int i = bd; i < b->ndim - 1; i++)
        b_rows *= b->dim[i];
    v.m = v.trans_a ? a_cols : a_rows;
    v.k = v.trans_a ? a_rows : a_cols;
    v.n = v.trans_b ? b_rows : b_cols;
    v.k_b = v.trans_b ? b_cols : b_rows;
    return v;
}

#endif
