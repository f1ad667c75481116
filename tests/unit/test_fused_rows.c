/* Layer norm and softmax of rows, forward and backward, and SGD, each in one call, give the same
 * bytes as their operators run one by one. */
#include "repops/fused.h"
#include "repops/tools/op_data.h"
#include "tests/support/by_operators.h"

#include <criterion/criterion.h>
#include <math.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0], LARGE = 70001, ROWS_MOST = 70 };

typedef struct {
    float y[LARGE], statistic[2][ROWS_MOST];
} results;

static float x[LARGE], gamma_of[LARGE], beta[LARGE];
static results want, got;

enum { NORM, SOFTMAX, LOG_SOFTMAX, KINDS };
static const char *const names[KINDS] = {"norm", "softmax", "log softmax"};

static ro_status run_kind(ro_ctx *ctx, int kind, int64_t rows, int64_t cols, results *to) {
    float *a = to->statistic[0], *b = to->statistic[1];
    if (kind == NORM)
        return ro_layer_norm(ctx, rows, cols, 1e-5f, x, gamma_of, beta, to->y, a, b);
    return (kind == SOFTMAX ? ro_softmax : ro_log_softmax)(ctx, rows, cols, x, to->y, a, b);
}

static void run(ro_ctx *ctx, int kind, int64_t rows, int64_t cols, results *to) {
    memset(to, 0x5a, sizeof *to);
    cr_assert(run_kind(ctx, kind, rows, cols, to) == RO_OK, "%s", ro_ctx_error(ctx));
}

static ro_ctx *context(const char *backend, int threads, int fused) {
    ro_ctx *ctx;
    if (ro_ctx_create(
            &(ro_options){.size = sizeof(ro_options), .backend = backend, .threads = threads},
            &ctx) != RO_OK)
        return NULL;
    if (!fused)
        by_operators((ro_table *)(uintptr_t)ro_ctx_table(ctx));
    return ctx;
}

static void check(int kind, int64_t rows, int64_t cols, data_class class, int threads) {
    float *const all[] = {x, gamma_of, beta};
    for (int t = 0; t < 3; t++)
        for (int64_t e = 0; e < rows * cols || e < cols; e++)
            ((uint32_t *)all[t])[e] = case_f32(case_word((uint64_t)cols, t, e), class);
    ro_ctx *ctx = context("scalar", 1, 0);
    run(ctx, kind, rows, cols, &want);
    ro_ctx_destroy(ctx);
    for (int b = 0; b < BACKENDS; b++) {
        ctx = context(backends[b], threads, 1);
        if (!ctx)
            continue;
        run(ctx, kind, rows, cols, &got);
        cr_expect(memcmp(&got, &want, sizeof got) == 0, "%s of %lld x %lld on %s", names[kind],
                  (long long)rows, (long long)cols, backends[b]);
        ro_ctx_destroy(ctx);
    }
}

