/* Formulas of operators on numbers that can be checked by hand, or against double precision:
 * SPEC.md sections 5 to 9. */
#include "ref_apply.h"
#include "repops/src/philox.h"
#include "repops/operators.h"

#include <math.h>

static application a;

/* `tolerance` is relative to 1 or, if larger, to the number. */
static void expect_near(float got, double want, double tolerance, const char *what) {
    cr_expect(fabs((double)got - want) <= tolerance * fmax(1, fabs(want)),
              "%s: %.9g, expected %.9g", what, (double)got, want);
}

/* ---- random numbers, 5 and 10 ---- */

static void normal(int64_t count, float mean, float std) {
    apply(&a, RO_OP_NORMAL);
    ATTRS(&a, INT64_C(0x0123456789abcdef), 5, F(mean), F(std));
    a.call.output = shape1(count);
    evaluate(&a);
}

/* Double precision checks the meaning, the specified operations the bits. */
Test(normal, elements_are_pairs_of_words_of_the_block) {
    normal(11, 3, 2);
    for (int64_t e = 0; e < 11; e++) {
        uint32_t w[4];
        ro_philox_block(UINT64_C(0x0123456789abcdef), (uint64_t)e / 4, 0, 5, w);
        const uint32_t p = w[e % 4 < 2 ? 0 : 2], q = w[e % 4 < 2 ? 1 : 3];
        const double u = ((p >> 8) + 1) * 0x1p-24, angle = (q >> 8) * 0x1p-23 * M_PI;
        const double z = sqrt(-2 * log(u)) * (e % 2 ? sin(angle) : cos(angle));
        const float radius = ro_sqrt(-2 * ro_log((float)u));
        const float turn = e % 2 ? ro_sin_turn(q >> 8) : ro_cos_turn(q >> 8);
        expect_near(a.out.f[e], 3 + 2 * z, 2e-6, "element");
        cr_expect(a.out.f[e] == ro_fma(2, radius * turn, 3));
    }
}

Test(normal, has_the_moments_of_a_normal_distribution) {
    double moment[5] = {0};
    normal(OUT_MAX, 0, 1);
    for (int e = 0; e < OUT_MAX; e++)
        for (int k = 1; k < 5; k++)
            moment[k] += pow((double)a.out.f[e], k) / OUT_MAX;
    const double want[] = {0, 0, 1, 0, 3};
    for (int k = 1; k < 5; k++) /* five standard deviations of the fourth moment's estimate */
        cr_expect(fabs(moment[k] - want[k]) < 5 * sqrt(96.0 / OUT_MAX), "%d: %g", k, moment[k]);
}

/* No number u that normal can draw has a positive logarithm, so no square root has a negative
 * argument. */
Test(normal, no_draw_is_nan) {
    for (uint32_t n = 1; n <= UINT32_C(1) << 24; n++)
        cr_assert(ro_log((float)n * 0x1p-24f) <= 0, "%u", n);
}

static void dropout(int32_t step, uint32_t threshold) {
    static float x[4000];
    static int32_t at;
    at = step;
    for (int e = 0; e < 4000; e++)
        x[e] = 3;
    apply(&a, RO_OP_DROPOUT);
    ATTRS(&a, -1, 9, threshold, F(2));
    give(&a, shape1(4000), x), give(&a, ints(1), &at);
    evaluate(&a);
}

Test(dropout, keeps_what_is_at_or_over_the_threshold) {
    uint32_t w[4];
    ro_philox_block(UINT64_MAX, 17, 0xffffffff, 9, w);
    dropout(-1, w[2]);
    cr_expect(a.out.f[17 * 4 + 2] == 6);
    dropout(-1, w[2] + 1);
    cr_expect(a.out.bits[17 * 4 + 2] == 0);
}

Test(dropout, drops_the_wanted_part_and_another_one_each_step) {
    int dropped = 0, moved = 0;
    float first[4000];
    dropout(1, UINT32_C(1) << 30);
    memcpy(first, a.out.f, sizeof first);
    dropout(2, UINT32_C(1) << 30);
    for (int e = 0; e < 4000; e++) {
        cr_assert(a.out.f[e] == 6 || a.out.bits[e] == 0);
        dropped += a.out.bits[e] == 0;
        moved += a.out.f[e] != first[e];
    }
    cr_expect(abs(dropped - 1000) < 140 && abs(moved - 1500) < 160, "%d, %d", dropped, moved);
}

