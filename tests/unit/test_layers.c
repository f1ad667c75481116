/* Sums and linear layers of repops/layers.h against SPEC.md and their operators. */
#include "repops/op_product.h"
#include "tests/unit/layer_sums.h"
#include "repops/op_function.h"

Test(layers, sums_of_rows_have_all_levels) {
    static const int64_t of[][2] = {{0, 5},    {3, 0},       {1, 1},       {7, 127},
                                    {5, 128},  {3, 1023},    {3, 1024},    {4, 1025},
                                    {2, 5000}, {1, 1048576}, {1, 1048577}, {1, 2000000}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++) {
            const int64_t rows = of[i][0], cols = of[i][1];
            fill(x, 0, rows * cols, (data_class) class);
            sum_of_rows(rows, cols, x, want);
            for (int b = 0; b < BACKENDS; b++) {
                ro_ctx *ctx = context(backends[b], 1 + class % 3);
                if (!ctx)
                    continue;
                got[rows] = 42;
                cr_assert(ro_sum(ctx, rows, cols, x, got) == RO_OK, "%s", ro_ctx_error(ctx));
                expect_bytes(got, want, rows, "sum", rows, cols, backends[b]);
                cr_expect(got[rows] == 42);
                ro_ctx_destroy(ctx);
            }
        }
}

static void check_columns(int64_t rows, int64_t cols, data_class class) {
    fill(x, 0, rows * cols, class);
    fill(dy, 1, cols, class);
    for (int add = 0; add < 2; add++) {
        sum_of_columns(rows, cols, x, want);
        for (int64_t c = 0; add && c < cols; c++)
            want[c] = canon(dy[c] + want[c]);
        for (int b = 0; b < BACKENDS; b++) {
            ro_ctx *ctx = context(backends[b], 1 + (int)class % 3);
            if (!ctx)
                continue;
            memcpy(got, dy, (size_t)cols * 4);
            cr_assert(ro_sum_rows(ctx, rows, cols, x, (ro_gradient){got, add}) == RO_OK);
            expect_bytes(got, want, cols, add ? "added columns" : "columns", rows, cols,
                         backends[b]);
            ro_ctx_destroy(ctx);
        }
    }
}

