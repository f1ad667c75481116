/* Convolutions whose weights stay packed give the bytes of conv2d. */
#include "repops/op_image.h"
#include "repops/packed.h"
#include "repops/tools/op_data.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0], MOST = 1 << 18 };

static float x[MOST], w[MOST], want[MOST], got[MOST];

typedef struct {
    ro_call call;
    ro_shape in[2];
} conv;

/* n holds batch, height, width, channels; rows and columns of a window, filters; stride, padding,
 * dilation. */
static conv conv_of(const int64_t *n) {
    conv c = {.call = {.op = RO_OP_CONV2D, .input_count = 2}};
    char why[200];
    c.in[0] = (ro_shape){RO_F32, 4, {n[0], n[1], n[2], n[3]}};
    c.in[1] = (ro_shape){RO_F32, 4, {n[4], n[5], n[3], n[6]}};
    c.call.attr[RO_CONV_GROUPS] = 1;
    for (int d = 0; d < 2; d++) {
        c.call.attr[RO_CONV_STRIDE_H + d] = n[7], c.call.attr[RO_CONV_PAD_H + d] = n[8];
        c.call.attr[RO_CONV_DILATION_H + d] = n[9];
    }
    c.call.input = c.in;
    cr_assert(ro_infer(&c.call, why, sizeof why) == RO_OK, "%s", why);
    c.call.input = NULL;
    return c;
}

static void fill(float *to, int input, int64_t count, data_class class) {
    for (int64_t e = 0; e < count; e++)
        ((uint32_t *)to)[e] = case_f32(case_word((uint64_t)count, input, e), class);
}

static void *packed_of(ro_ctx *ctx, const ro_call *call, ro_status expected) {
    const size_t size = ro_conv2d_packed_size(ctx, call);
    cr_assert(size > 0);
    void *packed = aligned_alloc(64, (size + 63) / 64 * 64);
    memset(packed, 0xff, size); /* NaNs, so that padding that is not written shows */
    cr_assert(ro_conv2d_pack(ctx, call, w, packed) == expected, "%s", ro_ctx_error(ctx));
    return packed;
}

/* Compares a run on x and w, which are already filled. */
static void compare_run(ro_ctx *ctx, const int64_t *n) {
    conv c = conv_of(n);
    ro_call call = c.call;
    call.input = c.in;
    const void *const in[] = {x, w};
    cr_assert(ro_run(ctx, &call, in, want) == RO_OK, "%s", ro_ctx_error(ctx));
    void *packed = packed_of(ctx, &call, RO_OK);
    memset(w, 0x11, sizeof w); /* the packed weights are a copy of w */
    cr_assert(ro_conv2d_packed(ctx, &call, x, packed, got) == RO_OK, "%s", ro_ctx_error(ctx));
    cr_expect(memcmp(got, want, (size_t)ro_shape_numel(&call.output) * 4) == 0,
              "%lld x %lld x %lld x %lld on %s", (long long)n[0], (long long)n[1], (long long)n[2],
              (long long)n[3], ro_ctx_backend(ctx));
    free(packed);
}

static void compare(ro_ctx *ctx, const int64_t *n, data_class class) {
    const conv c = conv_of(n);
    fill(x, 0, ro_shape_numel(&c.in[0]), class);
    fill(w, 1, ro_shape_numel(&c.in[1]), DATA_NORMAL);
    compare_run(ctx, n);
}

static ro_ctx *open_backend(int i) {
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options, .threads = 2, .backend = backends[i]};
    return ro_ctx_create(&options, &ctx) == RO_OK ? ctx : NULL;
}

/* Few and many pixels, edges, strides, dilations, and batches whose pixels all miss the same
 * taps. */
static const int64_t cases[][10] = {
    {1, 7, 7, 64, 3, 3, 96, 1, 1, 1},   {2, 9, 11, 16, 3, 3, 32, 2, 1, 1},
    {1, 14, 14, 40, 5, 5, 33, 1, 2, 1}, {1, 12, 12, 17, 3, 3, 50, 1, 2, 2},
    {9, 6, 6, 20, 3, 3, 32, 1, 1, 1},   {1, 28, 28, 24, 1, 7, 48, 1, 3, 1},
    {1, 3, 3, 300, 3, 3, 64, 3, 0, 1}};

Test(packed_conv, gives_the_bytes_of_weights_that_are_packed_anew) {
    for (int i = 0; i < BACKENDS; i++) {
        ro_ctx *ctx = open_backend(i);
        for (size_t k = 0; ctx && k < sizeof cases / sizeof cases[0]; k++) {
            compare(ctx, cases[k], DATA_NORMAL);
            compare(ctx, cases[k], DATA_SPECIAL);
        }
        ro_ctx_destroy(ctx);
    }
}

