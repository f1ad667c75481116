/* Linear layers in one call give the same bytes as their operators run one by one. */
#include "repops/fused.h"
#include "repops/tools/op_data.h"
#include "tests/support/by_operators.h"

#include <criterion/criterion.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum {
    BACKENDS = sizeof backends / sizeof backends[0],
    X_MOST = 1 << 17,
    W_MOST = 1 << 19,
    Y_MOST = 1 << 18
};

typedef struct {
    float z[Y_MOST], y[Y_MOST];
} results;

static float x[X_MOST], w[W_MOST], bias[2048];
static results want, got;

static void fill(float *to, int input, int64_t count, data_class class) {
    for (int64_t e = 0; e < count; e++)
        ((uint32_t *)to)[e] = case_f32(case_word((uint64_t)count, input, e), class);
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

typedef struct {
    int with_bias, with_z;
} parts;

static void run(ro_ctx *ctx, const ro_linear_layer *l, parts has, results *to) {
    memset(to, 0x5a, sizeof *to);
    cr_assert(ro_linear(ctx, l, x, w, has.with_bias ? bias : NULL, has.with_z ? to->z : NULL,
                        to->y) == RO_OK,
              "%s", ro_ctx_error(ctx));
}

static void check(const ro_linear_layer *l, data_class class, parts has, int threads) {
    fill(x, 0, l->rows * l->in, class);
    fill(w, 1, l->in * l->out, class);
    fill(bias, 2, l->out, class);
    ro_ctx *ctx = context("scalar", 1, 0);
    run(ctx, l, has, &want);
    ro_ctx_destroy(ctx);
    for (int b = 0; b < BACKENDS; b++) {
        if (!(ctx = context(backends[b], threads, 1)))
            continue;
        run(ctx, l, has, &got);
        cr_expect(memcmp(&got, &want, sizeof got) == 0,
                  "%lld x %lld x %lld%s, activation %d, fixed_bits %d on %s", (long long)l->rows,
                  (long long)l->in, (long long)l->out, l->transposed ? ", transposed" : "",
                  (int)l->activation, l->fixed_bits, backends[b]);
        ro_ctx_destroy(ctx);
    }
}

/* A shape for each kernel of products: small, chunks side by side, dots, one row or column, panels
 * with several steps of k and blocks of rows; and empty ones. */
Test(fused_linear, gives_the_bytes_of_its_operators) {
    static const int64_t of[][3] = {{0, 3, 5},     {3, 5, 0},     {3, 0, 40},    {1, 1, 1},
                                    {16, 20, 24},  {1, 700, 3},   {70, 300, 1},  {1, 768, 400},
                                    {5, 300, 70},  {17, 600, 17}, {2, 1100, 33}, {9, 513, 100},
                                    {130, 257, 65}};
    int turn = 0;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            for (int activation = 0; activation <= RO_ACTIVATION_SILU; activation++, turn++) {
                const ro_linear_layer l = {.size = sizeof l,
                                           .activation = (ro_activation)activation,
                                           .rows = of[i][0],
                                           .in = of[i][1],
                                           .out = of[i][2],
                                           .transposed = turn / 3 % 2};
                const parts has = {turn % 4 > 0, activation && turn % 3 > 0};
                check(&l, (data_class) class, has, 1 + turn % 3);
            }
}

Test(fused_linear, large_ones_give_the_bytes_of_their_operators) {
    static const int64_t of[][3] = {{600, 200, 300}, {90, 1100, 400}, {1030, 64, 200}};
    for (int i = 0; i < 3; i++)
        for (int turn = 0; turn < 4; turn++) {
            const ro_linear_layer l = {.size = sizeof l,
                                       .activation = (ro_activation)(turn + 1),
                                       .rows = of[i][0],
                                       .in = of[i][1],
                                       .out = of[i][2],
                                       .transposed = turn & 1};
            check(&l, DATA_NORMAL, (parts){turn != 2, turn != 1}, 1 + turn);
        }
}

/* Several blocks, partial groups, partial chunks, empty products. */
Test(fused_linear, fixed_products_give_the_bytes_of_their_operators) {
    static const int64_t of[][3] = {{0, 3, 5},      {3, 5, 0},      {3, 0, 40},    {1, 1, 1},
                                    {16, 20, 24},   {1, 700, 3},    {70, 300, 1},  {17, 600, 17},
                                    {130, 257, 65}, {600, 70, 300}, {70, 70, 1030}};
    int turn = 0;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        for (int class = 0; class < DATA_END; class ++)
            for (int bits = RO_FIXED_8; bits <= RO_FIXED_24; bits += 8, turn++) {
                const ro_linear_layer l = {.size = sizeof l,
                                           .activation =
                                               (ro_activation)(turn % (RO_ACTIVATION_SILU + 1)),
                                           .rows = of[i][0],
                                           .in = of[i][1],
                                           .out = of[i][2],
                                           .transposed = turn / 3 % 2,
                                           .fixed_bits = bits};
                const parts has = {turn % 4 > 0, l.activation && turn % 3 > 0};
                check(&l, (data_class) class, has, 1 + turn % 3);
            }
}

Test(fused_linear, what_makes_no_sense_is_refused) {
    ro_ctx *ctx = context("scalar", 1, 1);
    enum { SIZE = sizeof(ro_linear_layer) };
    const ro_linear_layer wrong[] = {{SIZE, 0, -1, 1, 1, 0, 0},
                                     {SIZE, 0, 1, -1, 1, 0, 0},
                                     {SIZE, 0, 1, 1, -1, 0, 0},
                                     {SIZE, 0, INT64_MAX, 2, 2, 0, 0},
                                     {SIZE, 0, 2, INT64_MAX, 0, 0, 0},
                                     {SIZE, (ro_activation)99, 1, 1, 1, 0, 0},
                                     {SIZE, 0, 1, 1, 1, 0, .fixed_bits = 9}};
    static const char *const says[] = {"linear: rows",
                                       "linear: rows",
                                       "linear: rows",
                                       "linear: rows",
                                       "linear: rows",
                                       "activation",
                                       "fixed_bits must be 0, 8, 16 or 24, got 9"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_expect(ro_linear(ctx, &wrong[i], x, w, bias, NULL, got.y) == RO_ERR_ARG, "%zu", i);
        cr_expect(strstr(ro_ctx_error(ctx), says[i]) != NULL, "%s", ro_ctx_error(ctx));
    }
    const ro_linear_layer none = {.size = SIZE, .rows = 1, .in = 1, .out = 1};
    cr_expect(ro_linear(ctx, &none, x, w, bias, got.z, got.y) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "z must be NULL") != NULL);
    ro_ctx_destroy(ctx);
}