Test(dropout, of_nothing_keeps_all_and_a_dropped_nan_is_zero) {
    const uint32_t x[] = {0xffc12345, 0xffc12345, 0xffc12345, 0xffc12345};
    const int32_t step = 0;
    dropout(7, 0);
    for (int e = 0; e < 4000; e++)
        cr_assert(a.out.f[e] == 6);
    apply(&a, RO_OP_DROPOUT);
    ATTRS(&a, 0, 0, UINT32_C(0x9b00dbd8), F(1)); /* block 6627e8d5 e169c58d bc57ac4c 9b00dbd8 */
    give(&a, shape1(4), x), give(&a, ints(1), &step);
    EXPECT_BITS(&a, 0, RO_QNAN_BITS, RO_QNAN_BITS, RO_QNAN_BITS);
}

/* ---- elementwise, 6 ---- */

static void on(int op, const float *x, const float *y, int64_t count) {
    apply(&a, op);
    give(&a, shape1(count), x);
    if (y)
        give(&a, shape1(count), y);
}

Test(elementwise, add_repeats_its_second_operand) {
    const float x[] = {1, 2, 3, 4, 5, 6}, y[] = {10, 20};
    apply(&a, RO_OP_ADD);
    give(&a, shape2(3, 2), x), give(&a, shape1(2), y);
    EXPECT(&a, 11, 22, 13, 24, 15, 26);
}

Test(elementwise, division_is_not_by_a_reciprocal) {
    const float x[] = {1, 5, -0.0f};
    on(RO_OP_DIV_CONST, x, NULL, 3);
    a.call.attr[RO_DIV_CONST_DIVISOR] = F(49);
    EXPECT(&a, 1 / 49.0f, 5 / 49.0f, -0.0f);
    cr_expect(5 / 49.0f != 5 * (1 / 49.0f), "not a test");
}

Test(elementwise, relu) {
    const uint32_t x[] = {0x3f800000, 0xbf800000, 0x80000000, 0x00000001, 0xffc12345, 0xff800000};
    const uint32_t dy[] = {0xffc12345, 1, 1, 0x80000000, 1, 1};
    on(RO_OP_RELU, (const void *)x, NULL, 6);
    EXPECT_BITS(&a, 0x3f800000, 0, 0, 1, RO_QNAN_BITS, 0);
    on(RO_OP_RELU_GRAD, (const void *)x, (const void *)dy, 6);
    EXPECT_BITS(&a, 0xffc12345, 0, 0, 0x80000000, RO_QNAN_BITS, 0);
}

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

Test(elementwise, gelu_and_its_slope_agree_with_double_precision) {
    for (int i = -600; i <= 600; i++) {
        const float x = (float)i / 64, dy = 2;
        const double h = 1e-5, slope = (gelu((double)x + h) - gelu((double)x - h)) / (2 * h);
        on(RO_OP_GELU, &x, NULL, 1);
        evaluate(&a);
        expect_near(a.out.f[0], gelu((double)x), 1e-6, "gelu");
        on(RO_OP_GELU_GRAD, &x, &dy, 1);
        evaluate(&a);
        expect_near(a.out.f[0], 2 * slope, 2e-6, "slope");
    }
}

Test(elementwise, gelu_of_what_is_not_small) {
    const float x[] = {0.0f, -0.0f, 100, -100, INFINITY, -INFINITY};
    on(RO_OP_GELU, x, NULL, 6);
    EXPECT(&a, 0.0f, -0.0f, 100, -0.0f, INFINITY, -0.0f);
}

/* SPEC.md section 6, "Limits": the value of a function, or of a slope (dy = 1), for arguments up to
 * -1000 and from 1000 on. NaN stands for the argument itself. */
static const struct {
    int op;
    float below, above;
} limits[] = {
    {RO_OP_TANH, -1, 1},      {RO_OP_ERF, -1, 1},          {RO_OP_SIGMOID, 0, 1},
    {RO_OP_GELU_GRAD, 0, 1},  {RO_OP_SILU_GRAD, -0.0f, 1}, {RO_OP_GELU_ERF_GRAD, 0, 1},
    {RO_OP_ERF_GRAD, 0, 0},   {RO_OP_EXP, 0, INFINITY},    {RO_OP_GELU, -0.0f, NAN},
    {RO_OP_SILU, -0.0f, NAN}, {RO_OP_GELU_ERF, 0, NAN},    {RO_OP_RELU, 0, NAN},
};

