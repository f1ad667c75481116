/* Layer norm and softmax of rows in one call against their operators run one by one: the same
 * bytes. */
#include "repops/fused.h"
#include "repops/src/backend.h"
#include "repops/tools/op_data.h"

#include <criterion/criterion.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0], LARGE = 70001, ROWS_MOST = 70 };

typedef struct {
    float y[LARGE], statistic[2][ROWS_MOST];
} results;

static float x[LARGE], gamma_of[LARGE], beta[LARGE];
static results want, got;

static void run(ro_ctx *ctx, int norm, int64_t rows, int64_t cols, results *to) {
    float *a = to->statistic[0], *b = to->statistic[1];
    memset(to, 0x5a, sizeof *to);
    cr_assert((norm ? ro_layer_norm(ctx, rows, cols, 1e-5f, x, gamma_of, beta, to->y, a, b)
                    : ro_softmax(ctx, rows, cols, x, to->y, a, b)) == RO_OK,
              "%s", ro_ctx_error(ctx));
}

static ro_ctx *context(const char *backend, int threads, int fused) {
    ro_ctx *ctx;
    if (ro_ctx_create(&(ro_options){.backend = backend, .threads = threads}, &ctx) != RO_OK)
        return NULL;
    if (!fused) { /* as where a backend has no such function */
        ro_table *table = (ro_table *)(uintptr_t)ro_ctx_table(ctx);
        table->layer_norm = table->softmax = NULL;
    }
    return ctx;
}

static void check(int norm, int64_t rows, int64_t cols, data_class class, int threads) {
    float *const all[] = {x, gamma_of, beta};
    for (int t = 0; t < 3; t++)
        for (int64_t e = 0; e < rows * cols || e < cols; e++)
            ((uint32_t *)all[t])[e] = case_f32(case_word((uint64_t)cols, t, e), class);
    ro_ctx *ctx = context("scalar", 1, 0);
    run(ctx, norm, rows, cols, &want);
    ro_ctx_destroy(ctx);
    for (int b = 0; b < BACKENDS; b++) {
        ctx = context(backends[b], threads, 1);
        if (!ctx)
            continue;
        run(ctx, norm, rows, cols, &got);
        cr_expect(memcmp(&got, &want, sizeof got) == 0, "%s of %lld x %lld on %s",
                  norm ? "norm" : "softmax", (long long)rows, (long long)cols, backends[b]);
        ro_ctx_destroy(ctx);
    }
}

static void check_all(int norm) {
    static const int64_t of[][2] = {{0, 5},    {1, 1},    {70, 1},   {3, 17},   {5, 127},  {4, 128},
                                    {67, 768}, {3, 1024}, {2, 1025}, {5, 3000}, {1, 70001}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            check(norm, of[i][0], of[i][1], (data_class) class, 1 + class % 3);
}

Test(fused_rows, layer_norm_gives_the_bytes_of_its_operators) {
    check_all(1);
}

Test(fused_rows, softmax_gives_the_bytes_of_its_operators) {
    check_all(0);
}

Test(fused_rows, no_columns_are_refused) {
    ro_ctx *ctx = context("scalar", 1, 1);
    cr_expect(ro_softmax(ctx, 1, 0, x, got.y, got.y, got.y) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "cols") != NULL);
    cr_expect(ro_layer_norm(ctx, -1, 4, 0, x, x, x, got.y, got.y, got.y) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "rows") != NULL);
    ro_ctx_destroy(ctx);
}
