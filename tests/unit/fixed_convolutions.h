/* Reads tests/vectors/fixed/convolutions.txt; convolutions.py beside it explains the format. */
#ifndef TESTS_FIXED_CONVOLUTIONS_H
#define TESTS_FIXED_CONVOLUTIONS_H

#include "repops/src/conv.h"
#include "repops/op_image.h"
#include "tests/unit/fixed_data.h"

/* Reads plants, whose `line` is not used. */
static inline const char *read_conv_plants(fixed_case *x, const char *at) {
    int length;
    for (plant p = {0}; sscanf(at, " %d:%" SCNd64 "-%" SCNd64 ":%8" SCNx32 "%n", &p.side, &p.from,
                               &p.to, &p.word, &length) == 4;
         at += length) {
        FIXED_ASSERT(x->plants < PLANTS_MOST, "%s: %.30s", x->name, at);
        x->plant[x->plants++] = p;
    }
    return at;
}

/* Fields of a line: the image, filters and kernel, then the call. */
enum {
    DIRECTION,
    BITS,
    IMAGE,
    FILTERS = IMAGE + 4,
    GROUPS,
    KERNEL,
    ATTRIBUTES = KERNEL + 2,
    FIELDS = ATTRIBUTES + 6
};

static inline void set_call(fixed_run *r, const int64_t *field) {
    const int64_t *image = field + IMAGE, *kernel = field + KERNEL, *a = field + ATTRIBUTES;
    const int64_t filters = field[FILTERS];
    int64_t size[2];
    for (int i = 0; i < 2; i++)
        size[i] = ro_windows(image[1 + i], a[2 + i], a[4 + i] * (kernel[i] - 1) + 1, a[i]);
    const ro_shape x = {RO_F32, 4, {image[0], image[1], image[2], image[3]}};
    const ro_shape w = {RO_F32, 4, {kernel[0], kernel[1], image[3] / field[GROUPS], filters}};
    const ro_shape y = {RO_F32, 4, {image[0], size[0], size[1], filters}};
    const ro_shape in[3][2] = {{x, w}, {y, w}, {x, y}}, out[3] = {y, x, w};
    memcpy(r->in, in[field[DIRECTION]], sizeof r->in);
    r->call = (ro_call){.op = (int)(RO_OP_CONV2D_FIXED + field[DIRECTION]),
                        .output = out[field[DIRECTION]]};
    memcpy(r->call.attr, a, 6 * sizeof *a);
    r->call.attr[RO_CONV_FIXED_GROUPS] = field[GROUPS];
    r->call.attr[RO_CONV_FIXED_BITS] = field[BITS];
}

/* Reads a line, and builds its call and data. */
static inline void build_convolution(fixed_case *x, const char *at, fixed_run *r) {
    char a[NAME_SIZE], b[NAME_SIZE];
    int64_t field[FIELDS];
    int length;
    memset(x, 0, sizeof *x);
    FIXED_ASSERT(sscanf(at, "convolution %31s%n", x->name, &length) == 1, "%.60s", at);
    at += length;
    for (int i = 0; i < FIELDS; i++, at += length)
        FIXED_ASSERT(sscanf(at, " %" SCNd64 "%n", &field[i], &length) == 1, "%s: %.30s", x->name,
                     at);
    FIXED_ASSERT(field[DIRECTION] >= 0 && field[DIRECTION] <= 2 && field[GROUPS] > 0, "%s",
                 x->name);
    FIXED_ASSERT(sscanf(at, " %31s %31s %" SCNu64 "%n", a, b, &x->seed, &length) == 3, "%.30s", at);
    x->of[0] = numbers_named(a), x->of[1] = numbers_named(b);
    read_kept(x, read_conv_plants(x, at + length));
    set_call(r, field);
    build_call(x, r);
    for (const plant *p = x->plant; p < x->plant + x->plants; p++)
        for (int64_t i = p->from; i < p->to; i++)
            r->data[p->side][i] = p->word;
}

#endif
