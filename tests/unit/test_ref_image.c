/* Operators on images, on numbers that can be checked by hand, or by properties that they must
 * have: SPEC.md section 12. */
#include "op_cases_image.h"
#include "ref_apply.h"
#include "repops/src/conv.h"
#include "repops/op_image.h"
#include "repops/op_movement.h"

#include <math.h>

static application a;

static ro_shape shape4(int64_t n, int64_t h, int64_t w, int64_t c) {
    return shape_of(RO_F32, 4, n, h, w, c);
}

/* ---- convolution, 12.1 ---- */

static void convolve(int op, ro_shape x, const void *p, ro_shape y, const void *q) {
    apply(&a, op);
    ATTRS(&a, 1, 1, 0, 0, 1, 1, 1);
    give(&a, x, p);
    give(&a, y, q);
}

Test(conv2d, slides_a_kernel_over_the_image) {
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 10, 100, 1000};
    convolve(RO_OP_CONV2D, shape4(1, 3, 3, 1), x, shape4(2, 2, 1, 1), w);
    EXPECT(&a, 5421, 6532, 8754, 9865);
    a.call.attr[RO_CONV_STRIDE_H] = 2, a.call.attr[RO_CONV_PAD_W] = 1,
    a.call.output = (ro_shape){0};
    EXPECT(&a, 4010, 5421, 6532, 603); /* rows 0 and 1; columns -1 to 3 */
    ATTRS(&a, 1, 1, 0, 0, 2, 2, 1);
    a.call.output = (ro_shape){0};
    EXPECT(&a, 9731);
}

Test(conv2d, channels_are_neighbours_and_groups_keep_to_themselves) {
    const float x[] = {1, 2, 3, 4}, w[] = {1, 10, 100, 1000, 2, 20, 200, 2000};
    convolve(RO_OP_CONV2D, shape4(1, 1, 1, 4), x, shape4(1, 1, 2, 4), w);
    a.call.attr[RO_CONV_GROUPS] = 2;
    EXPECT(&a, 5, 50, 1100, 11000);
}

Test(conv2d, terms_outside_the_image_are_absent_even_if_the_weight_is_infinite) {
    const float x[] = {1, 1}, w[] = {INFINITY, 1, NAN}, dy[] = {NAN, 2};
    convolve(RO_OP_CONV2D, shape4(1, 1, 2, 1), x, shape4(1, 3, 1, 1), w);
    a.call.attr[RO_CONV_PAD_W] = 1;
    EXPECT_BITS(&a, RO_QNAN_BITS, 0x7f800000); /* 1 + NaN; inf + 1 */
    convolve(RO_OP_CONV2D_DX, shape4(1, 1, 2, 1), x, shape4(1, 3, 1, 1), w);
    a.call.attr[RO_CONV_PAD_W] = 1, a.call.output = shape4(1, 1, 2, 1);
    EXPECT_BITS(&a, 0x7f800000, RO_QNAN_BITS);
    convolve(RO_OP_CONV2D_DW, shape4(1, 1, 2, 1), x, shape4(1, 1, 2, 1), dy);
    a.call.attr[RO_CONV_PAD_W] = 1, a.call.output = shape4(1, 3, 1, 1);
    EXPECT_BITS(&a, ro_to_bits(2), RO_QNAN_BITS, RO_QNAN_BITS);
}

Test(conv2d, windows_that_see_nothing_are_zero) {
    const float x[] = {NAN}, w[] = {NAN};
    convolve(RO_OP_CONV2D, shape4(1, 1, 1, 1), x, shape4(1, 1, 1, 1), w);
    a.call.attr[RO_CONV_PAD_W] = 1;
    EXPECT_BITS(&a, 0, RO_QNAN_BITS, 0);
}

/* 2^24 + 1 rounds to 2^24, and 2^24 + 2 does not. Taps 0 and 1 have 160 channels each, so chunk 0
 * ends within tap 1. */
