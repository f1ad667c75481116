/* ro_embedding_backward (repops/layers.h) against its operators, run one by one. */
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "tests/unit/layer_data.h"

static int32_t ids[1 << 14];

static void by_operators(int64_t rows, int64_t cols, int64_t positions, int add) {
    ro_ctx *ctx = context("scalar", 1);
    const ro_shape shape[] = {{RO_F32, 2, {positions, cols}}, {RO_I32, 1, {positions}}};
    const ro_call call = {RO_OP_EMBEDDING_GRAD, 2, {0}, shape, {RO_F32, 2, {rows, cols}}};
    const ro_shape table[] = {call.output, call.output};
    const ro_call sum = {RO_OP_ADD, 2, {0}, table, call.output};
    cr_assert(ro_run(ctx, &call, (const void *[]){dy, ids}, want) == RO_OK);
    if (add)
        cr_assert(ro_run(ctx, &sum, (const void *[]){x, want}, want) == RO_OK);
    ro_ctx_destroy(ctx);
}

/* Some ids are outside the table. Most rows of a large table have no id. */
static void check(int64_t rows, int64_t cols, int64_t positions, data_class class) {
    fill(x, 0, rows * cols, class);
    fill(dy, 1, positions * cols, class);
    for (int64_t p = 0; p < positions; p++)
        ids[p] = (int32_t)(case_word(9, 0, p) % (uint64_t)(rows + 2)) - 1;
    for (int add = 0; add < 2; add++) {
        by_operators(rows, cols, positions, add);
        for (int b = 0; b < BACKENDS; b++) {
            ro_ctx *ctx = context(backends[b], 1 + (int)class % 3);
            if (!ctx)
                continue;
            memcpy(got, x, (size_t)(rows * cols) * sizeof *got);
            cr_assert(ro_embedding_backward(ctx, rows, cols, positions, dy, ids,
                                            (ro_gradient){got, add}) == RO_OK,
                      "%s", ro_ctx_error(ctx));
            cr_expect(memcmp(got, want, (size_t)(rows * cols) * sizeof *got) == 0,
                      "%lld x %lld of %lld on %s, add %d", (long long)rows, (long long)cols,
                      (long long)positions, backends[b], add);
            ro_ctx_destroy(ctx);
        }
    }
}

Test(layers_embedding, gives_the_bytes_of_its_operators) {
    static const int64_t of[][3] = {{0, 5, 3},  {5, 0, 3},     {3, 5, 0},      {1, 1, 1},
                                    {3, 65, 9}, {2, 17, 9000}, {257, 300, 513}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            check(of[i][0], of[i][1], of[i][2], (data_class) class);
}

Test(layers_embedding, what_makes_no_sense_is_refused) {
    const ro_gradient to = {got, 1};
    ro_ctx *ctx = context("scalar", 1);
    expect_refused(ctx, ro_embedding_backward(ctx, -1, 2, 3, dy, ids, to), "rows * cols");
    expect_refused(ctx, ro_embedding_backward(ctx, 2, 2, INT64_MAX, dy, ids, to), "positions");
    expect_refused(ctx, ro_embedding_backward(ctx, 2, 1, INT64_C(1) << 32, dy, ids, to), "2^31");
    expect_refused(ctx, ro_embedding_backward(ctx, 2, 2, 3, NULL, ids, to), "`dy`");
    expect_refused(ctx, ro_embedding_backward(ctx, 2, 2, 3, dy, NULL, to), "`ids`");
    expect_refused(ctx, ro_embedding_backward(ctx, 2, 2, 3, got, ids, to), "overlaps");
    expect_refused(NULL, ro_embedding_backward(NULL, 2, 2, 3, dy, ids, to), "`ctx`");
    cr_expect(ro_embedding_backward(ctx, 2, 2, 3, dy, ids, (ro_gradient){0}) == RO_OK);
    ro_ctx_destroy(ctx);
}
