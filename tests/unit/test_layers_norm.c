/* ro_rms_norm and ro_rms_norm_backward (repops/layers.h) against their operators, run one by one.
 */
#include "repops/src/backend.h"
#include "repops/op_norm.h"
#include "repops/op_reduce.h"
#include "tests/unit/layer_sums.h"

enum { NORM_ROWS = 4200, EPS_BITS = 0x3727c5ac /* 1e-5 */ };

static float gamma_of[MOST], rstd[NORM_ROWS], want_rstd[NORM_ROWS], sums[NORM_ROWS], parts[MOST];
static float want_dgamma[MOST], got_dgamma[MOST], norm_before[MOST];

/* Computes the sum R of an operator with `count` inputs, level by level. */
static void reduce(ro_ctx *ctx, int op, int64_t rows, int64_t cols, int count, const matrix *in,
                   float *to) {
    const int64_t attr[] = {cols, RO_REDUCE_BLOCK};
    const int64_t blocks = cols ? (cols + RO_REDUCE_BLOCK - 1) / RO_REDUCE_BLOCK : 1;
    apply(ctx, op, attr, count, in, (matrix){parts, rows, blocks});
    if (blocks > 1)
        sum_of_rows(rows, blocks, parts, to);
    else
        memcpy(to, parts, (size_t)rows * 4);
}

static void norm_by_operators(ro_ctx *ctx, int64_t rows, int64_t cols) {
    const matrix mx = {x, rows, cols}, g = {gamma_of, 1, cols}, r = {want_rstd, rows, 1};
    reduce(ctx, RO_OP_REDUCE_DOT, rows, cols, 2, (matrix[]){mx, mx}, sums);
    apply(ctx, RO_OP_LN_RSTD, (int64_t[]){cols, EPS_BITS}, 1, (matrix[]){{sums, rows, 1}}, r);
    apply(ctx, RO_OP_RMSNORM, NULL, 3, (matrix[]){mx, r, g}, (matrix){want, rows, cols});
}

static void dgamma_by_operators(ro_ctx *ctx, const matrix *in, float *to) {
    const int64_t rows = in[0].rows, cols = in[0].cols;
    const int64_t groups = rows ? (rows + RO_COLUMN_GROUP - 1) / RO_COLUMN_GROUP : 1;
    apply(ctx, RO_OP_RMS_DGAMMA, &cols, 3, in, (matrix){parts, groups, cols});
    if (groups > 1)
        sum_of_columns(groups, cols, parts, to);
    else
        memcpy(to, parts, (size_t)cols * 4);
}

/* Leaves dx (not added) in `want`, and dgamma in `want_dgamma`. */
static void norm_backward_by_operators(ro_ctx *ctx, int64_t rows, int64_t cols) {
    const matrix mx = {x, rows, cols}, d = {dy, rows, cols}, g = {gamma_of, 1, cols};
    const matrix r = {want_rstd, rows, 1}, s = {sums, rows, 1};
    reduce(ctx, RO_OP_REDUCE_RMS_GX, rows, cols, 4, (matrix[]){d, g, mx, r}, sums);
    apply(ctx, RO_OP_RMS_DX, NULL, 5, (matrix[]){d, g, mx, r, s}, (matrix){want, rows, cols});
    dgamma_by_operators(ctx, (matrix[]){d, mx, r}, want_dgamma);
}

static float eps_of(void) {
    return ro_attr_to_f32(EPS_BITS);
}

/* Checks the norm with y apart from x, and in place. */
static void check_norm_on(ro_ctx *ctx, int64_t rows, int64_t cols) {
    for (int in_place = 0; in_place < 2; in_place++) {
        memcpy(got, x, (size_t)(rows * cols) * 4);
        memset(rstd, NOT_WRITTEN, sizeof rstd);
        cr_assert(ro_rms_norm(ctx, rows, cols, eps_of(), in_place ? got : x, gamma_of, got, rstd) ==
                      RO_OK,
                  "%s", ro_ctx_error(ctx));
        expect_bytes(got, want, rows * cols, "rms_norm", rows, cols, ro_ctx_backend(ctx));
        expect_bytes(rstd, want_rstd, rows, "rstd", rows, cols, ro_ctx_backend(ctx));
    }
}