Test(layers, sums_of_columns_have_all_levels) {
    static const int64_t of[][2] = {{0, 5},      {5, 0},      {1, 1},    {63, 7},
                                    {64, 33},    {65, 16},    {4096, 3}, {4097, 5},
                                    {262145, 2}, {300000, 1}, {500, 768}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            check_columns(of[i][0], of[i][1], (data_class) class);
}

static void product(ro_ctx *ctx, int bits, int trans, matrix a, matrix b, matrix c) {
    const int64_t fixed[RO_MAX_ATTRS] = {[RO_MATMUL_FIXED_TRANS] = trans,
                                         [RO_MATMUL_FIXED_ALPHA] = ro_attr_f32(1),
                                         [RO_MATMUL_FIXED_BITS] = bits};
    const int64_t attr[RO_MAX_ATTRS] = {[RO_MATMUL_TRANS] = trans,
                                        [RO_MATMUL_ALPHA] = ro_attr_f32(1),
                                        [RO_MATMUL_CHUNK] = RO_DOT_CHUNK};
    apply(ctx, bits ? RO_OP_MATMUL_FIXED : RO_OP_MATMUL, bits ? fixed : attr, 2, (matrix[]){a, b},
          c);
}

/* ---- linear layers ---- */

enum { PART = 1 << 17 };

typedef struct {
    float dx[PART], dw[PART], db[PART];
} gradients;

static gradients linear_want, linear_got, linear_before;
static float linear_w[PART], linear_dz[PART];

static const float *dz_by_operators(ro_ctx *ctx, const ro_linear_layer *l) {
    static const int grad[] = {RO_OP_NONE, RO_OP_RELU_GRAD, RO_OP_GELU_GRAD, RO_OP_GELU_ERF_GRAD,
                               RO_OP_SILU_GRAD};
    const matrix in[] = {{z, l->rows, l->out}, {dy, l->rows, l->out}};
    if (l->activation == RO_ACTIVATION_NONE)
        return dy;
    apply(ctx, grad[l->activation], NULL, 2, in, (matrix){linear_dz, l->rows, l->out});
    return linear_dz;
}

static void linear_by_operators(ro_ctx *ctx, const ro_linear_layer *l, const int *add) {
    const matrix mx = {x, l->rows, l->in}, dz = {dz_by_operators(ctx, l), l->rows, l->out};
    const int t = l->transposed;
    const matrix w = {linear_w, t ? l->out : l->in, t ? l->in : l->out};
    linear_want = linear_before;
    gradients *g = &linear_want;
    product(ctx, l->fixed_bits, t ? 0 : 2, dz, w, (matrix){g->dx, l->rows, l->in});
    product(ctx, l->fixed_bits, 1, t ? dz : mx, t ? mx : dz, (matrix){g->dw, w.rows, w.cols});
    sum_of_columns(l->rows, l->out, dz.data, g->db);
    added(g->dx, linear_before.dx, l->rows * l->in, add[0]);
    added(g->dw, linear_before.dw, l->in * l->out, add[1]);
    added(g->db, linear_before.db, l->out, add[2]);
}

static void check_linear(const ro_linear_layer *l, data_class class, int turn) {
    const int add[] = {turn & 1, turn >> 1 & 1, turn >> 2 & 1};
    fill(x, 0, l->rows * l->in, class);
    fill(linear_w, 1, l->in * l->out, class);
    fill(z, 2, l->rows * l->out, class);
    fill(dy, 3, l->rows * l->out, class);
    fill((float *)&linear_before, 4, sizeof linear_before / 4, class);
    ro_ctx *ctx = context("scalar", 1);
    linear_by_operators(ctx, l, add);
    ro_ctx_destroy(ctx);
    for (int b = 0; b < BACKENDS; b++) {
        if (!(ctx = context(backends[b], 1 + turn % 3)))
            continue;
        linear_got = linear_before;
        const ro_gradient dx = {linear_got.dx, add[0]}, dw = {linear_got.dw, add[1]},
                          db = {linear_got.db, add[2]};
        cr_assert(ro_linear_backward(ctx, l, x, linear_w, l->activation ? z : NULL, dy, dx, dw,
                                     db) == RO_OK,
                  "%s", ro_ctx_error(ctx));
        cr_expect(memcmp(&linear_got, &linear_want, sizeof linear_got) == 0,
                  "%lld x %lld x %lld, activation %d, fixed_bits %d, turn %d on %s",
                  (long long)l->rows, (long long)l->in, (long long)l->out, (int)l->activation,
                  l->fixed_bits, turn, backends[b]);
        ro_ctx_destroy(ctx);
    }
}

Test(layers, gradients_of_linear_layers_are_those_of_their_operators) {
    static const int64_t of[][3] = {{0, 3, 5},    {3, 5, 0},     {3, 0, 40},   {1, 1, 1},
                                    {16, 20, 24}, {1, 700, 3},   {300, 70, 1}, {65, 5, 17},
                                    {600, 17, 9}, {130, 257, 65}};
    static const int fixed[] = {0, RO_FIXED_16, RO_FIXED_8, RO_FIXED_24};
    int turn = 0;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            for (int activation = 0; activation <= RO_ACTIVATION_SILU; activation++, turn++) {
                const ro_linear_layer l = {.size = sizeof l,
                                           .activation = (ro_activation)activation,
                                           .rows = of[i][0],
                                           .in = of[i][1],
                                           .out = of[i][2],
                                           .transposed = turn / 3 % 2,
                                           .fixed_bits = fixed[turn / 5 % 4]};
                check_linear(&l, (data_class) class, turn % 8);
            }
}

Test(layers, a_gradient_of_a_linear_layer_that_is_not_wanted_is_not_written) {
    const ro_linear_layer l = {.size = sizeof l, .rows = 5, .in = 6, .out = 7};
    const int add[] = {0, 0, 0};
    const ro_gradient none = {0};
    ro_ctx *ctx = context("scalar", 1);
    memset(&linear_before, NOT_WRITTEN, sizeof linear_before);
    fill(x, 0, 30, DATA_NORMAL), fill(linear_w, 1, 42, DATA_NORMAL), fill(dy, 2, 35, DATA_NORMAL);
    linear_by_operators(ctx, &l, add);
    cr_assert(ro_linear_backward(ctx, &l, NULL, linear_w, NULL, dy, (ro_gradient){got, 0}, none,
                                 none) == RO_OK);
    cr_expect(memcmp(got, linear_want.dx, 30 * 4) == 0);
    cr_assert(ro_linear_backward(ctx, &l, x, NULL, NULL, dy, none, (ro_gradient){got, 0}, none) ==
              RO_OK);
    cr_expect(memcmp(got, linear_want.dw, 42 * 4) == 0);
    cr_assert(ro_linear_backward(ctx, &l, NULL, NULL, NULL, dy, none, none,
                                 (ro_gradient){got, 0}) == RO_OK);
    cr_expect(memcmp(got, linear_want.db, 7 * 4) == 0);
    ro_ctx_destroy(ctx);
}

Test(layers, linear_gradients_that_make_no_sense_are_refused) {
    ro_ctx *ctx = context("scalar", 1);
    const ro_gradient a = {got, 0}, none = {0}, onto = {dy, 0};
    enum { SIZE = sizeof(ro_linear_layer) };
    const ro_linear_layer l = {SIZE, RO_ACTIVATION_NONE, 2, 3, 4, 0, 0},
                          relu = {SIZE, RO_ACTIVATION_RELU, 2, 3, 4, 0, 0};
    const ro_linear_layer wrong[] = {{SIZE, 0, -1, 1, 1, 0, 0},
                                     {SIZE, 0, INT64_MAX, 2, 2, 0, 0},
                                     {SIZE, (ro_activation)99, 1, 1, 1, 0, 0},
                                     {SIZE, 0, 1, 1, 1, 0, .fixed_bits = 23}};
    static const char *const says[] = {"rows * in", "rows * in", "activation", "fixed_bits"};
    for (int i = 0; i < 4; i++)
        expect_refused(ctx, ro_linear_backward(ctx, &wrong[i], x, z, NULL, dy, a, none, none),
                       says[i]);
    expect_refused(ctx, ro_linear_backward(ctx, &l, x, z, z, dy, a, none, none), "z must be NULL");
    expect_refused(ctx, ro_linear_backward(ctx, &relu, x, z, NULL, dy, a, none, none), "`z`");
    expect_refused(ctx, ro_linear_backward(ctx, &l, x, NULL, NULL, dy, a, none, none), "`w`");
    expect_refused(ctx, ro_linear_backward(ctx, &l, NULL, z, NULL, dy, none, a, none), "`x`");
    expect_refused(ctx, ro_linear_backward(ctx, &l, x, z, NULL, NULL, none, a, none), "`dy`");
    expect_refused(ctx, ro_linear_backward(ctx, &l, x, z, NULL, dy, onto, none, none), "overlaps");
    expect_refused(ctx, ro_linear_backward(ctx, &l, x, z, NULL, dy, a, a, none), "overlaps");
    expect_refused(ctx, ro_linear_backward(ctx, NULL, x, z, NULL, dy, a, a, none), "`layer`");
    ro_ctx_destroy(ctx);
}

Test(layers, sums_that_make_no_sense_are_refused) {
    ro_ctx *ctx = context("scalar", 1);
    const ro_gradient a = {got, 0}, none = {0};
    expect_refused(ctx, ro_sum(ctx, -1, 2, x, got), "sum: rows * cols");
    expect_refused(ctx, ro_sum(ctx, INT64_MAX, INT64_MAX, x, got), "sum: rows * cols");
    expect_refused(ctx, ro_sum(ctx, 2, 2, NULL, got), "`x`");
    expect_refused(ctx, ro_sum(ctx, 2, 2, x, x), "overlaps");
    expect_refused(ctx, ro_sum_rows(ctx, 2, -2, x, a), "sum_rows: rows * cols");
    expect_refused(ctx, ro_sum_rows(ctx, 2, 2, x, none), "`y`");
    expect_refused(NULL, ro_sum(NULL, 2, 2, x, got), "`ctx`");
    ro_ctx_destroy(ctx);
}