Test(elementwise, functions_and_slopes_of_huge_arguments_have_their_limits) {
    const float far[] = {1e3f, 3e19f, FLT_MAX, INFINITY}, one = 1;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        for (int k = 0; k < 8; k++) {
            const float x = k < 4 ? -far[k] : far[k - 4];
            const float want = k < 4 ? limits[i].below : limits[i].above;
            on(limits[i].op, &x, ro_op_describe(limits[i].op)->max_inputs == 2 ? &one : NULL, 1);
            EXPECT(&a, want != want ? x : want);
        }
}

Test(elementwise, functions_and_slopes_of_a_nan_are_nan) {
    const float one = 1;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const uint32_t nan = 0xffc12345;
        on(limits[i].op, (const void *)&nan,
           ro_op_describe(limits[i].op)->max_inputs == 2 ? &one : NULL, 1);
        EXPECT_BITS(&a, RO_QNAN_BITS);
    }
}

/* Zeros and subnormals give x times the slope at 0, and keep the sign of zeros. */
Test(elementwise, functions_of_tiny_arguments_are_nearly_linear) {
    const float x[] = {0.0f, -0.0f, 0x1p-149f, -0x1p-149f, 0x1p-127f, -0x1p-127f};
    on(RO_OP_GELU, x, NULL, 6);
    EXPECT(&a, 0.0f, -0.0f, 0.0f, -0.0f, 0x1p-128f, -0x1p-128f);
    on(RO_OP_SILU, x, NULL, 6);
    EXPECT(&a, 0.0f, -0.0f, 0.0f, -0.0f, 0x1p-128f, -0x1p-128f);
    on(RO_OP_GELU_ERF, x, NULL, 6);
    EXPECT(&a, 0.0f, 0.0f, 0.0f, -0.0f, 0x1p-128f, -0x1p-128f);
}

/* Arguments are multiples of 1/64. The exact slope is a central difference with step h. */
static void expect_function(int op, int grad_op, double (*exact)(double), int of_result,
                            int first) {
    const double most = op == RO_OP_GELU_ERF ? 12 * 0x1p-24 : 4e-7; /* SPEC.md section 6 */
    for (int i = first; i <= 600; i++) {
        const float x = (float)i / 64, dy = 2;
        const double h = 1e-5, slope = (exact((double)x + h) - exact((double)x - h)) / (2 * h);
        on(op, &x, NULL, 1);
        evaluate(&a);
        const float y = a.out.f[0];
        expect_near(y, exact((double)x), most, ro_op_describe(op)->name);
        if (grad_op == RO_OP_NONE)
            continue;
        on(grad_op, of_result ? &y : &x, &dy, 1);
        evaluate(&a);
        expect_near(a.out.f[0], 2 * slope, 2e-6, ro_op_describe(grad_op)->name);
    }
}

static double exact_rsqrt(double x) {
    return 1 / sqrt(x);
}
static double exact_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double exact_silu(double x) {
    return x * exact_sigmoid(x);
}
static double exact_gelu_erf(double x) {
    return 0.5 * x * (1 + erf(x * sqrt(0.5)));
}

Test(elementwise, functions_and_their_slopes_agree_with_double_precision) {
    expect_function(RO_OP_EXP, RO_OP_NONE, exp, 0, -600);
    expect_function(RO_OP_LOG, RO_OP_NONE, log, 0, 1);
    expect_function(RO_OP_SQRT, RO_OP_NONE, sqrt, 0, 1);
    expect_function(RO_OP_RSQRT, RO_OP_NONE, exact_rsqrt, 0, 1);
    expect_function(RO_OP_TANH, RO_OP_TANH_GRAD, tanh, 1, -600);
    expect_function(RO_OP_ERF, RO_OP_ERF_GRAD, erf, 0, -600);
    expect_function(RO_OP_SIGMOID, RO_OP_SIGMOID_GRAD, exact_sigmoid, 1, -600);
    expect_function(RO_OP_SILU, RO_OP_SILU_GRAD, exact_silu, 0, -600);
    expect_function(RO_OP_GELU_ERF, RO_OP_GELU_ERF_GRAD, exact_gelu_erf, 0, -600);
}

/* ---- layer norm and loss, 7 ---- */

