/* Linear layers with fixed products whose operands stay packed give the same bytes as with operands
 * packed for each call. */
#include "repops/packed.h"
#include "repops/tools/op_data.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum {
    BACKENDS = sizeof backends / sizeof backends[0],
    X_MOST = 1 << 19,
    W_MOST = 1 << 19,
    Y_MOST = 1 << 16
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

static void *packed_of(ro_ctx *ctx, const ro_linear_layer *l) {
    const size_t size = ro_linear_packed_size(ctx, l);
    cr_assert(size > 0, "%s", ro_ctx_error(ctx));
    void *packed = aligned_alloc(64, (size + 63) / 64 * 64);
    memset(packed, 0xff, size); /* NaNs, so that padding that is not written shows */
    cr_assert(ro_linear_pack(ctx, l, w, packed) == RO_OK, "%s", ro_ctx_error(ctx));
    return packed;
}

static void *packed_x_of(ro_ctx *ctx, const ro_linear_layer *l) {
    const size_t size = ro_linear_packed_x_size(ctx, l);
    cr_assert(size > 0, "%s", ro_ctx_error(ctx));
    void *packed = aligned_alloc(64, (size + 63) / 64 * 64);
    const ro_linear_operands in = {.size = sizeof in, .x = x};
    memset(packed, 0xff, size);
    cr_assert(ro_linear_pack_x(ctx, l, &in, packed) == RO_OK, "%s", ro_ctx_error(ctx));
    return packed;
}

/* Compares with x packed, and with both operands packed. */
static void compare_x(ro_ctx *ctx, const ro_linear_layer *l, int with_bias, const void *packed_w) {
    void *packed_x = packed_x_of(ctx, l);
    for (int both = 0; both < 2; both++) {
        const ro_linear_operands in = {.size = sizeof in,
                                       .w = both ? NULL : w,
                                       .packed_x = packed_x,
                                       .packed_w = both ? packed_w : NULL};
        memset(&got, 0x5a, sizeof got);
        cr_assert(ro_linear_of_packed(ctx, l, &in, with_bias ? bias : NULL,
                                      l->activation ? got.z : NULL, got.y) == RO_OK,
                  "%s", ro_ctx_error(ctx));
        cr_expect(memcmp(&got, &want, sizeof got) == 0,
                  "%lld x %lld x %lld%s, %d bits on %s, x%s packed", (long long)l->rows,
                  (long long)l->in, (long long)l->out, l->transposed ? ", transposed" : "",
                  l->fixed_bits, ro_ctx_backend(ctx), both ? " and w" : "");
    }
    free(packed_x);
}

static void compare(ro_ctx *ctx, const ro_linear_layer *l, int with_bias) {
    float *z = l->activation ? want.z : NULL;
    void *packed = packed_of(ctx, l);
    memset(&want, 0x5a, sizeof want);
    memset(&got, 0x5a, sizeof got);
    cr_assert(ro_linear(ctx, l, x, w, with_bias ? bias : NULL, z, want.y) == RO_OK);
    compare_x(ctx, l, with_bias, packed);
    /* The packed weights are a copy of w. */
    memset(w, 0x11, (size_t)(l->in * l->out) * sizeof *w);
    cr_assert(ro_linear_packed(ctx, l, x, packed, with_bias ? bias : NULL, z ? got.z : NULL,
                               got.y) == RO_OK,
              "%s", ro_ctx_error(ctx));
    cr_expect(memcmp(&got, &want, sizeof got) == 0, "%lld x %lld x %lld%s, %d bits on %s",
              (long long)l->rows, (long long)l->in, (long long)l->out,
              l->transposed ? ", transposed" : "", l->fixed_bits, ro_ctx_backend(ctx));
    free(packed);
}