Test(conv2d, chunks_count_absent_terms_too) {
    static float x[320], w[320];
    for (int k = 0; k < 320; k++)
        w[k] = 1;
    x[0] = 0x1p24f, x[95] = 1, x[96] = 1; /* steps 255 and 256 when read by tap 1 */
    convolve(RO_OP_CONV2D, shape4(1, 1, 1, 160), x, shape4(1, 2, 160, 1), w);
    a.call.attr[RO_CONV_PAD_W] = 1;
    EXPECT(&a, 0x1p24f, 0x1p24f);
    x[97] = 1; /* as tap 1, two ones make a chunk of their own; as tap 0, all is one chunk */
    EXPECT(&a, 0x1p24f + 2, 0x1p24f);
}

/* ---- fixed convolution, 3.5 ---- */

/* The examples of 12.1 again: whole numbers are exact. */
Test(conv2d_fixed, slides_a_kernel_over_the_image) {
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 10, 100, 1000};
    convolve(RO_OP_CONV2D_FIXED, shape4(1, 3, 3, 1), x, shape4(2, 2, 1, 1), w);
    a.call.attr[RO_CONV_FIXED_BITS] = RO_FIXED_16;
    EXPECT(&a, 5421, 6532, 8754, 9865);
    a.call.attr[RO_CONV_STRIDE_H] = 2, a.call.attr[RO_CONV_PAD_W] = 1,
    a.call.output = (ro_shape){0};
    EXPECT(&a, 4010, 5421, 6532, 603);
    const float pair[] = {1, 2, 3, 4}, filters[] = {1, 10, 100, 1000, 2, 20, 200, 2000};
    convolve(RO_OP_CONV2D_FIXED, shape4(1, 1, 1, 4), pair, shape4(1, 1, 2, 4), filters);
    a.call.attr[RO_CONV_GROUPS] = 2, a.call.attr[RO_CONV_FIXED_BITS] = RO_FIXED_24;
    EXPECT(&a, 5, 50, 1100, 11000);
}

/* A weight that is not finite makes every chunk that has it NaN, even outside the image. */
Test(conv2d_fixed, terms_outside_the_image_are_zeros) {
    const float x[] = {1, 1}, w[] = {INFINITY, 1, 2}, finite[] = {4, 1, 2}, dy[] = {1, NAN};
    convolve(RO_OP_CONV2D_FIXED, shape4(1, 1, 2, 1), x, shape4(1, 3, 1, 1), w);
    a.call.attr[RO_CONV_PAD_W] = 1, a.call.attr[RO_CONV_FIXED_BITS] = RO_FIXED_24;
    EXPECT_BITS(&a, RO_QNAN_BITS, RO_QNAN_BITS);
    a.data[1] = finite;
    EXPECT(&a, 3, 5);
    convolve(RO_OP_CONV2D_FIXED_DX, shape4(1, 1, 2, 1), x, shape4(1, 3, 1, 1), finite);
    a.call.attr[RO_CONV_PAD_W] = 1, a.call.attr[RO_CONV_FIXED_BITS] = RO_FIXED_24;
    a.call.output = shape4(1, 1, 2, 1);
    EXPECT(&a, 5, 3);
    a.data[1] = w;
    EXPECT_BITS(&a, RO_QNAN_BITS, RO_QNAN_BITS);
    convolve(RO_OP_CONV2D_FIXED_DW, shape4(1, 1, 2, 1), x, shape4(1, 1, 2, 1), x);
    a.call.attr[RO_CONV_PAD_W] = 1, a.call.attr[RO_CONV_FIXED_BITS] = RO_FIXED_24;
    a.call.output = shape4(1, 3, 1, 1);
    EXPECT(&a, 1, 2, 1);
    a.data[1] = dy; /* the NaN is read by no window of tap 2 */
    EXPECT_BITS(&a, RO_QNAN_BITS, RO_QNAN_BITS, RO_QNAN_BITS);
}

/* Tap 0 lies outside the image for window 0. Its weight still determines the power of two for the
 * chunk. */
