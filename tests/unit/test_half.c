/* bf16 and f16, SPEC.md sections 1 and 5: every word against its value in double precision, every
 * boundary of rounding, and vectors from PyTorch, in each backend and in the reference. */
#include "repops/ref.h"
#include "repops/src/math.h"
#include "repops/op_movement.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

enum { WORDS = 65536, AROUND = 3, NUMBERS = WORDS * AROUND };

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};

typedef struct {
    int dtype, fraction, bias;
    uint16_t infinity, nan;
} format;

static const format formats[] = {{RO_BF16, 7, 127, 0x7f80, 0x7fc0},
                                 {RO_F16, 10, 15, 0x7c00, 0x7e00}};

/* Computes a word's value from the definition of the format: sign, power of two, fraction. */
static double value_of(const format *f, uint16_t word) {
    const int m = word & 0x7fff, field = m >> f->fraction, rest = m & ((1 << f->fraction) - 1);
    const double sign = word & 0x8000 ? -1 : 1;
    if (m > f->infinity)
        return NAN;
    if (m == f->infinity)
        return sign * INFINITY;
    const double one = field > 0 ? 1 : 0;
    return sign * ldexp(one + ldexp(rest, -f->fraction), (field > 0 ? field : 1) - f->bias);
}

/* Chooses the nearest word by comparing x with both neighbours, of which `below` is the smaller
 * one. */
static uint16_t nearest(const format *f, float x, uint16_t below) {
    const uint16_t above = (uint16_t)(below + 1);
    const double low = value_of(f, below);
    const double high = above == f->infinity ? ldexp(1, f->bias + 1) : value_of(f, above);
    const double down = fabs((double)x) - low, up = high - fabs((double)x);
    const uint16_t word = down < up || (down == up && below % 2 == 0) ? below : above;
    return (uint16_t)(word | (signbit(x) ? 0x8000 : 0));
}

static void cast_all(ro_ctx *ctx, int from, const void *x, int64_t n, int to, void *out) {
    char why[200] = "";
    const ro_shape shape = {from, 1, {n}};
    ro_call call = {RO_OP_CAST, 1, {to}, &shape, {0}};
    const void *const in[] = {x};
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    if (ctx) {
        cr_assert(ro_run(ctx, &call, in, out) == RO_OK, "%s", ro_ctx_error(ctx));
        return;
    }
    ro_ref_memory memory = {&call, in};
    const ro_access access = {ro_ref_load_memory, &memory};
    for (int64_t e = 0; e < n; e++) {
        const uint32_t bits = ro_ref_element(&call, e, &access);
        if (ro_dtype_size(to) == 4)
            ((uint32_t *)out)[e] = bits;
        else
            ((uint16_t *)out)[e] = (uint16_t)bits;
    }
}

/* Calls f for the reference (ctx NULL) and for every backend that this processor has. */
static void everywhere(void (*f)(ro_ctx *ctx, const char *name)) {
    f(NULL, "reference");
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        const ro_options options = {.size = sizeof options, .threads = 2, .backend = backends[i]};
        ro_ctx *ctx = NULL;
        if (ro_ctx_create(&options, &ctx) == RO_OK)
            f(ctx, backends[i]);
        ro_ctx_destroy(ctx);
    }
}

static void expect_exact(ro_ctx *ctx, const char *name) {
    static uint16_t word[WORDS];
    static float out[WORDS];
    for (int i = 0; i < WORDS; i++)
        word[i] = (uint16_t)i;
    for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
        const format *f = &formats[k];
        cast_all(ctx, f->dtype, word, WORDS, RO_F32, out);
        for (int i = 0; i < WORDS; i++) {
            const double want = value_of(f, word[i]);
            const uint32_t bits = want != want ? RO_QNAN_BITS : ro_to_bits((float)want);
            cr_assert(ro_to_bits(out[i]) == bits, "%s, %s %04x: %08x", name,
                      ro_dtype_name(f->dtype), (unsigned)i, ro_to_bits(out[i]));
        }
    }
}

Test(half, every_word_has_its_value_in_f32) {
    everywhere(expect_exact);
}

/* Checks each finite number, the middle between it and the next one, and the f32 numbers next to
 * these. */