Test(layer_norm, pieces) {
    const float ss[] = {12, 0}, x[] = {3, 7, 5, 1}, mean[] = {5, 3}, rstd[] = {0.5f, 2};
    const float gamma[] = {2, 4}, beta[] = {10, 20}, dy[] = {1, 2, 3, 4};
    const float sg[] = {2, 4}, sgx[] = {4, 6};
    on(RO_OP_LN_RSTD, ss, NULL, 2);
    ATTRS(&a, 4, F(1));
    EXPECT(&a, 0.5f, 1);
    apply(&a, RO_OP_LAYERNORM);
    give(&a, shape2(2, 2), x), give(&a, shape1(2), mean), give(&a, shape1(2), rstd);
    give(&a, shape1(2), gamma), give(&a, shape1(2), beta);
    EXPECT(&a, 8, 24, 18, 4); /* xh = -1, 1, 4, -4 */
    apply(&a, RO_OP_LN_DX);
    give(&a, shape2(2, 2), dy), give(&a, shape1(2), gamma), give(&a, shape2(2, 2), x);
    give(&a, shape1(2), mean), give(&a, shape1(2), rstd);
    give(&a, shape1(2), sg), give(&a, shape1(2), sgx);
    EXPECT(&a, 1.5f, 2.5f, -16, 52); /* rstd ((g - sg / 2) - xh (sgx / 2)) */
}

/* rstd = +0 would turn the overflow into a row of beta. */
Test(layer_norm, a_variance_that_overflowed_has_no_rstd) {
    const float ss[] = {FLT_MAX, INFINITY};
    on(RO_OP_LN_RSTD, ss, NULL, 2);
    ATTRS(&a, 1, 0);
    EXPECT(&a, 1 / 0x1.fffffep63f, ro_from_bits(RO_QNAN_BITS));
}

Test(layer_norm, rstd_divides_by_a_rounded_root) {
    const float ss = 3;
    on(RO_OP_LN_RSTD, &ss, NULL, 1);
    ATTRS(&a, 1, 0);
    EXPECT(&a, 1 / 0x1.bb67aep0f);
}

Test(cross_entropy, loss_and_gradient) {
    const float x[] = {1, 2, 0, 3, 3, 3}, m[] = {2, 3}, l[] = {4, 2}, dloss[] = {2, 1};
    const int32_t ids[] = {0, 2};
    apply(&a, RO_OP_XENT);
    give(&a, shape2(2, 3), x), give(&a, shape1(2), m), give(&a, shape1(2), l);
    give(&a, ints(2), ids);
    EXPECT(&a, ro_log(4) + 1, ro_log(2));
    a.call.op = RO_OP_XENT_GRAD;
    a.call.output = (ro_shape){0};
    give(&a, shape1(2), dloss);
    EXPECT(&a, (ro_exp(-1) * 0.25f - 1) * 2, 0.5f, ro_exp(-2) * 0.25f * 2, 0.5f, 0.5f, -0.5f);
}

Test(cross_entropy, of_a_token_that_does_not_exist_is_nan_and_its_gradient_has_no_target) {
    const float x[] = {0, 0, 0, 0, 0, 0}, m[] = {0, 0, 0}, l[] = {2, 2, 2}, dloss[] = {1, 1, 1};
    const int32_t ids[] = {-1, 2, INT32_MIN};
    const uint32_t nan = RO_QNAN_BITS;
    apply(&a, RO_OP_XENT);
    give(&a, shape2(3, 2), x), give(&a, shape1(3), m), give(&a, shape1(3), l);
    give(&a, ints(3), ids);
    EXPECT_BITS(&a, nan, nan, nan);
    a.call.op = RO_OP_XENT_GRAD;
    a.call.output = (ro_shape){0};
    give(&a, shape1(3), dloss);
    EXPECT(&a, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f);
}

/* ---- optimizer, 9 ---- */

static float rate_to(float least, int64_t kind, int32_t step, int64_t total) {
    static int32_t at;
    at = step;
    apply(&a, RO_OP_LR_SCHEDULE);
    ATTRS(&a, kind, F(8), F(least), 4, total);
    give(&a, ints(1), &at);
    evaluate(&a);
    return a.out.f[0];
}

static float rate(int64_t kind, int32_t step, int64_t total) {
    return rate_to(2, kind, step, total);
}

Test(learning_rate, warms_up_to_the_base) {
    for (int64_t kind = RO_LR_CONSTANT; kind <= RO_LR_COSINE; kind++) {
        const int64_t total = kind == RO_LR_CONSTANT ? 0 : 12;
        cr_expect(rate(kind, -1, total) == 0 && rate(kind, INT32_MIN, total) == 0);
        cr_expect(rate(kind, 0, total) == 2 && rate(kind, 2, total) == 6);
        cr_expect(rate(kind, 3, total) == 8 && rate(kind, 4, total) == 8);
    }
}