/* From one row to several blocks of rows; full and partial chunks and groups. */
Test(packed_linear, gives_the_bytes_of_weights_that_are_packed_anew) {
    static const int64_t of[][3] = {{1, 1, 1},    {1, 768, 400},  {2, 300, 70}, {3, 513, 100},
                                    {5, 600, 17}, {7, 256, 1030}, {8, 20, 33},  {13, 257, 65},
                                    {70, 300, 9}, {0, 3, 5},      {3, 0, 40},   {3, 5, 0}};
    int turn = 0, ran = 0;
    for (int b = 0; b < BACKENDS; b++)
        for (int threads = 1; threads <= 2; threads++) {
            ro_ctx *ctx;
            const ro_options options = {
                .size = sizeof options, .backend = backends[b], .threads = threads};
            if (ro_ctx_create(&options, &ctx) != RO_OK)
                continue;
            for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
                for (int class = 0; class < DATA_END; class ++, turn++) {
                    const ro_linear_layer l = {.size = sizeof l,
                                               .activation = turn % 5,
                                               .rows = of[i][0],
                                               .in = of[i][1],
                                               .out = of[i][2],
                                               .transposed = turn % 2,
                                               .fixed_bits = 8 + turn / 2 % 3 * 8};
                    fill(x, 0, l.rows * l.in, class);
                    fill(w, 1, l.in * l.out, class);
                    fill(bias, 2, l.out, class);
                    compare(ctx, &l, turn % 3 > 0);
                    ran++;
                }
            ro_ctx_destroy(ctx);
        }
    cr_expect(ran > 0);
}

static void expect_refused(ro_ctx *ctx, const ro_linear_layer *l, const void *packed,
                           const char *why) {
    cr_expect(ro_linear_packed(ctx, l, x, packed, NULL, NULL, got.y) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), why), "%s", ro_ctx_error(ctx));
}

/* FP32 layers with one row more than those that read weights in place, with partial panels, several
 * chunks and several blocks of rows. The same packed weights serve layers with other numbers of
 * rows. */
Test(packed_linear, gives_the_bytes_of_fp32_layers) {
    static const int64_t of[][3] = {
        {29, 600, 100}, {70, 900, 513}, {120, 64, 520}, {49, 1300, 65}, {800, 600, 64}};
    int turn = 0, ran = 0;
    for (int b = 0; b < 2 * BACKENDS; b++) {
        ro_ctx *ctx;
        const ro_options options = {
            .size = sizeof options, .backend = backends[b / 2], .threads = 1 + b % 2};
        if (ro_ctx_create(&options, &ctx) != RO_OK)
            continue;
        for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
            for (int class = 0; class < DATA_END; class ++, turn++) {
                ro_linear_layer l = {.size = sizeof l,
                                     .activation = turn % 5,
                                     .rows = of[i][0],
                                     .in = of[i][1],
                                     .out = of[i][2],
                                     .transposed = turn % 2};
                float *z = l.activation ? want.z : NULL;
                fill(x, 0, l.rows * l.in, class);
                fill(w, 1, l.in * l.out, class);
                fill(bias, 2, l.out, class);
                void *packed = packed_of(ctx, &l);
                for (int again = 0; again < 2; again++, l.rows++) {
                    const float *added = turn % 3 > 0 ? bias : NULL;
                    memset(&want, 0x5a, sizeof want);
                    memset(&got, 0x5a, sizeof got);
                    cr_assert(ro_linear(ctx, &l, x, w, added, z, want.y) == RO_OK);
                    cr_assert(ro_linear_packed(ctx, &l, x, packed, added, z ? got.z : NULL,
                                               got.y) == RO_OK,
                              "%s", ro_ctx_error(ctx));
                    cr_expect(memcmp(&got, &want, sizeof got) == 0, "%lld x %lld x %lld%s on %s",
                              (long long)l.rows, (long long)l.in, (long long)l.out,
                              l.transposed ? ", transposed" : "", ro_ctx_backend(ctx));
                    ran++;
                }
                free(packed);
            }
        ro_ctx_destroy(ctx);
    }
    cr_expect(ran > 0);
}