Test(conv2d_fixed, weights_outside_the_image_count_for_the_power) {
    const float x[] = {1}, w[] = {0x1p15f, 1}, small[] = {0x1p14f, 1};
    convolve(RO_OP_CONV2D_FIXED, shape4(1, 1, 1, 1), x, shape4(1, 2, 1, 1), w);
    a.call.attr[RO_CONV_PAD_W] = 1, a.call.attr[RO_CONV_FIXED_BITS] = RO_FIXED_16;
    EXPECT(&a, 0, 0x1p15f); /* 1 becomes half an integer, which rounds to the even 0 */
    a.data[1] = small;
    EXPECT(&a, 1, 0x1p14f);
}

/* Taps 0 and 1 have 160 channels each. The large weight of step 255 belongs to the same chunk as
 * tap 0. */
Test(conv2d_fixed, chunks_go_over_the_ends_of_taps) {
    static float x[160], w[320];
    w[0] = 1, w[255] = 0x1p20f, x[0] = 1;
    convolve(RO_OP_CONV2D_FIXED, shape4(1, 1, 1, 160), x, shape4(1, 2, 160, 1), w);
    a.call.attr[RO_CONV_PAD_W] = 1, a.call.attr[RO_CONV_FIXED_BITS] = RO_FIXED_16;
    EXPECT(&a, 0, 0);
    w[256] = 0x1p20f, w[255] = 0;
    EXPECT(&a, 0, 1);
}

/* ---- gradients ---- */

/* Whole numbers are exact, so <conv(x, w), dy> = <x, dx(dy, w)> = <w, dw(x, dy)>. */
static int64_t dot(const float *p, const float *q, int64_t count) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (int64_t)p[i] * (int64_t)q[i];
    return sum;
}

static float *whole_numbers(uint64_t seed, int input, const ro_shape *shape) {
    const int64_t count = ro_shape_numel(shape);
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(case_word(seed, input, i) % 15) - 7;
    return x;
}

static void expect_adjoint(int op, uint64_t seed) {
    op_case c = {.call = {.op = op, .input_count = 2, .input = c.in}};
    dice d = {seed, 0};
    if (op == RO_OP_CONV2D_FIXED)
        roll_conv_fixed(&c, &d);
    else
        roll_conv(&c, &d);
    cr_assert(ro_infer(&c.call, NULL, 0) == RO_OK);
    const ro_shape x = c.in[0], w = c.in[1], y = c.call.output;
    if (ro_shape_numel(&y) > 5000 || ro_shape_numel(&x) > 5000 || ro_shape_numel(&w) > 5000)
        return;
    float *px = whole_numbers(seed, 0, &x), *pw = whole_numbers(seed, 1, &w);
    float *pdy = whole_numbers(seed, 2, &y);
    const struct {
        int op;
        ro_shape in[2], out;
        const float *p, *q, *with;
    } way[] = {{op, {x, w}, y, px, pw, pdy},
               {op + RO_OP_CONV2D_DX - RO_OP_CONV2D, {y, w}, x, pdy, pw, px},
               {op + RO_OP_CONV2D_DW - RO_OP_CONV2D, {x, y}, w, px, pdy, pw}};
    int64_t sum[3];
    for (int i = 0; i < 3; i++) {
        apply(&a, way[i].op);
        memcpy(a.call.attr, c.call.attr, sizeof a.call.attr);
        give(&a, way[i].in[0], way[i].p);
        give(&a, way[i].in[1], way[i].q);
        a.call.output = way[i].out;
        evaluate(&a);
        sum[i] = dot(a.out.f, way[i].with, ro_shape_numel(&way[i].out));
    }
    cr_expect(sum[0] == sum[1] && sum[0] == sum[2], "case %llu", (unsigned long long)seed);
    free(px);
    free(pw);
    free(pdy);
}

Test(conv2d, gradients_are_adjoint_to_the_forward_pass) {
    for (uint64_t seed = 1; seed <= 60; seed++) {
        expect_adjoint(RO_OP_CONV2D, seed);
        expect_adjoint(RO_OP_CONV2D_FIXED, seed);
    }
}

/* ---- pooling, 12.2 ---- */

#define POOL(...) ATTRS(&a, __VA_ARGS__)

static void pool(int op, ro_shape x, const void *p) {
    apply(&a, op);
    give(&a, x, p);
}

