/* Elementary functions, fma in software, max, Philox and the permutation: repops/SPEC.md sections
 * 2, 3.2 and 10. tests/exhaustive/math.c measures the functions over all their inputs. */
#include "repops/src/math.h"
#include "repops/src/philox.h"
#include "repops/tools/functions.h"
#include "verde/commit/commit.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

/* SplitMix64 (Steele et al., 2014). */
static uint64_t random_word(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* ---- elementary functions ---- */

static float exp_of(float x) {
    return ro_exp(x);
}
static float log_of(float x) {
    return ro_log(x);
}
static float tanh_of(float x) {
    return ro_tanh(x);
}

static float erf_of(float x) {
    return ro_erf(x);
}
static float rsqrt_of(float x) {
    return ro_rsqrt(x);
}
static float sigmoid_of(float x) {
    return ro_sigmoid(x);
}

static double exact_rsqrt(double x) {
    return 1 / sqrt(x);
}
static double exact_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

typedef struct {
    const char *name;
    float (*f)(float);
    double (*reference)(double);
    double bound; /* limit in ulp, SPEC.md section 2 */
} function;

static const function functions[] = {
    {"exp", exp_of, exp, 0.99},
    {"log", log_of, log, 0.96},
    {"tanh", tanh_of, tanh, 1.35},
    {"erf", erf_of, erf, 1.13},
    {"rsqrt", rsqrt_of, exact_rsqrt, 1.5},
    {"sigmoid", sigmoid_of, exact_sigmoid, 2.41},
};
enum { EXP, LOG, TANH, ERF, RSQRT, SIGMOID, FUNCTIONS };

static const struct {
    int function;
    uint32_t x, want;
} special[] = {
    {EXP, 0x00000000, 0x3f800000}, /* +0 */
    {EXP, 0x80000000, 0x3f800000}, /* -0 */
    {EXP, 0x00000001, 0x3f800000}, /* the smallest subnormal */
    {EXP, 0x807fffff, 0x3f800000}, /* the largest negative subnormal */
    {EXP, 0x7f800000, 0x7f800000}, /* inf */
    {EXP, 0xff800000, 0x00000000}, /* -inf */
    {EXP, 0x7fc00000, 0x7fc00000}, /* NaN */
    {EXP, 0xffc12345, 0x7fc00000}, /* NaN with sign and payload */
    {EXP, 0x7f800001, 0x7fc00000}, /* signalling NaN */
    {EXP, 0x42b17217, 0x7f7fff84}, /* the last finite result */
    {EXP, 0x42b17218, 0x7f800000}, /* overflow */
    {EXP, 0x7f7fffff, 0x7f800000}, /* the largest number */
    {EXP, 0xc2aeac4f, 0x00800026}, /* the last normal result */
    {EXP, 0xc2aeac50, 0x007fffe6}, /* the first subnormal one */
    {EXP, 0xc2cff1b4, 0x00000001}, /* the last that is not 0 */
    {EXP, 0xc2cff1b5, 0x00000000}, /* underflow */
    {EXP, 0xff7fffff, 0x00000000}, /* the smallest number */
    {LOG, 0x00000000, 0xff800000},     {LOG, 0x80000000, 0xff800000},     /* zeros */
    {LOG, 0x3f800000, 0x00000000},                                        /* 1 */
    {LOG, 0x7f800000, 0x7f800000},     {LOG, 0xff800000, 0x7fc00000},     /* infinities */
    {LOG, 0x7fc00000, 0x7fc00000},     {LOG, 0xff812345, 0x7fc00000},     /* NaNs */
    {LOG, 0x80000001, 0x7fc00000},     {LOG, 0xbf800000, 0x7fc00000},     /* negative numbers */
    {LOG, 0x00000001, 0xc2ce8ed0},     {LOG, 0x007fffff, 0xc2aeac50},     /* subnormals */
    {LOG, 0x00800000, 0xc2aeac50},     {LOG, 0x7f7fffff, 0x42b17218},     /* normal ends */
    {TANH, 0x00000000, 0x00000000},    {TANH, 0x80000000, 0x80000000},    /* zeros */
    {TANH, 0x00000001, 0x00000001},    {TANH, 0x807fffff, 0x807fffff},    /* subnormals */
    {TANH, 0x7f800000, 0x3f800000},    {TANH, 0xff800000, 0xbf800000},    /* infinities */
    {TANH, 0x7f7fffff, 0x3f800000},    {TANH, 0xc1200000, 0xbf800000},    /* large numbers */
    {TANH, 0x7fc00000, 0x7fc00000},    {TANH, 0xffffffff, 0x7fc00000},    /* NaNs */
    {ERF, 0x00000000, 0x00000000},     {ERF, 0x80000000, 0x80000000},     /* zeros */
    {ERF, 0x00000001, 0x00000001},     {ERF, 0x807fffff, 0x80906eb9},     /* subnormals */
    {ERF, 0x7f800000, 0x3f800000},     {ERF, 0xff800000, 0xbf800000},     /* infinities */
    {ERF, 0x7f7fffff, 0x3f800000},     {ERF, 0xc0800000, 0xbf800000},     /* large numbers */
    {RSQRT, 0x00000000, 0x7f800000},   {RSQRT, 0x80000000, 0xff800000},   /* zeros */
    {RSQRT, 0x00000001, 0x64b504f3},   {RSQRT, 0x80000001, 0x7fc00000},   /* subnormals */
    {RSQRT, 0x7f800000, 0x00000000},   {RSQRT, 0xff800000, 0x7fc00000},   /* infinities */
    {SIGMOID, 0x00000000, 0x3f000000}, {SIGMOID, 0x80000000, 0x3f000000}, /* zeros */
    {SIGMOID, 0x7f800000, 0x3f800000}, {SIGMOID, 0xff800000, 0x00000000}, /* infinities */
    {SIGMOID, 0xc2ce0000, 0x00000001}, {SIGMOID, 0xc2d10000, 0x00000000}, /* the last ones */
};

Test(math, special_values) {
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        const function *f = &functions[special[i].function];
        volatile float x = ro_from_bits(special[i].x);
        const uint32_t got = ro_to_bits(f->f(x));
        cr_expect(got == special[i].want, "%s(%08x): %08x, expected %08x", f->name, special[i].x,
                  got, special[i].want);
    }
}

