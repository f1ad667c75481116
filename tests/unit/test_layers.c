/* The functions of repops/layers.h against SPEC.md: sums written out as sections 3.2 and 3.3 say,
 * and operators run one by one. */
#include "repops/layers.h"
#include "repops/tools/op_data.h"

#include <criterion/criterion.h>
#include <math.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0], MOST = 1 << 21, NOT_WRITTEN = 0x5a };

static float x[MOST], dy[MOST], want[MOST], got[MOST], other[MOST], z[MOST];

static void fill(float *to, int input, int64_t count, data_class class) {
    cr_assert(count <= MOST);
    for (int64_t e = 0; e < count; e++)
        ((uint32_t *)to)[e] = case_f32(case_word((uint64_t)count, input, e), class);
}

static ro_ctx *context(const char *backend, int threads) {
    ro_ctx *ctx;
    const ro_options options = {.backend = backend, .threads = threads};
    return ro_ctx_create(&options, &ctx) == RO_OK ? ctx : NULL;
}

static float canon(float v) {
    const uint32_t bits = RO_QNAN_BITS;
    if (v != v)
        memcpy(&v, &bits, 4);
    return v;
}

static void expect_bytes(const float *a, const float *b, int64_t count, const char *what,
                         int64_t rows, int64_t cols, const char *backend) {
    cr_expect(memcmp(a, b, (size_t)count * sizeof *a) == 0, "%s of %lld x %lld on %s", what,
              (long long)rows, (long long)cols, backend);
}

/* ---- sums as SPEC.md has them ---- */

static float block_of(const float *v, int64_t n) {
    float lane[RO_LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        lane[i % RO_LANES] += v[i];
    for (int w = RO_LANES / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++)
            lane[i] += lane[i + w];
    return canon(lane[0]);
}

/* Section 3.2, all levels; n numbers, which are overwritten. */
static float row_sum(float *v, int64_t n) {
    do {
        int64_t blocks = 0;
        for (int64_t at = 0; at < n || at == 0; at += RO_REDUCE_BLOCK)
            v[blocks++] = block_of(v + at, n - at < RO_REDUCE_BLOCK ? n - at : RO_REDUCE_BLOCK);
        n = blocks;
    } while (n > 1);
    return v[0];
}

/* Section 3.3, all levels, of one column. */
static float column_sum(float *v, int64_t n) {
    do {
        int64_t groups = 0;
        for (int64_t at = 0; at < n || at == 0; at += RO_COLUMN_GROUP) {
            float acc = 0;
            for (int64_t i = at; i < n && i < at + RO_COLUMN_GROUP; i++)
                acc += v[i];
            v[groups++] = canon(acc);
        }
        n = groups;
    } while (n > 1);
    return v[0];
}

static void sum_of_rows(int64_t rows, int64_t cols, const float *of, float *to) {
    for (int64_t r = 0; r < rows; r++) {
        memcpy(other, of + r * cols, (size_t)cols * 4);
        to[r] = row_sum(other, cols);
    }
}

static void sum_of_columns(int64_t rows, int64_t cols, const float *of, float *to) {
    for (int64_t c = 0; c < cols; c++) {
        for (int64_t r = 0; r < rows; r++)
            other[r] = of[r * cols + c];
        to[c] = column_sum(other, rows);
    }
}

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

/* ---- operators one by one ---- */

typedef struct {
    const float *data;
    int64_t rows, cols;
} matrix;

static void apply(ro_ctx *ctx, int op, const int64_t *attr, int count, const matrix *in,
                  matrix out) {
    ro_shape shape[8];
    const void *data[8];
    char why[256];
    ro_call call = {op, count, {0}, shape, {RO_F32, 2, {out.rows, out.cols}}};
    for (int i = 0; i < ro_op_describe(op)->attr_count; i++)
        call.attr[i] = attr[i];
    for (int i = 0; i < count; i++) {
        shape[i] = (ro_shape){RO_F32, 2, {in[i].rows, in[i].cols}};
        data[i] = in[i].data;
    }
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    cr_assert(ro_run(ctx, &call, data, (void *)(uintptr_t)out.data) == RO_OK);
}

static void matmul(ro_ctx *ctx, int trans, matrix a, matrix b, matrix c) {
    const int64_t attr[RO_MAX_ATTRS] = {[RO_MATMUL_TRANS] = trans,
                                        [RO_MATMUL_ALPHA] = ro_attr_f32(1),
                                        [RO_MATMUL_CHUNK] = RO_DOT_CHUNK};
    apply(ctx, RO_OP_MATMUL, attr, 2, (matrix[]){a, b}, c);
}

/* `to` becomes before + to where a gradient is added. */
static void added(float *to, const float *before, int64_t count, int add) {
    for (int64_t e = 0; add && e < count; e++)
        to[e] = canon(before[e] + to[e]);
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
    matmul(ctx, t ? 0 : 2, dz, w, (matrix){g->dx, l->rows, l->in});
    matmul(ctx, 1, t ? dz : mx, t ? mx : dz, (matrix){g->dw, w.rows, w.cols});
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
                  "%lld x %lld x %lld, activation %d, turn %d on %s", (long long)l->rows,
                  (long long)l->in, (long long)l->out, (int)l->activation, turn, backends[b]);
        ro_ctx_destroy(ctx);
    }
}