Test(max_pool2d, takes_the_first_of_the_greatest) {
    const float x[] = {1, 5, 2, 5, 5, 0, -0.0f, 0.0f, -1};
    pool(RO_OP_MAX_POOL2D, shape4(1, 3, 3, 1), x);
    POOL(2, 2, 1, 1, 0, 0);
    EXPECT(&a, 5, 5, 5, 5);
    pool(RO_OP_MAX_POOL2D_INDEX, shape4(1, 3, 3, 1), x);
    POOL(2, 2, 1, 1, 0, 0);
    EXPECT_BITS(&a, 1, 0, 0, 0);
    POOL(3, 3, 2, 2, 1, 1);
    a.call.output = (ro_shape){0};
    EXPECT_BITS(&a, 5, 3, 1, 0); /* taps outside the image are counted */
}

Test(max_pool2d, nan_exceeds_all_and_plus_zero_minus_zero) {
    const float x[] = {-0.0f, 0.0f, -0.0f, INFINITY, NAN, NAN};
    pool(RO_OP_MAX_POOL2D, shape4(1, 1, 6, 1), x);
    POOL(1, 3, 1, 3, 0, 0);
    EXPECT_BITS(&a, 0, RO_QNAN_BITS);
    pool(RO_OP_MAX_POOL2D_INDEX, shape4(1, 1, 6, 1), x);
    POOL(1, 3, 1, 3, 0, 0);
    EXPECT_BITS(&a, 1, 1);
}

Test(max_pool2d, gradient_goes_where_the_index_points) {
    const float dy[] = {1, 10, 100, 1000};
    const int32_t index[] = {3, 2, 1, -7};
    pool(RO_OP_MAX_POOL2D_GRAD, shape4(1, 2, 2, 1), dy);
    give(&a, shape_of(RO_I32, 4, 1, 2, 2, 1), index);
    POOL(2, 2, 1, 1, 0, 0);
    a.call.output = shape4(1, 3, 3, 1);
    EXPECT(&a, 0, 0, 0, 0, 111, 0, 0, 0, 0);
}

Test(avg_pool2d, divides_by_the_window_or_by_what_it_sees) {
    const float x[] = {1, 2, 3, 4};
    pool(RO_OP_AVG_POOL2D, shape4(1, 2, 2, 1), x);
    POOL(2, 2, 2, 2, 1, 1, 1);
    EXPECT(&a, 0.25f, 0.5f, 0.75f, 1);
    a.call.attr[RO_AVG_POOL2D_COUNT_PAD] = 0;
    EXPECT(&a, 1, 2, 3, 4);
    pool(RO_OP_AVG_POOL2D_GRAD, shape4(1, 2, 2, 1), x);
    POOL(2, 2, 1, 1, 0, 0, 1);
    a.call.output = shape4(1, 3, 3, 1);
    EXPECT(&a, 0.25f, 0.75f, 0.5f, 1, 2.5f, 1.5f, 0.75f, 1.75f, 1);
}

Test(avg_pool2d, sums_64_taps_at_a_time) {
    static float x[130];
    x[0] = 0x1p24f, x[63] = x[64] = 1;
    pool(RO_OP_AVG_POOL2D, shape4(1, 1, 130, 1), x);
    POOL(1, 130, 1, 1, 0, 0, 1);
    EXPECT(&a, 0x1p24f / 130);
    x[65] = 1;
    EXPECT(&a, (0x1p24f + 2) / 130);
}

/* SPEC.md 12.2: where sizes are rounded up, the last column is pooled by itself. */
Test(avg_pool2d, a_last_column_of_its_own_has_the_average_of_what_it_sees) {
    const float x[] = {4, 6, 9.5f, 2, 0, 8.5f}, padded[] = {4, 6, 9.5f, 0, 2, 0, 8.5f, 0};
    float column[2];
    pool(RO_OP_AVG_POOL2D, shape4(1, 2, 3, 1), x);
    POOL(2, 2, 2, 2, 0, 0, 0);
    EXPECT(&a, 3);
    apply(&a, RO_OP_SLICE);
    ATTRS(&a, 2, 2, 1, 1);
    give(&a, shape4(1, 2, 3, 1), x);
    evaluate(&a);
    memcpy(column, a.out.f, sizeof column);
    pool(RO_OP_AVG_POOL2D, shape4(1, 2, 1, 1), column);
    POOL(2, 1, 2, 1, 0, 0, 0);
    EXPECT(&a, 9);
    pool(RO_OP_AVG_POOL2D, shape4(1, 2, 4, 1), padded); /* counts the padding */
    POOL(2, 2, 2, 2, 0, 0, 0);
    EXPECT(&a, 3, 4.5f);
}

