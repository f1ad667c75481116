/* Valid calls of dot products and reductions. SPEC.md section 3. */
#include "repops/src/infer.h"
#include "repops/op_norm.h"
#include "repops/op_product.h"
#include "repops/op_reduce.h"
#include "repops/src/fixed.h"
#include "repops/src/matmul.h"
#include "repops/src/reduction.h"

/* ---- dot products ---- */

static ro_status ro_check_matmul_batch(ro_check *c, int bd) {
    const ro_shape *a = &c->in[0], *b = &c->in[1];
    if (a->ndim < bd + 2 || b->ndim < bd + 2)
        return ro_refuse(c, "inputs must have at least two dimensions beyond the %d of the batch",
                         bd);
    for (int i = 0; i < bd; i++)
        if (a->dim[i] != b->dim[i])
            return ro_refuse(c, "batch dimension %d differs: %lld and %lld", i,
                             (long long)a->dim[i], (long long)b->dim[i]);
    return RO_OK;
}

/* Checks what f32 and fixed products have in common, and infers the output shape. */
static ro_status ro_check_product(ro_check *c) {
    TRY(ro_want_range(c, RO_PRODUCT_BATCH_DIMS, 0, RO_MAX_DIMS - 2));
    TRY(ro_want_range(c, RO_PRODUCT_TRANS, 0, 3));
    const int bd = (int)c->call->attr[RO_PRODUCT_BATCH_DIMS];
    TRY(ro_check_matmul_batch(c, bd));
    const ro_matmul m = ro_matmul_of(c->call);
    if (m.k != m.k_b)
        return ro_refuse(c, "inner dimensions differ: %lld and %lld", (long long)m.k,
                         (long long)m.k_b);
    c->want = c->in[0];
    if (m.trans_a) {
        c->want.dim[bd] = m.m;
        for (int i = bd + 1; i < RO_MAX_DIMS; i++)
            c->want.dim[i] = 0;
        c->want.ndim = bd + 2;
    }
    c->want.dim[c->want.ndim - 1] = m.n;
    return RO_OK;
}

ro_status ro_check_matmul(ro_check *c) {
    TRY(ro_want_type(c, 0, RO_F32));
    TRY(ro_want_float(c, 1));
    TRY(ro_want_range(c, RO_MATMUL_MASK, 0, 2));
    TRY(ro_want_window(c, RO_MATMUL_WINDOW, c->call->attr[RO_MATMUL_MASK] != RO_MASK_NONE));
    if (c->call->attr[RO_MATMUL_CHUNK] != RO_DOT_CHUNK &&
        c->call->attr[RO_MATMUL_CHUNK] != RO_ATTN_BLOCK)
        return ro_refuse(c, "chunk must be %d or %d", RO_DOT_CHUNK, RO_ATTN_BLOCK);
    return ro_check_product(c);
}

ro_status ro_want_fixed_bits(ro_check *c, int attr) {
    const int64_t bits = c->call->attr[attr];
    if (!ro_fixed_has(bits))
        return ro_refuse(c, "bits must be %d, %d or %d, got %lld", RO_FIXED_8, RO_FIXED_16,
                         RO_FIXED_24, (long long)bits);
    return RO_OK;
}

ro_status ro_check_matmul_fixed(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(ro_want_fixed_bits(c, RO_MATMUL_FIXED_BITS));
    return ro_check_product(c);
}

/* ---- reductions ---- */

ro_status ro_check_view(ro_check *c) {
    TRY(ro_all_f32(c));
    TRY(ro_declared(c, RO_F32));
    int64_t cols = c->call->attr[RO_COLUMNS_COLS];
    if (cols < 0 || (cols == 0 ? NUMEL(0) != 0 : NUMEL(0) % cols != 0))
        return ro_refuse(c, "cols must divide %lld, got %lld", (long long)NUMEL(0),
                         (long long)cols);
    return RO_OK;
}

ro_status ro_check_reduce(ro_check *c) {
    TRY(ro_check_view(c));
    int64_t cols = c->call->attr[RO_ROWS_COLS], block = c->call->attr[RO_ROWS_BLOCK],
            rows = ro_view_rows(c->call);
    TRY(ro_want_range(c, RO_ROWS_BLOCK, 1, RO_REDUCE_BLOCK));
    switch (c->call->op) {
    case RO_OP_REDUCE_DOT: TRY(ro_want_repeats(c)); break;
    case RO_OP_REDUCE_SQDEV:
    case RO_OP_REDUCE_EXPSUM: TRY(ro_want_per_row(c, 1, 0, cols, rows)); break;
    case RO_OP_REDUCE_LN_GX:
    case RO_OP_REDUCE_RMS_GX:
        TRY(ro_want_vector(c, 1, cols));
        TRY(ro_want_same(c, 2, 0));
        for (int i = 3; i < c->call->input_count; i++)
            TRY(ro_want_per_row(c, i, 0, cols, rows));
        break;
    default: break;
    }
    return ro_want_output(c, rows * ro_blocks_of(cols, block));
}

ro_status ro_check_columns(ro_check *c) {
    TRY(ro_check_view(c));
    int64_t cols = c->call->attr[RO_COLUMNS_COLS], rows = cols > 0 ? NUMEL(0) / cols : 0;
    if (c->call->op != RO_OP_SUM_ROWS)
        TRY(ro_want_same(c, 1, 0));
    for (int i = 2; i < c->call->input_count; i++)
        TRY(ro_want_per_row(c, i, 0, cols, rows));
    return ro_want_output(c, ro_blocks_of(rows, RO_COLUMN_GROUP) * cols);
}