Test(learning_rate, then_follows_its_kind) {
    cr_expect(rate(RO_LR_CONSTANT, INT32_MAX, 0) == 8);
    cr_expect(rate(RO_LR_LINEAR, 6, 12) == 6.5f && rate(RO_LR_LINEAR, 8, 12) == 5);
    cr_expect(rate(RO_LR_COSINE, 8, 12) == 5);
    expect_near(rate(RO_LR_COSINE, 6, 12), 2 + 3 * (1 + cos(M_PI / 4)), 1e-6, "cosine");
    expect_near(rate(RO_LR_COSINE, 11, 12), 2 + 3 * (1 + cos(M_PI * 7 / 8)), 1e-6, "cosine");
    cr_expect(rate_to(0.1f, RO_LR_LINEAR, 12, 12) == 0.1f); /* the formula gives 0.1000004 */
    cr_expect(rate(RO_LR_LINEAR, 12, 12) == 2 && rate(RO_LR_COSINE, INT32_MAX, 12) == 2);
    expect_near(rate(RO_LR_COSINE, INT32_MAX - 1, INT32_MAX), 2, 1e-6, "end");
}

Test(optimizer, clip_scale) {
    const float sum[] = {16, 6.25f, 4, 1, INFINITY, NAN}, want[] = {0.5f, 0.8f, 1, 1, NAN, 1};
    for (int i = 0; i < 6; i++) {
        on(RO_OP_CLIP_SCALE, &sum[i], NULL, 1);
        a.call.attr[RO_CLIP_SCALE_MAX_NORM] = F(2);
        EXPECT(&a, want[i]);
    }
}

/* The squares of finite gradients may overflow. A factor of 0 would silently drop these
 * gradients. */
Test(optimizer, a_norm_that_overflowed_gives_no_factor) {
    static float g[100];
    for (int i = 0; i < 100; i++)
        g[i] = 1e20f;
    on(RO_OP_REDUCE_DOT, g, g, 100);
    ATTRS(&a, 100, 100), a.call.output = shape1(1);
    evaluate(&a);
    const float sum = a.out.f[0];
    cr_expect(sum == INFINITY);
    on(RO_OP_CLIP_SCALE, &sum, NULL, 1);
    a.call.attr[RO_CLIP_SCALE_MAX_NORM] = F(1);
    EXPECT_BITS(&a, RO_QNAN_BITS);
    a.call.attr[RO_CLIP_SCALE_MAX_NORM] = F(INFINITY); /* nothing needs clipping */
    EXPECT(&a, 1);
}

/* Squares may also underflow: then the norm is 0, which clips nothing. */
Test(optimizer, a_norm_that_underflowed_clips_nothing) {
    const float g[] = {1e-25f, 1e-25f};
    on(RO_OP_REDUCE_DOT, g, g, 2);
    ATTRS(&a, 2, 2), a.call.output = shape1(1);
    evaluate(&a);
    const float sum = a.out.f[0];
    cr_expect(sum == 0);
    on(RO_OP_CLIP_SCALE, &sum, NULL, 1);
    a.call.attr[RO_CLIP_SCALE_MAX_NORM] = F(1);
    EXPECT(&a, 1);
}

Test(optimizer, bias_correction_is_one_minus_a_power) {
    float c = 0;
    for (int step = 1; step <= 100; step++) {
        on(RO_OP_BIAS_CORRECTION, &c, NULL, 1);
        a.call.attr[RO_BIAS_CORRECTION_BETA] = F(0.9f);
        evaluate(&a);
        c = a.out.f[0];
        expect_near(c, 1 - pow((double)0.9f, step), 1e-6, "correction");
    }
}

