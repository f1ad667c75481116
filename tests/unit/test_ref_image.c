/* Operators on images, on numbers that a person can follow or by what they must satisfy: SPEC.md
 * section 12. */
#include "ref_apply.h"
#include "repops/src/conv.h"

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
    a.call.attr[0] = 2, a.call.attr[3] = 1, a.call.output = (ro_shape){0};
    EXPECT(&a, 4010, 5421, 6532, 603); /* rows 0 and 1; columns -1 to 3 */
    ATTRS(&a, 1, 1, 0, 0, 2, 2, 1);
    a.call.output = (ro_shape){0};
    EXPECT(&a, 9731);
}

Test(conv2d, channels_are_neighbours_and_groups_keep_to_themselves) {
    const float x[] = {1, 2, 3, 4}, w[] = {1, 10, 100, 1000, 2, 20, 200, 2000};
    convolve(RO_OP_CONV2D, shape4(1, 1, 1, 4), x, shape4(1, 1, 2, 4), w);
    a.call.attr[6] = 2;
    EXPECT(&a, 5, 50, 1100, 11000);
}

Test(conv2d, terms_outside_the_image_are_absent_even_if_the_weight_is_infinite) {
    const float x[] = {1, 1}, w[] = {INFINITY, 1, NAN}, dy[] = {NAN, 2};
    convolve(RO_OP_CONV2D, shape4(1, 1, 2, 1), x, shape4(1, 3, 1, 1), w);
    a.call.attr[3] = 1;
    EXPECT_BITS(&a, RO_QNAN_BITS, 0x7f800000); /* 1 + NaN; inf + 1 */
    convolve(RO_OP_CONV2D_DX, shape4(1, 1, 2, 1), x, shape4(1, 3, 1, 1), w);
    a.call.attr[3] = 1, a.call.output = shape4(1, 1, 2, 1);
    EXPECT_BITS(&a, 0x7f800000, RO_QNAN_BITS);
    convolve(RO_OP_CONV2D_DW, shape4(1, 1, 2, 1), x, shape4(1, 1, 2, 1), dy);
    a.call.attr[3] = 1, a.call.output = shape4(1, 3, 1, 1);
    EXPECT_BITS(&a, ro_to_bits(2), RO_QNAN_BITS, RO_QNAN_BITS);
}

Test(conv2d, windows_that_see_nothing_are_zero) {
    const float x[] = {NAN}, w[] = {NAN};
    convolve(RO_OP_CONV2D, shape4(1, 1, 1, 1), x, shape4(1, 1, 1, 1), w);
    a.call.attr[3] = 1;
    EXPECT_BITS(&a, 0, RO_QNAN_BITS, 0);
}

/* 2^24 + 1 is lost, 2^24 + 2 is not. Taps 0 and 1 with 160 channels: chunk 0 ends within tap 1. */
Test(conv2d, chunks_count_absent_terms_too) {
    static float x[320], w[320];
    for (int k = 0; k < 320; k++)
        w[k] = 1;
    x[0] = 0x1p24f, x[95] = 1, x[96] = 1; /* as tap 1, steps 255 and 256 */
    convolve(RO_OP_CONV2D, shape4(1, 1, 1, 160), x, shape4(1, 2, 160, 1), w);
    a.call.attr[3] = 1;
    EXPECT(&a, 0x1p24f, 0x1p24f);
    x[97] = 1; /* as tap 1, two ones make a chunk of their own; as tap 0, all is one chunk */
    EXPECT(&a, 0x1p24f + 2, 0x1p24f);
}

/* With whole numbers all is exact: <conv(x, w), dy> = <x, dx(dy, w)> = <w, dw(x, dy)>. */
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

static void expect_adjoint(uint64_t seed) {
    op_case c = {.call = {.op = RO_OP_CONV2D, .input_count = 2, .input = c.in}};
    dice d = {seed, 0};
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
    } way[] = {{RO_OP_CONV2D, {x, w}, y, px, pw, pdy},
               {RO_OP_CONV2D_DX, {y, w}, x, pdy, pw, px},
               {RO_OP_CONV2D_DW, {x, y}, w, px, pdy, pw}};
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
    for (uint64_t seed = 1; seed <= 60; seed++)
        expect_adjoint(seed);
}