/* Fills with integers from `low` to `low` + `range`, except for element `odd`, which is `other`. */
static void fill_whole(float *to, int input, int64_t count, int low, int range, int64_t odd,
                       float other) {
    for (int64_t e = 0; e < count; e++)
        to[e] = (float)(low + (int)(case_word((uint64_t)count, input, e) % (unsigned)(range + 1)));
    if (odd >= 0 && odd < count)
        to[odd] = other;
}

/* Data that are integers, and data that only seem to be: with a fraction, too large a range or sum,
 * -0, or numbers that are not finite. The latter run as floats, and give their bytes. */
static const struct {
    int low, range, w_low, w_range;
    float other;
} wholes[] = {
    {0, 255, -128, 255, 3.0f},  {-128, 255, -127, 254, -5.0f}, {-255, 255, -128, 255, -255.0f},
    {0, 1, -1, 2, 0.5f},        {-3, 200, -128, 255, -0.0f},   {0, 255, -128, 255, 256.0f},
    {0, 255, -128, 255, -1.0f}, {0, 255, -9, 20, INFINITY},    {0, 255, -9, 20, -NAN},
    {0, 255, -9, 20, 3e9f},     {100, 155, 100, 27, 255.0f},   {-200, 100, -128, 3, -255.0f},
};

static const int64_t whole_cases[][10] = {
    {1, 7, 7, 64, 3, 3, 96, 1, 1, 1},      {2, 9, 11, 16, 3, 3, 32, 2, 1, 1},
    {1, 14, 14, 40, 5, 5, 33, 1, 2, 1},    {1, 12, 12, 17, 3, 3, 50, 1, 2, 2},
    {1, 28, 28, 3, 7, 7, 48, 2, 3, 1},     {1, 5, 6, 300, 1, 1, 64, 1, 0, 1},
    {3, 4, 4, 37, 1, 1, 5, 1, 0, 1},       {1, 3, 3, 300, 3, 3, 64, 3, 0, 1},
    {1, 6, 6, 8, 1, 1, 7, 2, 0, 1},        {1, 40, 1, 128, 1, 1, 70, 1, 0, 1},
    {1, 1, 1, 1, 3, 3, 1, 1, 65536, 65536}}; /* a copy of this image would be all border */

Test(packed_conv, gives_the_bytes_of_floats_that_are_integers) {
    for (int i = 0; i < BACKENDS; i++) {
        ro_ctx *ctx = open_backend(i);
        for (size_t k = 0; ctx && k < sizeof whole_cases / sizeof whole_cases[0]; k++)
            for (size_t r = 0; r < sizeof wholes / sizeof wholes[0]; r++) {
                conv c = conv_of(whole_cases[k]);
                ro_call call = c.call;
                call.input = c.in;
                const int64_t count = ro_shape_numel(&c.in[0]);
                fill_whole(x, 0, count, wholes[r].low, wholes[r].range, count / 2, wholes[r].other);
                fill_whole(w, 1, ro_shape_numel(&c.in[1]), wholes[r].w_low, wholes[r].w_range, -1,
                           0);
                if (ro_conv2d_packed_size(ctx, &call) > 0) /* 0 without such instructions */
                    compare_run(ctx, whole_cases[k]);
            }
        ro_ctx_destroy(ctx);
    }
}

Test(packed_conv, refuses_what_it_cannot_keep) {
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(NULL, &ctx) == RO_OK);
    conv c = conv_of(cases[0]), other = conv_of(cases[1]);
    ro_call call = c.call, another = other.call;
    call.input = c.in, another.input = other.in;
    fill(w, 1, MOST, DATA_NORMAL);
    void *packed = packed_of(ctx, &call, RO_OK);
    cr_expect(ro_conv2d_packed(ctx, &another, x, packed, got) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "packed must be of weights of this shape"));
    cr_expect(ro_conv2d_packed(ctx, &call, x, packed, x) == RO_ERR_ARG);
    cr_expect(ro_conv2d_packed(ctx, &call, NULL, packed, got) == RO_ERR_ARG);
    cr_expect(ro_conv2d_pack(ctx, &call, w, NULL) == RO_ERR_ARG);
    free(packed);
    w[5] = INFINITY;
    free(packed_of(ctx, &call, RO_ERR_UNSUPPORTED));
    call.op = RO_OP_CONV2D_DX;
    cr_expect(ro_conv2d_packed_size(ctx, &call) == 0);
    conv point = conv_of((int64_t[]){1, 7, 7, 64, 1, 1, 64, 1, 0, 1});
    point.call.input = point.in;
    fill(w, 1, MOST, DATA_NORMAL);
    if (ro_conv2d_packed_size(ctx, &point.call) > 0) /* only integers are packed so, if at all */
        free(packed_of(ctx, &point.call, RO_ERR_UNSUPPORTED));
    ro_ctx_destroy(ctx);
}