static void expect_rounded(ro_ctx *ctx, const char *name) {
    static float x[NUMBERS];
    static uint16_t out[NUMBERS], below[NUMBERS];
    for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
        const format *f = &formats[k];
        int n = 0;
        for (int i = 0; i < 2 * f->infinity - 1; i++) {
            const uint16_t word = (uint16_t)(i / 2);
            const double next =
                word + 1 == f->infinity ? ldexp(1, f->bias + 1) : value_of(f, (uint16_t)(word + 1));
            const double at = i % 2 ? (value_of(f, word) + next) / 2 : value_of(f, word);
            for (int j = -1; j <= 1 && n < NUMBERS; j++) {
                const uint32_t bits = ro_to_bits((float)at);
                if (j < 0 && (i % 2 == 0 || bits == 0))
                    continue;
                x[n] = ro_from_bits((bits + (uint32_t)j) | (uint32_t)(i % 3 == 0) << 31);
                below[n++] = word;
            }
        }
        cast_all(ctx, RO_F32, x, n, f->dtype, out);
        for (int i = 0; i < n; i++)
            cr_assert(out[i] == nearest(f, x[i], below[i]), "%s, %s of %a: %04x", name,
                      ro_dtype_name(f->dtype), (double)x[i], out[i]);
    }
}

Test(half, every_boundary_of_rounding_is_where_it_should_be) {
    everywhere(expect_rounded);
}

static void expect_special(ro_ctx *ctx, const char *name) {
    const uint32_t bits[] = {0x7f800000, 0xff800000, 0x7f800001, 0xffc12345,
                             0x7f7fffff, 0xff7fffff, 0x80000000, 0x80000001};
    float x[8];
    memcpy(x, bits, sizeof x);
    for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
        const uint16_t inf = formats[k].infinity, nan = formats[k].nan;
        const uint16_t minus = (uint16_t)(inf | 0x8000);
        const uint16_t want[] = {inf, minus, nan, nan, inf, minus, 0x8000, 0x8000};
        uint16_t out[8];
        cast_all(ctx, RO_F32, x, 8, formats[k].dtype, out);
        cr_expect(memcmp(out, want, sizeof out) == 0, "%s", name);
    }
}

Test(half, infinities_nans_and_what_is_too_large_or_small) {
    everywhere(expect_special);
}

static void expect_by_way_of_f32(ro_ctx *ctx, const char *name) {
    static uint16_t x[WORDS], once[WORDS], twice[WORDS];
    static int32_t number[WORDS], cut[WORDS], again[WORDS];
    static float f32[WORDS];
    for (int i = 0; i < WORDS; i++)
        x[i] = (uint16_t)i, number[i] = (int32_t)((uint32_t)i * 2654435761u) >> i % 31;
    cast_all(ctx, RO_F16, x, WORDS, RO_F32, f32);
    cast_all(ctx, RO_F32, f32, WORDS, RO_BF16, twice);
    cast_all(ctx, RO_F16, x, WORDS, RO_BF16, once);
    cr_expect(memcmp(once, twice, sizeof once) == 0, "%s: f16 to bf16", name);
    cast_all(ctx, RO_F32, f32, WORDS, RO_I32, again);
    cast_all(ctx, RO_F16, x, WORDS, RO_I32, cut);
    cr_expect(memcmp(cut, again, sizeof cut) == 0, "%s: f16 to i32", name);
    cast_all(ctx, RO_I32, number, WORDS, RO_F32, f32);
    cast_all(ctx, RO_F32, f32, WORDS, RO_F16, twice);
    cast_all(ctx, RO_I32, number, WORDS, RO_F16, once);
    cr_expect(memcmp(once, twice, sizeof once) == 0, "%s: i32 to f16", name);
    cast_all(ctx, RO_F16, x, WORDS, RO_F16, once);
    cr_expect(memcmp(once, x, sizeof once) == 0, "%s: f16 to f16", name);
}

Test(half, other_types_are_two_casts) {
    everywhere(expect_by_way_of_f32);
}

static void expect_pytorch(ro_ctx *ctx, const char *name) {
    enum { LINES = 4000 };
    static uint32_t x[LINES];
    static uint16_t want[2][LINES], out[LINES];
    FILE *file = fopen("tests/vectors/torch/halves.txt", "r");
    int n = 0;
    cr_assert(file != NULL);
    while (n < LINES && fscanf(file, "%x %hx %hx", &x[n], &want[0][n], &want[1][n]) == 3)
        n++;
    fclose(file);
    cr_assert(n > 1000 && n < LINES);
    for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
        cast_all(ctx, RO_F32, x, n, formats[k].dtype, out);
        for (int i = 0; i < n; i++)
            cr_assert(out[i] == want[k][i], "%s, %s of %08x: %04x", name,
                      ro_dtype_name(formats[k].dtype), x[i], out[i]);
    }
}

Test(half, rounds_as_pytorch_does) {
    everywhere(expect_pytorch);
}