static void check_all(int kind) {
    static const int64_t of[][2] = {{0, 5},    {1, 1},    {70, 1},   {3, 17},   {5, 127},  {4, 128},
                                    {67, 768}, {3, 1024}, {2, 1025}, {5, 3000}, {1, 70001}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            check(kind, of[i][0], of[i][1], (data_class) class, 1 + class % 3);
}

Test(fused_rows, layer_norm_gives_the_bytes_of_its_operators) {
    check_all(NORM);
}

Test(fused_rows, softmax_gives_the_bytes_of_its_operators) {
    check_all(SOFTMAX);
}

Test(fused_rows, log_softmax_gives_the_bytes_of_its_operators) {
    check_all(LOG_SOFTMAX);
}

/* If the variance overflows, normalising with it would give a row of beta, which looks like a
 * result. */
Test(fused_rows, layer_norm_of_a_row_that_overflows_is_nan_and_others_are_not) {
    enum { ROWS = 3, COLS = 4 };
    static const float huge[ROWS * COLS] = {1,     -2,     3,     -4,     1e19f, -2e19f,
                                            3e19f, -4e19f, 1e18f, -2e18f, 3e18f, -4e18f};
    static const float ones[COLS] = {1, 1, 1, 1}, zeros[COLS];
    for (int b = 0; b < BACKENDS; b++) {
        float y[ROWS * COLS], m[ROWS], r[ROWS], dx[ROWS * COLS], dgamma[COLS], dbeta[COLS];
        ro_ctx *ctx = context(backends[b], 1, 1);
        if (!ctx)
            continue;
        cr_assert(ro_layer_norm(ctx, ROWS, COLS, 1e-5f, huge, ones, zeros, y, m, r) == RO_OK);
        cr_assert(ro_layer_norm_backward(ctx, ROWS, COLS, huge, ones, m, r, huge, dx, dgamma,
                                         dbeta) == RO_OK);
        for (int e = 0; e < ROWS * COLS; e++) {
            cr_expect(isnan(y[e]) == (e / COLS == 1), "%s, y[%d]", backends[b], e);
            cr_expect(isnan(dx[e]) == (e / COLS == 1), "%s, dx[%d]", backends[b], e);
        }
        for (int c = 0; c < COLS; c++) {
            cr_expect(fabsf(y[c] - y[2 * COLS + c]) < 1e-5f);
            cr_expect(isnan(dgamma[c]) && !isnan(dbeta[c]));
        }
        ro_ctx_destroy(ctx);
    }
}

/* ---- outputs too large for any cache, which are written past them (cpu/stream.h) ---- */

enum { STREAM_ROWS = 4100, STREAM_COLS = 1040 };

static float *large(uint32_t seed) {
    const size_t count = (size_t)STREAM_ROWS * STREAM_COLS;
    float *a = aligned_alloc(64, count * sizeof *a);
    cr_assert(a != NULL);
    for (size_t e = 0; e < count && seed; e++)
        ((uint32_t *)a)[e] = case_f32(case_word(seed, 0, (int64_t)e), DATA_NORMAL);
    return a;
}

static void run_large(ro_ctx *ctx, int kind, const float *from, const float *grad, float *y) {
    static float a[STREAM_ROWS], b[STREAM_ROWS], dgamma[STREAM_COLS], dbeta[STREAM_COLS];
    const int64_t rows = STREAM_ROWS, cols = STREAM_COLS;
    ro_status status = RO_OK;
    switch (kind) {
    case 0: status = ro_layer_norm(ctx, rows, cols, 1e-5f, from, grad, grad, y, a, b); break;
    case 1: status = ro_softmax(ctx, rows, cols, from, y, a, b); break;
    case 2: status = ro_log_softmax(ctx, rows, cols, from, y, a, b); break;
    case 3: status = ro_softmax_backward(ctx, rows, cols, from, grad, y); break;
    case 4: status = ro_log_softmax_backward(ctx, rows, cols, from, grad, y); break;
    case 5:
        status = ro_layer_norm_backward(ctx, rows, cols, from, grad, a, b, grad, y, dgamma, dbeta);
        break;
    }
    cr_assert(status == RO_OK, "%s", ro_ctx_error(ctx));
}

Test(fused_rows, large_outputs_have_the_bytes_of_their_operators) {
    const size_t size = (size_t)STREAM_ROWS * STREAM_COLS * sizeof(float);
    float *from = large(1), *grad = large(2), *out = large(0), *expected = large(0);
    for (int kind = 0; kind < 6; kind++) {
        ro_ctx *ctx = context(NULL, 2, 0);
        run_large(ctx, kind, from, grad, expected);
        ro_ctx_destroy(ctx);
        for (int b = 0; b < BACKENDS; b++) {
            if (!(ctx = context(backends[b], 2, 1)))
                continue;
            run_large(ctx, kind, from, grad, out);
            cr_expect(memcmp(out, expected, size) == 0, "kind %d on %s", kind, backends[b]);
            ro_ctx_destroy(ctx);
        }
    }
    free(from), free(grad), free(out), free(expected);
}

/* ---- backward ---- */

enum { APART, OVER_DY, OVER_X, PLACES };

typedef struct {
    float dx[LARGE], dgamma[LARGE], dbeta[LARGE];
} gradients;

static float dy[LARGE], mean[ROWS_MOST], rstd[ROWS_MOST], copy[LARGE];
static gradients want_back, got_back;

static ro_status run_back(ro_ctx *ctx, int kind, int64_t rows, int64_t cols, int place,
                          gradients *to) {
    const float *from = place == OVER_X ? to->dx : x, *grad = place == OVER_DY ? to->dx : dy;
    memset(to, 0x5a, sizeof *to);
    if (place != APART)
        memcpy(to->dx, place == OVER_X ? x : dy, (size_t)(rows * cols) * sizeof *x);
    if (kind == SOFTMAX)
        return ro_softmax_backward(ctx, rows, cols, from, grad, to->dx);
    if (kind == LOG_SOFTMAX)
        return ro_log_softmax_backward(ctx, rows, cols, from, grad, to->dx);
    return ro_layer_norm_backward(ctx, rows, cols, from, gamma_of, mean, rstd, grad, to->dx,
                                  to->dgamma, to->dbeta);
}

static void check_back(int kind, int64_t rows, int64_t cols, data_class class, int threads) {
    float *const all[] = {x, gamma_of, dy};
    for (int t = 0; t < 3; t++)
        for (int64_t e = 0; e < rows * cols || e < cols; e++)
            ((uint32_t *)all[t])[e] = case_f32(case_word((uint64_t)cols, t, e), class);
    for (int64_t r = 0; r < rows; r++) {
        ((uint32_t *)mean)[r] = case_f32(case_word(7, 1, r), class);
        ((uint32_t *)rstd)[r] = case_f32(case_word(7, 2, r), class);
    }
    ro_ctx *ctx = context("scalar", 1, 0);
    for (int place = 0; place < PLACES; place++) {
        gradients *to = place ? &got_back : &want_back;
        cr_assert(run_back(ctx, kind, rows, cols, place, to) == RO_OK, "%s", ro_ctx_error(ctx));
        cr_expect(memcmp(to, &want_back, sizeof *to) == 0, "operators in place");
    }
    ro_ctx_destroy(ctx);
    for (int b = 0; b < BACKENDS * PLACES; b++) {
        ctx = context(backends[b / PLACES], threads, 1);
        if (!ctx)
            continue;
        cr_assert(run_back(ctx, kind, rows, cols, b % PLACES, &got_back) == RO_OK);
        cr_expect(memcmp(&got_back, &want_back, sizeof got_back) == 0,
                  "kind %d of %lld x %lld on %s, place %d", kind, (long long)rows, (long long)cols,
                  backends[b / PLACES], b % PLACES);
        ro_ctx_destroy(ctx);
    }
}

Test(fused_rows, backward_gives_the_bytes_of_its_operators) {
    static const int64_t of[][2] = {{0, 5},   {1, 1},    {70, 1},   {3, 17},   {64, 127}, {65, 128},
                                    {5, 768}, {3, 1024}, {2, 1025}, {5, 3000}, {1, 70001}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            check_back((int)(i + (size_t) class) % KINDS, of[i][0], of[i][1], (data_class) class,
                       1 + class % 3);
    for (int kind = 0; kind < KINDS; kind++)
        check_back(kind, 70, 1000, DATA_RARE, 3);
}

/* ---- SGD ---- */

static void check_sgd(int64_t count, data_class class, int nesterov) {
    static const float clip = 0.7f, rate = 0.1f;
    const ro_sgd_step s = {.size = sizeof s,
                           .nesterov = nesterov,
                           .count = count,
                           .momentum = 0.9f,
                           .decay = 5e-4f,
                           .clip = &clip,
                           .rate = &rate};
    float *const all[] = {x, gamma_of, dy};
    for (int t = 0; t < 3; t++)
        for (int64_t e = 0; e < count; e++)
            ((uint32_t *)all[t])[e] = case_f32(case_word((uint64_t)count, t, e), class);
    memset(&want_back, 0x5a, sizeof want_back);
    ro_ctx *ctx = context("scalar", 1, 0);
    cr_assert(ro_sgd(ctx, &s, x, gamma_of, dy, want_back.dx, want_back.dgamma) == RO_OK);
    ro_ctx_destroy(ctx);
    for (int b = 0; b < 2 * BACKENDS; b++) {
        ctx = context(backends[b / 2], 1 + (int)(count % 3), 1);
        if (!ctx)
            continue;
        memset(&got_back, 0x5a, sizeof got_back);
        memcpy(got_back.dx, x, (size_t)count * sizeof *x);
        memcpy(got_back.dgamma, gamma_of, (size_t)count * sizeof *x);
        cr_assert(ro_sgd(ctx, &s, b & 1 ? got_back.dx : x, b & 1 ? got_back.dgamma : gamma_of, dy,
                         got_back.dx, got_back.dgamma) == RO_OK);
        cr_expect(memcmp(&got_back, &want_back, sizeof got_back) == 0, "sgd of %lld on %s",
                  (long long)count, backends[b / 2]);
        ro_ctx_destroy(ctx);
    }
}

Test(fused_rows, sgd_gives_the_bytes_of_its_operators) {
    static const int64_t counts[] = {0, 1, 15, 16, 17, 1000, LARGE};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            check_sgd(counts[i], (data_class) class, (class + (int)i) % 2);
}

Test(fused_rows, impossible_sizes_are_refused) {
    ro_ctx *ctx = context("scalar", 1, 1);
    cr_expect(ro_softmax(ctx, 1, -1, x, got.y, got.y, got.y) == RO_ERR_ARG);
    cr_expect(ro_log_softmax(ctx, 1, RO_ROW_COLS_MAX + 1, x, got.y, got.y, got.y) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "log_softmax: cols") != NULL);
    cr_expect(strstr(ro_ctx_error(ctx), "cols") != NULL);
    cr_expect(ro_layer_norm(ctx, -1, 4, 0, x, x, x, got.y, got.y, got.y) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "rows") != NULL);
    cr_expect(ro_softmax_backward(ctx, 1, -1, x, dy, copy) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "softmax_backward: cols") != NULL);
    cr_expect(ro_log_softmax_backward(ctx, -1, 1, x, dy, copy) == RO_ERR_ARG);
    cr_expect(ro_layer_norm_backward(ctx, INT64_MAX, 4, x, x, x, x, x, copy, copy, copy) ==
              RO_ERR_ARG);
    cr_expect(ro_softmax(ctx, RO_MAX_NUMEL + 1, 0, x, got.y, got.y, got.y) == RO_ERR_ARG);
    cr_expect(ro_sgd(ctx, &(ro_sgd_step){.size = sizeof(ro_sgd_step), .count = -1}, x, x, x, copy,
                     copy) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "count") != NULL);
    ro_ctx_destroy(ctx);
}
