/* Random convolutions whose shapes select every method of repops/cpu/image/conv*.c, with image
 * edges and vector tails, and special values in none, one or both operands. */
#ifndef TESTS_CONV_CASES_H
#define TESTS_CONV_CASES_H

#include "op_cases_image.h"
#include "op_cases.h"
#include "repops/op_image.h"

/* The `count` numbers from `least` on. */
typedef struct {
    int64_t least, count;
} range;

/* Ranges of groups, channels and filters of a group, kernel sizes and images. */
static const struct {
    range groups, depth, width, kernel, images;
} conv_kinds[] = {
    {{1, 1}, {1, 8}, {8, 60}, {1, 5}, {1, 3}},   /* few channels in the image */
    {{1, 1}, {8, 60}, {1, 3}, {1, 5}, {1, 3}},   /* at most three filters */
    {{1, 1}, {1, 3}, {8, 60}, {1, 5}, {1, 3}},   /* the same for the gradient of x */
    {{2, 40}, {1, 1}, {1, 1}, {1, 7}, {1, 3}},   /* depthwise */
    {{2, 12}, {1, 8}, {1, 8}, {1, 4}, {1, 3}},   /* few channels in each group */
    {{2, 12}, {4, 1}, {4, 1}, {1, 4}, {1, 10}},  /* like ResNeXt */
    {{2, 2}, {9, 30}, {9, 30}, {1, 4}, {1, 3}},  /* more channels in each group */
    {{1, 1}, {24, 20}, {1, 40}, {1, 4}, {1, 2}}, /* lines of x are read in place */
    {{1, 1}, {9, 12}, {4, 16}, {1, 4}, {7, 3}},  /* pixels are sorted by their taps */
    {{1, 1}, {1, 70}, {1, 50}, {1, 1}, {1, 3}},  /* 1 x 1 kernels */
};
enum { CONV_KINDS = sizeof conv_kinds / sizeof conv_kinds[0] };

static inline int64_t roll_range(dice *d, range r) {
    return r.least + roll(d, r.count);
}

/* Rolls an axis: images are often smaller than kernels, a single line, or only padding. */
static inline void roll_conv_axis(int64_t *a, int i, int64_t kernel, int64_t *size, int64_t *out,
                                  dice *d) {
    const int64_t plain = roll(d, 3), pads[] = {0, kernel / 2, roll(d, 4), kernel + roll(d, 3)};
    a[i] = plain ? 1 : 1 + roll(d, 3);
    a[4 + i] = roll(d, 4) ? 1 : 2 + roll(d, 2);
    a[2 + i] = pads[roll(d, 8) ? roll(d, 3) : 3];
    const int64_t window = a[4 + i] * (kernel - 1) + 1;
    *size = roll(d, 5) ? 1 + roll(d, i ? 36 : 8) : 1 + roll(d, 2);
    if (*size + 2 * a[2 + i] < window)
        *size = window - 2 * a[2 + i];
    *out = (*size + 2 * a[2 + i] - window) / a[i] + 1;
}

static inline void roll_conv_data(op_case *c, uint64_t seed, dice *d) {
    static const data_class classes[] = {DATA_NORMAL, DATA_NORMAL, DATA_SPECIAL,
                                         DATA_RARE,   DATA_TINY,   DATA_WIDE};
    case_fill(c, seed, DATA_NORMAL);
    for (int t = 0; t < 2; t++) {
        const data_class class = classes[roll(d, 6)];
        const int64_t count = ro_shape_numel(&c->in[t]);
        for (int64_t i = 0; i < count; i++)
            ((uint32_t *)c->data[t])[i] = case_f32(case_word(seed, t, i), class);
    }
}

/* Rolls a case like case_roll. */
static inline const char *conv_case_roll(op_case *c, int op, uint64_t seed) {
    static char why[200];
    dice d = {seed, 0};
    int64_t *a = c->call.attr, kernel[2], in[2], out[2];
    const int kind = (int)roll(&d, CONV_KINDS);
    memset(c, 0, sizeof *c);
    c->call.op = op, c->call.input = c->in, c->call.input_count = 2;
    for (int i = 0; i < 2; i++) {
        kernel[i] = roll_range(&d, conv_kinds[kind].kernel);
        roll_conv_axis(a, i, kernel[i], &in[i], &out[i], &d);
        if (conv_kinds[kind].kernel.count == 1 && roll(&d, 2))
            a[i] = 1, a[2 + i] = 0, out[i] = in[i];
    }
    const int64_t groups = roll_range(&d, conv_kinds[kind].groups);
    const int64_t depth = roll_range(&d, conv_kinds[kind].depth);
    const int64_t width = roll_range(&d, conv_kinds[kind].width);
    const int64_t images = roll_range(&d, conv_kinds[kind].images);
    const ro_shape x = shape_of(RO_F32, 4, images, in[0], in[1], groups * depth);
    const ro_shape w = shape_of(RO_F32, 4, kernel[0], kernel[1], depth, groups * width);
    const ro_shape y = shape_of(RO_F32, 4, images, out[0], out[1], groups * width);
    a[6] = groups;
    if (ro_conv_kind(op) != op)
        a[RO_CONV_FIXED_BITS] = 8 + 8 * roll(&d, 3);
    op = ro_conv_kind(op);
    c->in[0] = op == RO_OP_CONV2D_DX ? y : x, c->in[1] = op == RO_OP_CONV2D_DW ? y : w;
    if (op != RO_OP_CONV2D)
        c->call.output = op == RO_OP_CONV2D_DX ? x : w;
    if (ro_infer(&c->call, why, sizeof why) != RO_OK)
        return why;
    roll_conv_data(c, seed, &d);
    return NULL;
}

#endif