Test(optimizer, moments_and_weight) {
    const float m = 4, v = 16, g = 6, clip = 0.5f, w = 10, c1 = 0.5f, c2 = 0.25f, lr = 0.125f;
    on(RO_OP_ADAMW_M, &m, &g, 1), give(&a, shape1(1), &clip);
    a.call.attr[RO_ADAMW_M_BETA] = F(0.75f);
    EXPECT(&a, 3.75f);
    on(RO_OP_ADAMW_V, &v, &g, 1), give(&a, shape1(1), &clip);
    a.call.attr[RO_ADAMW_V_BETA] = F(0.75f);
    EXPECT(&a, 14.25f);
    on(RO_OP_ADAMW_W, &w, &m, 1), give(&a, shape1(1), &v);
    give(&a, shape1(1), &c1), give(&a, shape1(1), &c2), give(&a, shape1(1), &lr);
    ATTRS(&a, F(8), F(0.1f)); /* u = (4 / .5) / (sqrt(16 / .25) + 8) = .5; then 0.1 * 10 + .5 */
    EXPECT(&a, ro_fma(-0.125f, ro_fma(0.1f, 10, 0.5f), 10));
    const float zero = 0;
    on(RO_OP_ADAMW_W, &w, &zero, 1), give(&a, shape1(1), &zero);
    give(&a, shape1(1), &c1), give(&a, shape1(1), &c2), give(&a, shape1(1), &lr);
    EXPECT_BITS(&a, RO_QNAN_BITS); /* 0 / 0, which eps prevents */
}

/* ---- roundings ---- */

static float draw(int input, int64_t i) {
    return (float)((double)case_word(5, input, i) * 0x1p-62 + 0x1p-10); /* in (0, 4] */
}

/* Products are rounded before sums, and fma rounds once. All bits of the numbers are in use, so
 * that each rounding shows. */
Test(optimizer, rounds_where_the_specification_rounds) {
    const float clip = 0.7f, beta = 0.9f, c1 = 0.3f, c2 = 0.6f, lr = 0.01f, rest = 1 - beta;
    for (int64_t i = 0; i < 500; i++) {
        const float m = draw(0, i), v = draw(1, i), g = draw(2, i), w = draw(3, i), gc = g * clip;
        on(RO_OP_ADAMW_M, &m, &g, 1), give(&a, shape1(1), &clip);
        a.call.attr[RO_ADAMW_M_BETA] = F(beta);
        EXPECT(&a, ro_fma(beta, m, rest * gc));
        on(RO_OP_ADAMW_V, &v, &g, 1), give(&a, shape1(1), &clip);
        a.call.attr[RO_ADAMW_V_BETA] = F(beta);
        EXPECT(&a, ro_fma(beta, v, rest * (gc * gc)));
        on(RO_OP_ADAMW_W, &w, &m, 1), give(&a, shape1(1), &v);
        give(&a, shape1(1), &c1), give(&a, shape1(1), &c2), give(&a, shape1(1), &lr);
        ATTRS(&a, F(1e-3f), F(0.1f));
        const float mean = m * (1 / c1), root = ro_sqrt(v * (1 / c2));
        const float u = mean / (root + 1e-3f);
        EXPECT(&a, ro_fma(-lr, ro_fma(0.1f, w, u), w));
    }
}

Test(layer_norm, rounds_where_the_specification_rounds) {
    for (int64_t i = 0; i < 500; i++) {
        const float x = draw(0, i), mean = draw(1, i), rstd = draw(2, i), dy = draw(3, i);
        const float gamma = draw(4, i), beta = draw(5, i), sg = draw(6, i), sgx = draw(7, i);
        const float xh = (x - mean) * rstd, g = dy * gamma;
        on(RO_OP_LAYERNORM, &x, &mean, 1);
        give(&a, shape1(1), &rstd), give(&a, shape1(1), &gamma), give(&a, shape1(1), &beta);
        EXPECT(&a, ro_fma(xh, gamma, beta));
        on(RO_OP_LN_DX, &dy, &gamma, 1), give(&a, shape1(1), &x), give(&a, shape1(1), &mean);
        give(&a, shape1(1), &rstd), give(&a, shape1(1), &sg), give(&a, shape1(1), &sgx);
        EXPECT(&a, rstd * ro_fma(-xh, sgx, g - sg));
    }
}

Test(cross_entropy, multiplies_by_a_rounded_reciprocal) {
    const int32_t id = 0;
    for (int64_t i = 0; i < 500; i++) {
        const float x = draw(0, i), m = draw(1, i), l = draw(2, i), dloss = draw(3, i);
        const float reciprocal = 1 / l, p = ro_exp(x - m) * reciprocal;
        on(RO_OP_XENT_GRAD, &x, &m, 1), give(&a, shape1(1), &l);
        give(&a, ints(1), &id), give(&a, shape1(1), &dloss);
        EXPECT(&a, (p - 1) * dloss);
    }
}