Test(layers, gradients_of_linear_layers_are_those_of_their_operators) {
    static const int64_t of[][3] = {{0, 3, 5},    {3, 5, 0},     {3, 0, 40},   {1, 1, 1},
                                    {16, 20, 24}, {1, 700, 3},   {300, 70, 1}, {65, 5, 17},
                                    {600, 17, 9}, {130, 257, 65}};
    int turn = 0;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            for (int activation = 0; activation <= RO_ACTIVATION_SILU; activation++, turn++) {
                const ro_linear_layer l = {of[i][0], of[i][1], of[i][2], turn / 3 % 2,
                                           (ro_activation)activation};
                check_linear(&l, (data_class) class, turn % 8);
            }
}

Test(layers, a_gradient_of_a_linear_layer_that_is_not_wanted_is_not_written) {
    const ro_linear_layer l = {5, 6, 7, 0, RO_ACTIVATION_NONE};
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

static void expect_refused(const ro_ctx *ctx, ro_status status, const char *words) {
    cr_expect(status == RO_ERR_ARG && strstr(ro_ctx_error(ctx), words), "%s, expected %s",
              ro_ctx_error(ctx), words);
}

Test(layers, linear_gradients_that_make_no_sense_are_refused) {
    ro_ctx *ctx = context("scalar", 1);
    const ro_gradient a = {got, 0}, none = {0}, onto = {dy, 0};
    const ro_linear_layer l = {2, 3, 4, 0, RO_ACTIVATION_NONE},
                          relu = {2, 3, 4, 0, RO_ACTIVATION_RELU};
    const ro_linear_layer wrong[] = {
        {-1, 1, 1}, {INT64_MAX, 2, 2}, {1, 1, 1, 0, (ro_activation)99}};
    for (int i = 0; i < 3; i++)
        expect_refused(ctx, ro_linear_backward(ctx, &wrong[i], x, z, NULL, dy, a, none, none),
                       i < 2 ? "rows * in" : "activation");
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

/* ---- RMS norm ---- */

enum { NORM_ROWS = 300, EPS_BITS = 0x3727c5ac /* 1e-5 */ };

static float gamma_of[MOST], rstd[NORM_ROWS], want_rstd[NORM_ROWS], sums[NORM_ROWS], parts[MOST];
static float want_dgamma[MOST], got_dgamma[MOST], norm_before[MOST];

/* R of an operator with `count` inputs, the levels written out. */
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

static void norm_backward_by_operators(ro_ctx *ctx, int64_t rows, int64_t cols, int add) {
    const matrix mx = {x, rows, cols}, d = {dy, rows, cols}, g = {gamma_of, 1, cols};
    const matrix r = {want_rstd, rows, 1}, s = {sums, rows, 1};
    const int64_t groups = rows ? (rows + RO_COLUMN_GROUP - 1) / RO_COLUMN_GROUP : 1;
    reduce(ctx, RO_OP_REDUCE_RMS_GX, rows, cols, 4, (matrix[]){d, g, mx, r}, sums);
    apply(ctx, RO_OP_RMS_DX, NULL, 5, (matrix[]){d, g, mx, r, s}, (matrix){want, rows, cols});
    apply(ctx, RO_OP_RMS_DGAMMA, &cols, 3, (matrix[]){d, mx, r}, (matrix){parts, groups, cols});
    if (groups > 1)
        sum_of_columns(groups, cols, parts, want_dgamma);
    else
        memcpy(want_dgamma, parts, (size_t)cols * 4);
    added(want, norm_before, rows * cols, add);
    added(want_dgamma, norm_before, cols, add);
}

static float eps_of(void) {
    return ro_attr_to_f32(EPS_BITS);
}

static void check_norm_on(ro_ctx *ctx, int64_t rows, int64_t cols) {
    cr_assert(ro_rms_norm(ctx, rows, cols, eps_of(), x, gamma_of, got, rstd) == RO_OK, "%s",
              ro_ctx_error(ctx));
    expect_bytes(got, want, rows * cols, "rms_norm", rows, cols, ro_ctx_backend(ctx));
    expect_bytes(rstd, want_rstd, rows, "rstd", rows, cols, ro_ctx_backend(ctx));
}

static void check_norm_backward_on(ro_ctx *ctx, int64_t rows, int64_t cols, int add) {
    const int64_t n = rows * cols;
    memcpy(got, norm_before, (size_t)n * 4);
    memcpy(got_dgamma, norm_before, (size_t)cols * 4);
    cr_assert(ro_rms_norm_backward(ctx, rows, cols, x, gamma_of, want_rstd, dy,
                                   (ro_gradient){got, add},
                                   (ro_gradient){got_dgamma, add}) == RO_OK,
              "%s", ro_ctx_error(ctx));
    expect_bytes(got, want, n, "dx", rows, cols, ro_ctx_backend(ctx));
    expect_bytes(got_dgamma, want_dgamma, cols, "dgamma", rows, cols, ro_ctx_backend(ctx));
}

static void check_norm(int64_t rows, int64_t cols, data_class class) {
    float *const all[] = {x, dy, gamma_of, norm_before};
    for (int t = 0; t < 4; t++)
        fill(all[t], t, t == 2 ? cols : rows > 0 ? rows * cols : cols, class);
    ro_ctx *reference = context("scalar", 1);
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b], 1 + (int)class % 3);
        if (!ctx)
            continue;
        norm_by_operators(reference, rows, cols);
        check_norm_on(ctx, rows, cols);
        for (int add = 0; add < 2; add++) {
            norm_backward_by_operators(reference, rows, cols, add);
            check_norm_backward_on(ctx, rows, cols, add);
        }
        ro_ctx_destroy(ctx);
    }
    ro_ctx_destroy(reference);
}