/* ---- batch norm, 12.3 ---- */

enum { ROWS = 4100, COLS = 2, GROUPS = 65 };

static float data[ROWS * COLS];

/* Computes all levels, as a graph does: mean and sum of squared deviations over all rows. */
static void statistics(float *mean, float *sqdev) {
    static float m[2][GROUPS * COLS], s[2][GROUPS * COLS];
    pool(RO_OP_BN_MEAN, shape2(ROWS, COLS), data);
    ATTRS(&a, COLS);
    a.call.output = shape2(GROUPS, COLS);
    evaluate(&a);
    memcpy(m[0], a.out.f, sizeof m[0]);
    pool(RO_OP_BN_SQDEV, shape2(ROWS, COLS), data);
    give(&a, shape2(GROUPS, COLS), m[0]);
    ATTRS(&a, COLS);
    a.call.output = shape2(GROUPS, COLS);
    evaluate(&a);
    memcpy(s[0], a.out.f, sizeof s[0]);
    int64_t left = GROUPS, per = 64;
    for (int level = 0; left > 1; level = 1 - level, per *= 64) {
        const ro_shape from = shape2(left, COLS);
        left = (left + 63) / 64;
        for (int squares = 0; squares < 2; squares++) {
            pool(squares ? RO_OP_BN_MERGE_SQDEV : RO_OP_BN_MERGE_MEAN, from, m[level]);
            if (squares)
                give(&a, from, s[level]);
            ATTRS(&a, COLS, ROWS, per);
            a.call.output = shape2(left, COLS);
            evaluate(&a);
            memcpy(squares ? s[1 - level] : m[1 - level], a.out.f,
                   (size_t)(left * COLS) * sizeof(float));
        }
        memcpy(mean, m[1 - level], COLS * sizeof *mean);
        memcpy(sqdev, s[1 - level], COLS * sizeof *sqdev);
    }
}

/* Far from zero, E[x^2] - mean^2 would have no correct digit. */
Test(batch_norm, statistics_agree_with_double_precision_far_from_zero) {
    float mean[COLS], sqdev[COLS];
    for (int64_t e = 0; e < ROWS * COLS; e++)
        data[e] = (e % COLS ? 10000.0f : 0.0f) + (float)((double)case_word(9, 0, e) * 0x1p-64);
    statistics(mean, sqdev);
    for (int c = 0; c < COLS; c++) {
        double mu = 0, s = 0;
        for (int r = 0; r < ROWS; r++)
            mu += (double)data[r * COLS + c] / ROWS;
        for (int r = 0; r < ROWS; r++)
            s += ((double)data[r * COLS + c] - mu) * ((double)data[r * COLS + c] - mu);
        cr_expect(fabs((double)mean[c] - mu) <= 3e-7 * fmax(1, mu), "mean %g", (double)mean[c]);
        cr_expect(fabs((double)sqdev[c] - s) <= 1e-3 * s, "%g, expected %g", (double)sqdev[c], s);
    }
}

Test(batch_norm, merging_weighs_by_the_number_of_rows) {
    const float m[] = {1, 4}, s[] = {2, 3};
    pool(RO_OP_BN_MERGE_MEAN, shape2(2, 1), m);
    ATTRS(&a, 1, 3, 2);
    a.call.output = shape1(1);
    EXPECT(&a, ro_fma(3, 1 / 3.0f, 1));
    pool(RO_OP_BN_MERGE_SQDEV, shape2(2, 1), m);
    give(&a, shape2(2, 1), s);
    ATTRS(&a, 1, 3, 2);
    a.call.output = shape1(1);
    EXPECT(&a, 2 + ro_fma(9, 2 / 3.0f, 3));
}