Test(packed_linear, keeps_nothing_of_fp32_layers_that_gain_nothing) {
    static const int64_t of[][3] = {{28, 700, 960}, {1025, 700, 960}, {64, 64, 64}, {64, 9000, 4}};
    const ro_linear_layer l = {.size = sizeof l, .rows = 64, .in = 700, .out = 960};
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(NULL, &ctx) == RO_OK);
    cr_expect(ro_linear_packed_size(ctx, &l) <= 64 + 4 * 700 * (960 + 31));
    cr_expect(ro_linear_packed_x_size(ctx, &l) == 0);
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        ro_linear_layer other = l;
        other.rows = of[i][0], other.in = of[i][1], other.out = of[i][2];
        cr_expect(ro_linear_packed_size(ctx, &other) == 0, "%zu", i);
    }
    void *packed = packed_of(ctx, &l);
    const ro_linear_operands in = {.size = sizeof in, .x = x, .w = w, .packed_x = packed};
    ro_linear_layer few = l;
    few.rows = 1;
    expect_refused(ctx, &few, packed, "that have a size");
    cr_expect(ro_linear_pack_x(ctx, &l, &in, packed) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "x is packed of layers with fixed products"));
    cr_expect(ro_linear_of_packed(ctx, &l, &in, NULL, NULL, got.y) == RO_ERR_ARG);
    free(packed);
    ro_ctx_destroy(ctx);
}

/* A context whose first product has nothing to pack allocates no memory. */
Test(packed_linear, both_operands_may_come_from_another_context) {
    const ro_options one = {.size = sizeof one, .threads = 1};
    const ro_linear_layer l = {
        .size = sizeof l, .rows = 3, .in = 300, .out = 40, .fixed_bits = RO_FIXED_16};
    ro_ctx *ctx, *second;
    cr_assert(ro_ctx_create(&one, &ctx) == RO_OK && ro_ctx_create(&one, &second) == RO_OK);
    fill(x, 0, l.rows * l.in, DATA_NORMAL);
    fill(w, 1, l.in * l.out, DATA_NORMAL);
    cr_assert(ro_linear(ctx, &l, x, w, NULL, NULL, want.y) == RO_OK);
    void *packed_w = packed_of(ctx, &l), *packed_x = packed_x_of(ctx, &l);
    const ro_linear_operands in = {.size = sizeof in, .packed_x = packed_x, .packed_w = packed_w};
    cr_assert(ro_linear_of_packed(second, &l, &in, NULL, NULL, got.y) == RO_OK, "%s",
              ro_ctx_error(second));
    cr_expect(memcmp(want.y, got.y, (size_t)(l.rows * l.out) * sizeof(float)) == 0);
    free(packed_w);
    free(packed_x);
    ro_ctx_destroy(second);
    ro_ctx_destroy(ctx);
}

/* The transposed x holds the same numbers. Rows and columns fill several blocks. */
Test(packed_linear, reads_a_transposed_x_like_one_that_is_not) {
    enum { ROWS = 70, IN = 300, OUT = 600 };
    static float turned[ROWS * IN];
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 2}, &ctx) ==
              RO_OK);
    const ro_linear_layer l = {
        .size = sizeof l, .rows = ROWS, .in = IN, .out = OUT, .fixed_bits = RO_FIXED_16};
    fill(x, 0, ROWS * IN, DATA_NORMAL);
    fill(w, 1, IN * OUT, DATA_NORMAL);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < IN; k++)
            turned[k * ROWS + i] = x[i * IN + k];
    cr_assert(ro_linear(ctx, &l, x, w, NULL, NULL, want.y) == RO_OK);
    for (int packs = 0; packs < 2; packs++) {
        ro_linear_operands in = {.size = sizeof in, .transposed_x = 1, .x = turned, .w = w};
        void *packed = aligned_alloc(64, (ro_linear_packed_x_size(ctx, &l) + 63) / 64 * 64);
        cr_assert(ro_linear_pack_x(ctx, &l, &in, packed) == RO_OK, "%s", ro_ctx_error(ctx));
        in.packed_x = packs ? packed : NULL;
        memset(got.y, 0x5a, sizeof got.y);
        cr_assert(ro_linear_of_packed(ctx, &l, &in, NULL, NULL, got.y) == RO_OK);
        cr_expect(memcmp(want.y, got.y, ROWS * OUT * sizeof(float)) == 0);
        free(packed);
    }
    ro_ctx_destroy(ctx);
}