/* How a gradient is used, and where dx is stored. */
enum { WRITTEN, ADDED, UNWANTED, USES };
enum { APART, OVER_DY, OVER_X };

static void expect_gradient(ro_ctx *ctx, const float *of, int use, const float *wanted,
                            int64_t count, const char *what) {
    memcpy(other, use == UNWANTED ? norm_before : wanted, (size_t)count * 4);
    added(other, norm_before, count, use == ADDED);
    cr_expect(memcmp(of, other, (size_t)count * 4) == 0, "%s of %lld, use %d, on %s", what,
              (long long)count, use, ro_ctx_backend(ctx));
}

static void check_backward_on(ro_ctx *ctx, int64_t rows, int64_t cols, int dx, int dgamma,
                              int place) {
    const int64_t n = rows * cols;
    memcpy(got, place == OVER_X ? x : place == OVER_DY ? dy : norm_before, (size_t)n * 4);
    memcpy(got_dgamma, norm_before, (size_t)cols * 4);
    cr_assert(ro_rms_norm_backward(
                  ctx, rows, cols, place == OVER_X ? got : x, gamma_of, want_rstd,
                  place == OVER_DY ? got : dy,
                  (ro_gradient){dx == UNWANTED ? NULL : got, dx == ADDED},
                  (ro_gradient){dgamma == UNWANTED ? NULL : got_dgamma, dgamma == ADDED}) == RO_OK,
              "%s", ro_ctx_error(ctx));
    expect_gradient(ctx, got, dx, want, n, "dx");
    expect_gradient(ctx, got_dgamma, dgamma, want_dgamma, cols, "dgamma");
}

static void check_all_on(ro_ctx *ctx, int64_t rows, int64_t cols) {
    for (int use = 0; use < USES * USES; use++)
        check_backward_on(ctx, rows, cols, use % USES, use / USES, APART);
    for (int dgamma = 0; dgamma < USES; dgamma++) {
        check_backward_on(ctx, rows, cols, WRITTEN, dgamma, OVER_DY);
        check_backward_on(ctx, rows, cols, WRITTEN, dgamma, OVER_X);
    }
}

/* Computes what a device computes by one launch, with the job of layer norm without a mean. dgamma
 * comes first, since dx may overwrite its inputs. */
static ro_status gradients_by_operators(ro_ctx *ctx, const ro_row_grad_job *j) {
    const matrix mx = {j->x, j->rows, j->cols};
    const matrix d = {j->dy, j->rows, j->cols};
    const matrix g = {j->gamma, 1, j->cols};
    const matrix r = {j->statistic[1], j->rows, 1}, s = {sums, j->rows, 1};
    cr_assert(!j->statistic[0] && !j->dbeta);
    if (j->dgamma)
        dgamma_by_operators(ctx, (matrix[]){d, mx, r}, j->dgamma);
    reduce(ctx, RO_OP_REDUCE_RMS_GX, j->rows, j->cols, 4, (matrix[]){d, g, mx, r}, sums);
    apply(ctx, RO_OP_RMS_DX, NULL, 5, (matrix[]){d, g, mx, r, s},
          (matrix){j->dx, j->rows, j->cols});
    return RO_OK;
}

/* Backend number BACKENDS computes gradients as a device does, by its table's own function. */
static ro_ctx *context_of(int backend, int threads) {
    ro_ctx *ctx = context(backend < BACKENDS ? backends[backend] : "scalar", threads);
    if (backend < BACKENDS)
        return ctx;
    ro_table *table = (ro_table *)(uintptr_t)ro_ctx_table(ctx);
    table->rms_norm_backward = NULL;
    table->layer_norm_backward = gradients_by_operators;
    return ctx;
}

static void check_norm(int64_t rows, int64_t cols, data_class class) {
    float *const all[] = {x, dy, gamma_of, norm_before};
    for (int t = 0; t < 4; t++)
        fill(all[t], t, t == 2 ? cols : rows > 0 ? rows * cols : cols, class);
    ro_ctx *reference = context("scalar", 1);
    for (int back = 0; back < 2; back++) {
        (back ? norm_backward_by_operators : norm_by_operators)(reference, rows, cols);
        for (int b = 0; b <= BACKENDS; b++) {
            ro_ctx *ctx = context_of(b, 1 + (int)class % 3);
            if (ctx)
                (back ? check_all_on : check_norm_on)(ctx, rows, cols);
            ro_ctx_destroy(ctx);
        }
    }
    ro_ctx_destroy(reference);
}

