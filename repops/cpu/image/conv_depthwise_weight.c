/* Depthwise conv2d_dw (conv_depthwise.h): computes the sums of a chunk for conv_groups_weight.c, a
 * few pixels of an output line at a time. */
#include "repops/cpu/image/conv_depthwise.h"

/* A line of the output. */
typedef struct {
    const grouped *f;
    const float *line[DEPTH_LINES]; /* pixel 0 for each line of the kernel; NULL: outside */
    const float *dy, *ahead;        /* ahead: the next line of the image */
    int64_t lines;                  /* lines to prefetch from there */
    float *sums;
} depthwise_weight_target;

/* The kind of a group of pixels. At an `edge` taps may lie outside, and are left out. */
typedef struct {
    int taps, stride, pixels, edge;
} form;

/* Loads some channels. Only AVX-512 needs the mask: elsewhere the channels are whole vectors. */
RO_INLINE vf load_lanes(const float *p, vf_mask mask) {
#if defined(RO_ISA_avx512)
    return vf_load_mask(p, mask);
#else
    (void)mask;
    return vf_load(p);
#endif
}

/* Adds the taps of one line of the kernel. The columns under them start at x. */
RO_INLINE void add_row(const form f, const depthwise_weight_target *t, int64_t first,
                       const float *x, vf_mask mask, const vf dy[DEPTH_PIXELS], float *sums) {
    const int64_t channels = t->f->s.channels, size = t->f->s.size;
    const int cols = (f.pixels - 1) * f.stride + f.taps;
    vf sum[DEPTH_TAPS];
    RO_UNROLL
    for (int k = 0; k < f.taps; k++)
        sum[k] = vf_load(sums + k * GROUP_LANES);
    RO_UNROLL
    for (int c = 0; c < cols; c++) {
        const int may_be_outside = f.edge && (c < f.taps - 1 || c > cols - f.taps);
        if (may_be_outside && (uint64_t)(first + c) >= (uint64_t)size)
            continue;
        const vf xv = load_lanes(x + c * channels, mask);
        RO_UNROLL
        for (int k = c % f.stride; k < f.taps; k += f.stride) {
            const int i = (c - k) / f.stride;
            if (k <= c && i < f.pixels)
                sum[k] = vf_fma(xv, dy[i], sum[k]);
        }
    }
    RO_UNROLL
    for (int k = 0; k < f.taps; k++)
        vf_store(sums + k * GROUP_LANES, sum[k]);
}

RO_INLINE void look_ahead(const form f, const depthwise_weight_target *t, int64_t p, int64_t lane) {
    const int64_t channels = t->f->s.channels, size = t->f->s.size * channels;
    const float *dy = t->dy + (t->f->g->v->out[1] + p) * channels + lane;
    RO_UNROLL
    for (int i = 0; i < f.pixels; i++)
        __builtin_prefetch(dy + i * channels, 0, 2);
    for (int64_t i = 0; i < t->lines; i++) {
        const float *line = t->ahead + i * size + p * f.stride * channels + lane;
        RO_UNROLL
        for (int c = 0; c < f.pixels * f.stride; c++)
            __builtin_prefetch(line + c * channels, 0, 2);
    }
}

/* Adds pixels of the output from p on. */
RO_INLINE void add_pixels(const form f, const depthwise_weight_target *t, int64_t p) {
    const grouped *g = t->f;
    const int64_t channels = g->s.channels, first = p * f.stride - g->g->v->pad[1];
    for (int64_t lane = 0; lane < channels; lane += VW) {
        const vf_mask mask = vf_first(channels - lane);
        const float *from = t->dy + p * channels + lane;
        float *sums = t->sums + lane / GROUP_LANES * g->k * GROUP_LANES + lane % GROUP_LANES;
        vf dy[DEPTH_PIXELS];
        RO_UNROLL
        for (int i = 0; i < f.pixels; i++)
            dy[i] = load_lanes(from + i * channels, mask);
        look_ahead(f, t, p, lane);
        for (int64_t r = 0; r < g->g->v->kernel[0]; r++, sums += f.taps * GROUP_LANES)
            if (t->line[r])
                add_row(f, t, first, t->line[r] + first * channels + lane, mask, dy, sums);
    }
}

RO_INLINE void add_count(const int width, const int stride, const depthwise_weight_target *t,
                         int64_t p, int64_t pixels, int edge) {
    if (pixels == 1)
        add_pixels((form){width, stride, 1, 1}, t, p);
    else if (pixels == DEPTH_FEW_PIXELS && edge)
        add_pixels((form){width, stride, DEPTH_FEW_PIXELS, 1}, t, p);
    else if (pixels == DEPTH_FEW_PIXELS)
        add_pixels((form){width, stride, DEPTH_FEW_PIXELS, 0}, t, p);
    else if (edge)
        add_pixels((form){width, stride, DEPTH_PIXELS, 1}, t, p);
    else
        add_pixels((form){width, stride, DEPTH_PIXELS, 0}, t, p);
}

RO_INLINE void add_width(const int stride, const depthwise_weight_target *t, int64_t p,
                         int64_t pixels, int edge) {
    switch (t->f->g->v->kernel[1]) {
    case 3: add_count(3, stride, t, p, pixels, edge); break;
    case 5: add_count(5, stride, t, p, pixels, edge); break;
    default: add_count(7, stride, t, p, pixels, edge); break;
    }
}

/* Adds pixels [p, end) of a line. */
static void add_line(const depthwise_weight_target *t, int64_t p, int64_t end) {
    const ro_conv *v = t->f->g->v;
    for (int64_t pixels; p < end; p += pixels) {
        pixels = end - p >= DEPTH_PIXELS       ? DEPTH_PIXELS
                 : end - p >= DEPTH_FEW_PIXELS ? DEPTH_FEW_PIXELS
                                               : 1;
        const int64_t first = p * v->stride[1] - v->pad[1];
        const int64_t cols = (pixels - 1) * v->stride[1] + v->kernel[1];
        const int edge = first < 0 || first + cols > v->in[1];
        if (v->stride[1] == 1)
            add_width(1, t, p, pixels, edge);
        else
            add_width(2, t, p, pixels, edge);
    }
}

int RO_NAME(ro_conv_is_depthwise_weight)(const gather *forward) {
    const int whole = VW == 16 || forward->v->channels % VW == 0;
    return whole && RO_NAME(ro_conv_is_depthwise)(forward);
}

void RO_NAME(ro_conv_depthwise_sums)(const grouped *f, const float *dy, int64_t k, int64_t end,
                                     float *sums) {
    const ro_conv *v = f->g->v;
    const int64_t line = k / v->out[1], size = f->s.size * f->s.channels;
    const int64_t image = line / v->out[0] * v->in[0];
    depthwise_weight_target t = {.f = f, .dy = dy + line * v->out[1] * v->channels, .sums = sums};
    int64_t at, latest = 0;
    for (int64_t r = 0; r < v->kernel[0]; r++) {
        pixel_at(f->g, 0, line % v->out[0], r, &at);
        t.line[r] = at < 0 || at >= v->in[0] ? NULL : f->s.image + (image + at) * size;
        latest = t.line[r] ? max_i64(latest, image + at) : latest;
    }
    t.lines = RO_NAME(ro_conv_depthwise_ahead)(v);
    t.ahead = f->s.image + (latest + 1) * size;
    add_line(&t, k % v->out[1], k % v->out[1] + end - k);
}