/* The header states the bytes for each number of whole chunks, and for each chunk of an output. */
Test(packed_linear, takes_at_most_the_memory_that_the_header_states) {
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx;
        if (ro_ctx_create(
                &(ro_options){.size = sizeof(ro_options), .backend = backends[b], .threads = 1},
                &ctx) != RO_OK)
            continue;
        for (int bits = RO_FIXED_8; bits <= RO_FIXED_24; bits += 8) {
            const ro_linear_layer l = {
                .size = sizeof l, .rows = 1, .in = 700, .out = 960, .fixed_bits = bits};
            const size_t most = strcmp(backends[b], "avx2") != 0 ? 8 : bits != RO_FIXED_24 ? 2 : 4;
            const size_t size = ro_linear_packed_size(ctx, &l);
            cr_expect(size > 0 &&
                          size <= 128 + 768 * 960 * most + 3 * 960 * (bits == RO_FIXED_8 ? 24 : 9),
                      "%s, %d bits: %zu", backends[b], bits, size);
        }
        const ro_linear_layer fp32 = {.size = sizeof fp32, .rows = 1, .in = 700, .out = 960};
        cr_expect(ro_linear_packed_size(ctx, &fp32) == 0);
        ro_ctx_destroy(ctx);
    }
}

/* Packed weights are refused as x, and so is an x with another number of rows. */
static void expect_refused_x(ro_ctx *ctx, const ro_linear_layer *l, const void *packed_w) {
    void *packed_x = packed_x_of(ctx, l);
    ro_linear_layer other = *l;
    ro_linear_operands in = {.size = sizeof in, .w = w, .packed_x = packed_w};
    cr_expect(ro_linear_of_packed(ctx, l, &in, NULL, NULL, got.y) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "packed_x must be of a layer with 2 rows"), "%s",
              ro_ctx_error(ctx));
    other.rows = 3, in.packed_x = packed_x;
    cr_expect(ro_linear_of_packed(ctx, &other, &in, NULL, NULL, got.y) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "packed_x must be of a layer with 3 rows"), "%s",
              ro_ctx_error(ctx));
    in.w = NULL;
    cr_expect(ro_linear_of_packed(ctx, l, &in, NULL, NULL, got.y) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "`w` must not be NULL"), "%s", ro_ctx_error(ctx));
    cr_expect(ro_linear_of_packed(ctx, l, NULL, NULL, NULL, got.y) == RO_ERR_ARG);
    free(packed_x);
}

Test(packed_linear, refuses_weights_of_another_layer_or_another_backend) {
    const ro_linear_layer l = {
        .size = sizeof l, .rows = 2, .in = 300, .out = 40, .fixed_bits = RO_FIXED_16};
    ro_linear_layer other;
    ro_ctx *ctx, *second;
    cr_assert(
        ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = "scalar", .threads = 1},
                      &ctx) == RO_OK);
    void *packed = packed_of(ctx, &l);
    other = l, other.in = 299;
    expect_refused(ctx, &other, packed, "packed must be of a layer with 299 in");
    other = l, other.out = 41;
    expect_refused(ctx, &other, packed, "41 out");
    other = l, other.fixed_bits = RO_FIXED_24;
    expect_refused(ctx, &other, packed, "products of 24 bits");
    other = l, other.fixed_bits = 0;
    expect_refused(ctx, &other, packed, "layers with fixed products");
    expect_refused(ctx, &l, NULL, "`packed` must not be NULL");
    expect_refused_x(ctx, &l, packed);
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &second) ==
              RO_OK);
    if (strcmp(ro_ctx_backend(second), "scalar") != 0)
        expect_refused(second, &l, packed, "of this backend");
    ro_ctx_destroy(second);
    ro_ctx_destroy(ctx);
    free(packed);
}