Test(layers_norm, rms_norm_is_its_operators) {
    static const int64_t of[][2] = {{0, 5},     {1, 1},     {70, 1},   {3, 17},
                                    {129, 128}, {67, 96},   {3, 1024}, {2, 1025},
                                    {5, 3000},  {1, 70001}, {4190, 3}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            check_norm(of[i][0], of[i][1], (data_class) class);
}

/* Outputs too large for any cache are written past it (cpu/stream.h); single rows are not. */
Test(layers_norm, large_outputs_have_the_bytes_of_small_ones) {
    enum { ROWS = 4100, COLS = 1040, PIECE = 500 };
    const size_t bytes = sizeof(float) * ROWS * COLS;
    float *from = aligned_alloc(64, bytes), *y = aligned_alloc(64, bytes);
    float *small = aligned_alloc(64, bytes);
    cr_assert(from && y && small);
    for (int64_t e = 0; e < (int64_t)ROWS * COLS; e++)
        ((uint32_t *)from)[e] = case_f32(case_word(1, 0, e), DATA_NORMAL);
    fill(gamma_of, 2, COLS, DATA_NORMAL);
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b], 2);
        if (!ctx)
            continue;
        cr_assert(ro_rms_norm(ctx, ROWS, COLS, eps_of(), from, gamma_of, y, rstd) == RO_OK);
        for (int64_t r = 0; r < ROWS; r += PIECE)
            cr_assert(ro_rms_norm(ctx, ROWS - r < PIECE ? ROWS - r : PIECE, COLS, eps_of(),
                                  from + r * COLS, gamma_of, small + r * COLS,
                                  want_rstd + r) == RO_OK);
        cr_expect(memcmp(y, small, bytes) == 0 && memcmp(rstd, want_rstd, 4 * ROWS) == 0, "on %s",
                  backends[b]);
        ro_ctx_destroy(ctx);
    }
    free(from), free(y), free(small);
}

Test(layers_norm, rms_norm_without_columns_has_no_scale) {
    ro_ctx *ctx = context("scalar", 1);
    cr_assert(ro_rms_norm(ctx, 3, 0, eps_of(), NULL, NULL, NULL, rstd) == RO_OK);
    for (int r = 0; r < 3; r++)
        cr_expect(isnan(rstd[r]));
    cr_assert(ro_rms_norm_backward(ctx, 3, 0, NULL, NULL, rstd, NULL, (ro_gradient){NULL, 0},
                                   (ro_gradient){NULL, 1}) == RO_OK);
    ro_ctx_destroy(ctx);
}

Test(layers_norm, norms_that_make_no_sense_are_refused) {
    ro_ctx *ctx = context("scalar", 1);
    const ro_gradient a = {got, 0}, none = {0};
    expect_refused(ctx, ro_rms_norm(ctx, 1, RO_ROW_COLS_MAX + 1, 0, x, z, got, rstd), "cols");
    expect_refused(ctx, ro_rms_norm(ctx, -1, 2, 0, x, z, got, rstd), "rows");
    expect_refused(ctx, ro_rms_norm(ctx, 2, 2, 0, x, z, got, NULL), "`rstd`");
    expect_refused(ctx, ro_rms_norm_backward(ctx, 2, 2, x, z, rstd, NULL, a, none), "`dy`");
    expect_refused(ctx, ro_rms_norm_backward(ctx, 2, -2, x, z, rstd, dy, a, none), "cols");
    expect_refused(ctx, ro_rms_norm_backward(ctx, 2, 2, x, z, rstd, dy, (ro_gradient){dy, 1}, none),
                   "overlaps");
    expect_refused(NULL, ro_rms_norm(NULL, 2, 2, 0, x, z, got, rstd), "`ctx`");
    ro_ctx_destroy(ctx);
}