/* The error in units of the last place of the exact result. A subnormal result has the unit of its
 * own size. */
static double ulp_error(float got, double want) {
    const float nearest = (float)want;
    if (isnan(want) || isinf(nearest))
        return (isnan(want) && isnan(got)) || got == nearest ? 0 : isinf(nearest) ? 1 : INFINITY;
    int exponent;
    frexp(want, &exponent);
    return fabs((double)got - want) / ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

/* Tests a million inputs, spread evenly over all bit patterns and so including zeros, infinities
 * and NaNs. */
Test(math, errors_stay_within_the_bounds_of_the_specification) {
    const uint32_t stride = 4099;
    for (int i = 0; i < FUNCTIONS; i++) {
        double worst = 0;
        uint32_t at = 0;
        for (uint32_t n = 0, bits = (uint32_t)i; n < UINT32_MAX / stride; n++, bits += stride) {
            const float x = ro_from_bits(bits);
            const double error = ulp_error(functions[i].f(x), functions[i].reference((double)x));
            if (error > worst)
                worst = error, at = bits;
        }
        cr_expect(worst < functions[i].bound, "%s(%08x): %.4f ulp", functions[i].name, at, worst);
        cr_expect(worst > 0.5, "%s: %.4f ulp, better than rounding can be", functions[i].name,
                  worst);
    }
}

Test(math, the_worst_inputs_have_the_errors_that_the_specification_states) {
    const struct {
        int function;
        float x;
        double ulp;
    } worst[] = {{EXP, -0x1.b5484ep+4f, 0.9814},  {LOG, 0x1.556f6p+0f, 0.9521},
                 {TANH, 0x1.35f7p-1f, 1.3487},    {ERF, 0x1.dfd49p-1f, 1.1269},
                 {RSQRT, 0x1.019566p+0f, 1.4903}, {SIGMOID, -0x1.0a111ap+2f, 2.4019}};
    for (int i = 0; i < FUNCTIONS; i++) {
        const function *f = &functions[worst[i].function];
        const double error = ulp_error(f->f(worst[i].x), f->reference((double)worst[i].x));
        cr_expect(fabs(error - worst[i].ulp) < 6e-5, "%s: %.5f ulp", f->name, error);
    }
}

Test(math, every_nan_gives_the_canonical_nan) {
    uint64_t state = 1;
    for (int n = 0; n < 10000; n++) {
        const uint32_t bits = 0x7f800001 + (uint32_t)(random_word(&state) % 0x7fffff);
        for (int i = 0; i < FUNCTIONS; i++)
            for (uint32_t sign = 0; sign < 2; sign++)
                cr_assert(ro_to_bits(functions[i].f(ro_from_bits(bits | sign << 31))) ==
                              RO_QNAN_BITS,
                          "%s(%08x)", functions[i].name, bits | sign << 31);
    }
}

Test(math, tanh_and_erf_are_odd) {
    const int odd[] = {TANH, ERF};
    for (int i = 0; i < 2; i++)
        for (uint32_t bits = 0; bits < 0x7f800000; bits += 10007) {
            const function *f = &functions[odd[i]];
            const uint32_t plus = ro_to_bits(f->f(ro_from_bits(bits)));
            const uint32_t minus = ro_to_bits(f->f(ro_from_bits(bits | UINT32_C(0x80000000))));
            cr_assert(minus == (plus | UINT32_C(0x80000000)), "%s(%08x)", f->name, bits);
        }
}

/* The result falls between neighbours by no more than rounding explains, also where the formula of
 * erf changes. */
Test(math, erf_rises) {
    float before = 0;
    for (uint32_t bits = 0x3f000000; bits < 0x40900000; bits += 3) {
        const float y = ro_erf(ro_from_bits(bits));
        cr_assert(y >= before - 0x1p-23f, "%08x: %a after %a", bits, (double)y, (double)before);
        before = y;
    }
}

Test(math, quarter_turns_are_exact) {
    const float sine[] = {0, 1, 0, -1};
    for (uint32_t quarter = 0; quarter < 4; quarter++) {
        cr_expect(ro_sin_turn(quarter << 22) == sine[quarter]);
        cr_expect(ro_cos_turn(quarter << 22) == sine[(quarter + 1) % 4]);
    }
}

Test(math, errors_of_turns_stay_within_the_bound_of_the_specification) {
    const double bound = 1.42 * 0x1p-24, two_pi = 6.283185307179586477;
    double worst = 0;
    for (uint32_t k = 0; k < 1u << 24; k += 17) {
        const double angle = ldexp(k, -24) * two_pi;
        const double sine = fabs((double)ro_sin_turn(k) - sin(angle));
        const double cosine = fabs((double)ro_cos_turn(k) - cos(angle));
        worst = fmax(worst, fmax(sine, cosine));
    }
    cr_expect(worst < bound, "%g", worst);
}

Test(math, only_24_bits_of_a_turn_count) {
    uint64_t state = 2;
    for (int n = 0; n < 10000; n++) {
        const uint32_t k = (uint32_t)random_word(&state);
        cr_assert(ro_to_bits(ro_sin_turn(k)) == ro_to_bits(ro_sin_turn(k & 0xffffff)));
        cr_assert(ro_to_bits(ro_cos_turn(k)) == ro_to_bits(ro_cos_turn(k & 0xffffff)));
    }
}

/* ---- bits: a coefficient off by one ulp may keep every bound ---- */

static float sin_of(float k) {
    return ro_sin_turn(ro_to_bits(k));
}
static float cos_of(float k) {
    return ro_cos_turn(ro_to_bits(k));
}

/* Writes a hash of the results for the arguments of functions.h. */
static void put_hash(const char *name, float (*f)(float), vd_buf *out) {
    const uint32_t count = SAMPLE_COUNT;
    float *result = malloc(count * sizeof *result);
    vd_hash hash;
    char text[2 * VD_HASH_SIZE + 1];
    for (uint32_t i = 0; i < count; i++)
        result[i] = f(ro_from_bits(SAMPLE_FIRST + i * SAMPLE_STRIDE));
    cr_assert(vd_hash_tagged(NULL, result, count * sizeof *result, &hash));
    vd_hex(hash.b, VD_HASH_SIZE, text);
    vd_printf(out, "%s %s\n", text, name);
    free(result);
}

/* GOLDEN_UPDATE=1 writes the file. */
Test(math, bits_are_those_on_file) {
    static const char golden[] = "tests/golden/functions.txt";
    vd_buf got = {0}, want = {0};
    vd_err err;
    for (int i = 0; i < FUNCTIONS; i++)
        put_hash(functions[i].name, functions[i].f, &got);
    put_hash("sin_turn", sin_of, &got);
    put_hash("cos_turn", cos_of, &got);
    cr_assert(vd_buf_ok(&got));
    if (getenv("GOLDEN_UPDATE"))
        cr_assert(vd_write_file(golden, got.data, got.size, 0644, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_read_file(golden, 1 << 20, &want, &err) == VD_OK, "%s", err.text);
    vd_put_u8(&got, 0);
    vd_put_u8(&want, 0);
    cr_expect_str_eq((const char *)got.data, (const char *)want.data);
    vd_buf_free(&got);
    vd_buf_free(&want);
}

/* ---- fma in software ---- */

static const uint32_t edges[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x00000003, 0x007fffff, 0x807fffff, 0x00800000,
    0x80800000, 0x00800001, 0x33800000, 0xb3800000, 0x33800001, 0x3f7fffff, 0xbf7fffff, 0x3f800000,
    0xbf800000, 0x3f800001, 0xbf800001, 0x3fffffff, 0x40000000, 0x4b800000, 0xcb800001, 0x5f000000,
    0x1f800000, 0x7effffff, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
};
enum { EDGES = sizeof edges / sizeof edges[0] };

static void expect_fma(uint32_t a, uint32_t b, uint32_t c) {
    volatile float x = ro_from_bits(a), y = ro_from_bits(b), z = ro_from_bits(c);
    const float got = ro_fma_soft(x, y, z), want = fmaf(x, y, z);
    cr_assert(ro_to_bits(ro_canon(got)) == ro_to_bits(ro_canon(want)),
              "fma(%08x, %08x, %08x): %08x, expected %08x", a, b, c, ro_to_bits(got),
              ro_to_bits(want));
}

Test(fma, soft_equals_hardware_on_all_triples_of_edges) {
    for (int a = 0; a < EDGES; a++)
        for (int b = 0; b < EDGES; b++)
            for (int c = 0; c < EDGES; c++)
                expect_fma(edges[a], edges[b], edges[c]);
}

/* First random bits, then exponents close together, so that the product and the addend overlap. */
Test(fma, soft_equals_hardware_on_a_million_random_triples) {
    uint64_t state = 3;
    for (int n = 0; n < 500000; n++) {
        const uint64_t h = random_word(&state);
        expect_fma((uint32_t)h, (uint32_t)(h >> 32), (uint32_t)random_word(&state));
    }
    for (int n = 0; n < 500000; n++) {
        const uint64_t h = random_word(&state), g = random_word(&state);
        const uint32_t a = (uint32_t)h & 0x807fffff, b = (uint32_t)(h >> 32) & 0x807fffff;
        const uint32_t c = (uint32_t)g & 0x807fffff, e = (uint32_t)(g >> 32);
        expect_fma(a | (100 + e % 50) << 23, b | 127u << 23, c | (70 + e / 64 % 100) << 23);
    }
}

/* Results near the boundary between subnormal and normal numbers, where double rounding shows. */
Test(fma, soft_equals_hardware_where_results_are_subnormal) {
    uint64_t state = 4;
    for (int n = 0; n < 300000; n++) {
        const uint64_t h = random_word(&state), g = random_word(&state);
        const uint32_t e = (uint32_t)(g >> 32) % 60;
        expect_fma(((uint32_t)h & 0x807fffff) | (e + 20) << 23,
                   ((uint32_t)(h >> 32) & 0x807fffff) | (80 - e + (uint32_t)g % 32) << 23,
                   (uint32_t)(g >> 8) & 0x80ffffff);
    }
}

/* ---- max ---- */

Test(math, max_table) {
    const uint32_t zero = 0, minus_zero = 0x80000000, one = 0x3f800000, inf = 0x7f800000;
    const uint32_t minus_inf = 0xff800000, nan = RO_QNAN_BITS, payload = 0xffc12345;
    const struct {
        uint32_t a, b, want;
    } table[] = {
        {one, zero, one},
        {zero, one, one},
        {zero, minus_zero, zero},
        {minus_zero, zero, zero},
        {zero, zero, zero},
        {minus_zero, minus_zero, minus_zero},
        {minus_inf, one, one},
        {one, inf, inf},
        {minus_inf, minus_inf, minus_inf},
        {minus_zero, minus_inf, minus_zero},
        {nan, one, nan},
        {one, nan, nan},
        {payload, inf, nan},
        {minus_inf, payload, nan},
        {0x00000001, zero, 0x00000001},
        {0x80000001, minus_zero, minus_zero},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const uint32_t got = ro_to_bits(ro_max(ro_from_bits(table[i].a), ro_from_bits(table[i].b)));
        cr_expect(got == table[i].want, "max(%08x, %08x): %08x", table[i].a, table[i].b, got);
    }
}

Test(math, canon_replaces_nans_and_nothing_else) {
    for (int i = 0; i < EDGES; i++) {
        const uint32_t got = ro_to_bits(ro_canon(ro_from_bits(edges[i])));
        cr_expect(got == ((edges[i] & 0x7fffffff) > 0x7f800000 ? RO_QNAN_BITS : edges[i]));
    }
}

/* ---- random numbers ---- */

/* The vectors of Random123 1.14, tests/kat_vectors, "philox4x32 10". */
Test(philox, known_answers) {
    const struct {
        uint64_t key;
        uint32_t counter[4], want[4];
    } answer[] = {
        {0, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX,
         {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {UINT64_C(0x299f31d0a4093822),
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t word[4];
        memcpy(word, answer[i].counter, sizeof word);
        ro_philox(answer[i].key, word);
        cr_expect_arr_eq(word, answer[i].want, sizeof word, "vector %d", i);
    }
}

Test(philox, the_counter_is_block_step_stream) {
    uint32_t word[4];
    ro_philox_block(UINT64_C(0x299f31d0a4093822), UINT64_C(0x85a308d3243f6a88), 0x13198a2e,
                    0x03707344, word);
    cr_expect(word[0] == 0xd16cfe09 && word[3] == 0x24126ea1);
}

static void expect_permutation(uint64_t seed, uint64_t epoch, uint64_t count) {
    uint8_t *seen = calloc(count, 1);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t to = ro_permute(seed, 7, epoch, count, i);
        cr_assert(to < count && !seen[to], "%llu of %llu goes to %llu", (unsigned long long)i,
                  (unsigned long long)count, (unsigned long long)to);
        seen[to] = 1;
    }
    free(seen);
}

Test(permute, every_count_gives_a_permutation) {
    const uint64_t large[] = {1023, 1024, 1025, 4095, 4096, 4097, 65537};
    for (uint64_t count = 1; count <= 300; count++)
        expect_permutation(42, count, count);
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        expect_permutation(UINT64_MAX, i, large[i]);
}

Test(permute, numbers_stay_in_range_up_to_the_largest_count) {
    const uint64_t most = UINT64_C(1) << 40;
    const uint64_t counts[] = {most, most - 1, (UINT64_C(1) << 38) + 1, (UINT64_C(1) << 32) + 1};
    for (int i = 0; i < 4; i++) {
        uint64_t upper = 0;
        for (uint64_t n = 0; n < 100; n++) {
            const uint64_t first = ro_permute(1, 2, 3, counts[i], n);
            const uint64_t last = ro_permute(1, 2, 3, counts[i], counts[i] - 1 - n);
            cr_assert(first < counts[i] && last < counts[i] && first != last);
            upper += first >= counts[i] / 2;
        }
        cr_expect(upper > 20 && upper < 80, "%llu in the upper half", (unsigned long long)upper);
    }
}

static int same_order(uint64_t seed, uint32_t stream, uint64_t epoch) {
    int same = 0;
    for (uint64_t i = 0; i < 256; i++)
        same += ro_permute(seed, stream, epoch, 256, i) == ro_permute(1, 1, 1, 256, i);
    return same;
}

Test(permute, seed_stream_and_epoch_each_give_another_order) {
    cr_expect(same_order(1, 1, 1) == 256);
    cr_expect(same_order(2, 1, 1) < 32);
    cr_expect(same_order(1 + (UINT64_C(1) << 32), 1, 1) < 32);
    cr_expect(same_order(1, 2, 1) < 32);
    cr_expect(same_order(1, 1, 2) < 32);
    cr_expect(same_order(1, 1, 1 + (UINT64_C(1) << 32)) == 256); /* the epoch counts modulo 2^32 */
}