Test(layers, rms_norm_is_its_operators) {
    static const int64_t of[][2] = {{0, 5},   {1, 1},    {70, 1},   {3, 17},   {129, 128},
                                    {67, 96}, {3, 1024}, {2, 1025}, {5, 3000}, {1, 70001}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            check_norm(of[i][0], of[i][1], (data_class) class);
}

Test(layers, rms_norm_without_columns_has_no_scale) {
    ro_ctx *ctx = context("scalar", 1);
    cr_assert(ro_rms_norm(ctx, 3, 0, eps_of(), NULL, NULL, NULL, rstd) == RO_OK);
    for (int r = 0; r < 3; r++)
        cr_expect(isnan(rstd[r]));
    cr_assert(ro_rms_norm_backward(ctx, 3, 0, NULL, NULL, rstd, NULL, (ro_gradient){NULL, 0},
                                   (ro_gradient){NULL, 1}) == RO_OK);
    ro_ctx_destroy(ctx);
}

Test(layers, rms_norm_may_work_in_place) {
    enum { ROWS = 70, COLS = 33, N = ROWS * COLS };
    const ro_gradient none = {0};
    ro_ctx *ctx = context("scalar", 1);
    fill(x, 0, N, DATA_NORMAL), fill(dy, 1, N, DATA_NORMAL), fill(gamma_of, 2, COLS, DATA_NORMAL);
    norm_by_operators(ctx, ROWS, COLS);
    memcpy(other, x, sizeof(float[N]));
    cr_assert(ro_rms_norm(ctx, ROWS, COLS, eps_of(), other, gamma_of, other, rstd) == RO_OK);
    cr_expect(memcmp(other, want, sizeof(float[N])) == 0);
    norm_backward_by_operators(ctx, ROWS, COLS, 0);
    memcpy(other, dy, sizeof(float[N]));
    cr_assert(ro_rms_norm_backward(ctx, ROWS, COLS, x, gamma_of, rstd, other,
                                   (ro_gradient){other, 0}, (ro_gradient){got, 0}) == RO_OK);
    cr_expect(memcmp(other, want, sizeof(float[N])) == 0);
    cr_expect(memcmp(got, want_dgamma, sizeof(float[COLS])) == 0);
    expect_refused(
        ctx,
        ro_rms_norm_backward(ctx, ROWS, COLS, x, gamma_of, rstd, dy, (ro_gradient){dy, 1}, none),
        "overlaps");
    ro_ctx_destroy(ctx);
}

Test(layers, sums_and_norms_that_make_no_sense_are_refused) {
    ro_ctx *ctx = context("scalar", 1);
    const ro_gradient a = {got, 0}, none = {0};
    expect_refused(ctx, ro_sum(ctx, -1, 2, x, got), "sum: rows * cols");
    expect_refused(ctx, ro_sum(ctx, INT64_MAX, INT64_MAX, x, got), "sum: rows * cols");
    expect_refused(ctx, ro_sum(ctx, 2, 2, NULL, got), "`x`");
    expect_refused(ctx, ro_sum(ctx, 2, 2, x, x), "overlaps");
    expect_refused(ctx, ro_sum_rows(ctx, 2, -2, x, a), "sum_rows: rows * cols");
    expect_refused(ctx, ro_sum_rows(ctx, 2, 2, x, none), "`y`");
    expect_refused(NULL, ro_sum(NULL, 2, 2, x, got), "`ctx`");
    expect_refused(ctx, ro_rms_norm(ctx, 1, RO_ROW_COLS_MAX + 1, 0, x, z, got, rstd), "cols");
    expect_refused(ctx, ro_rms_norm(ctx, -1, 2, 0, x, z, got, rstd), "rows");
    expect_refused(ctx, ro_rms_norm(ctx, 2, 2, 0, x, z, got, NULL), "`rstd`");
    expect_refused(ctx, ro_rms_norm_backward(ctx, 2, 2, x, z, rstd, NULL, a, none), "`dy`");
    expect_refused(ctx, ro_rms_norm_backward(ctx, 2, -2, x, z, rstd, dy, a, none), "cols");
    expect_refused(NULL, ro_rms_norm(NULL, 2, 2, 0, x, z, got, rstd), "`ctx`");
    ro_ctx_destroy(ctx);
}