Test(batch_norm, pieces) {
    const float x[] = {3, 7, 5, 1}, mean[] = {5, 3}, rstd[] = {0.5f, 2}, gamma[] = {2, 4};
    const float beta[] = {10, 20}, dy[] = {1, 2, 3, 4}, dbeta[] = {2, 4}, dgamma[] = {4, 6};
    const float running[] = {1, 2}, now[] = {8, 12};
    apply(&a, RO_OP_BATCHNORM);
    give(&a, shape2(2, 2), x), give(&a, shape1(2), mean), give(&a, shape1(2), rstd);
    give(&a, shape1(2), gamma), give(&a, shape1(2), beta);
    EXPECT(&a, 8, 52, 10, 4); /* xh = -1, 8, 0, -4 */
    apply(&a, RO_OP_BN_DGAMMA);
    give(&a, shape2(2, 2), dy), give(&a, shape2(2, 2), x), give(&a, shape1(2), mean);
    give(&a, shape1(2), rstd);
    ATTRS(&a, 2);
    a.call.output = shape1(2);
    EXPECT(&a, -1, 0);
    apply(&a, RO_OP_BN_DX);
    give(&a, shape2(2, 2), dy), give(&a, shape2(2, 2), x), give(&a, shape1(2), mean);
    give(&a, shape1(2), rstd), give(&a, shape1(2), gamma), give(&a, shape1(2), dbeta);
    give(&a, shape1(2), dgamma);
    EXPECT(&a, 2, -192, 2, 112); /* gamma rstd (dy - dbeta / 2 - xh dgamma / 2) */
    apply(&a, RO_OP_BN_RUNNING);
    give(&a, shape1(2), running), give(&a, shape1(2), now);
    ATTRS(&a, F(0.25f), F(4));
    EXPECT(&a, 1.25f, 2.25f);
}

/* ---- batches, 12.4 ---- */

Test(read_images, turns_planes_into_neighbours_and_scales) {
    const uint8_t record[] = {9, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13};
    const int32_t step = 0;
    pool(RO_OP_READ_IMAGES, shape_of(RO_U8, 1, 13, 0, 0, 0), record);
    give(&a, ints(1), &step);
    ATTRS(&a, 0, 0, 1, 0, 13, 1, F(2), F(1));
    a.call.output = shape4(1, 2, 2, 3);
    EXPECT(&a, 3, 11, 21, 5, 13, 23, 7, 15, 25, 9, 17, 27);
    pool(RO_OP_READ_LABELS, shape_of(RO_U8, 1, 13, 0, 0, 0), record);
    give(&a, ints(1), &step);
    ATTRS(&a, 0, 0, 1, 0, 13, 0);
    a.call.output = ints(1);
    EXPECT_BITS(&a, 9);
}

Test(read_labels, every_epoch_reads_every_record_once_and_images_with_them) {
    uint8_t record[14];
    int32_t step;
    int seen[7] = {0};
    for (int i = 0; i < 14; i++)
        record[i] = (uint8_t)(i / 2);
    for (step = 0; step < 7; step++) {
        pool(RO_OP_READ_LABELS, shape_of(RO_U8, 1, 14, 0, 0, 0), record);
        give(&a, ints(1), &step);
        ATTRS(&a, 77, 5, 2, 0, 2, 0);
        a.call.output = ints(2);
        evaluate(&a);
        const int32_t label[] = {a.out.i[0], a.out.i[1]};
        seen[label[0]]++, seen[label[1]]++;
        pool(RO_OP_READ_IMAGES, shape_of(RO_U8, 1, 14, 0, 0, 0), record);
        give(&a, ints(1), &step);
        ATTRS(&a, 77, 5, 2, 0, 2, 1, F(1), 0);
        a.call.output = shape4(2, 1, 1, 1);
        EXPECT(&a, (float)label[0], (float)label[1]);
    }
    for (int i = 0; i < 7; i++)
        cr_expect(seen[i] == 2);
}
