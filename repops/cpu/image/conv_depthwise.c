/* Depthwise convolutions (conv_depthwise.h, SPEC.md section 12.1). A few pixels of an output line
 * are computed at a time, for one vector of channels after the other. */
#include "repops/cpu/image/conv_depthwise.h"
#include "repops/cpu/image/conv_kernel.h"
#include "repops/cpu/rows/stream.h"

enum { MOST_COLS = (DEPTH_PIXELS - 1) * DEPTH_STRIDE + DEPTH_TAPS };

typedef struct {
    const gather *g;
    int64_t left;  /* pixels by which a window starts before its position */
    int64_t ahead; /* lines of the image to prefetch */
    int streamed;  /* the output is too large for a cache */
} depthwise;

/* A line of the output. */
typedef struct {
    const depthwise *all;
    const float *line[DEPTH_LINES]; /* pixel 0 for each line of the kernel; NULL: outside */
    const float *ahead;             /* the next line of the image */
    float *out;
} depthwise_target;

/* ---- sums over taps ---- */

/* The kind of a group of pixels. At an `edge` columns may lie outside the image, and are read as
 * zeros. */
typedef struct {
    int taps, stride, mirrored, pixels, edge;
} form;

RO_INLINE void filter_vector(const form f, const depthwise_target *t, int64_t first, int64_t lane,
                             vf sum[DEPTH_PIXELS]) {
    const gather *g = t->all->g;
    const int64_t channels = g->pixel, size = g->size[1];
    const int cols = (f.pixels - 1) * f.stride + f.taps;
    const float *w = g->weights + lane;
    RO_UNROLL
    for (int i = 0; i < f.pixels; i++)
        sum[i] = vf_set1(0.0f);
    for (int64_t r = 0; r < g->v->kernel[0]; r++, w += f.taps * channels) {
        const float *x = t->line[r];
        vf at[MOST_COLS];
        if (!x)
            continue;
        x += first * channels + lane;
        RO_UNROLL
        for (int c = 0; c < cols; c++) {
            const int may_be = f.edge && (c < f.taps - 1 || c > cols - f.taps);
            const int outside = may_be && (uint64_t)(first + c) >= (uint64_t)size;
            at[c] = outside ? vf_set1(0.0f) : vf_load(x + c * channels);
        }
        RO_UNROLL
        for (int k = 0; k < f.taps; k++) {
            const vf wv = vf_load(w + k * channels);
            RO_UNROLL
            for (int i = 0; i < f.pixels; i++)
                sum[i] = vf_fma(at[i * f.stride + (f.mirrored ? f.taps - 1 - k : k)], wv, sum[i]);
        }
    }
}

/* Prefetches what the next output line reads for the first time, and where it is stored. */
RO_INLINE void look_ahead(const form f, const depthwise_target *t, int64_t p, int64_t lane) {
    const depthwise *all = t->all;
    const int64_t channels = all->g->pixel, size = all->g->size[1] * channels;
    const float *out = t->out + (all->g->out_size[1] + p) * channels + lane;
    for (int64_t i = 0; i < all->ahead; i++) {
        const float *line = t->ahead + i * size + p * f.stride * channels + lane;
        RO_UNROLL
        for (int c = 0; c < f.pixels * f.stride; c++)
            __builtin_prefetch(line + c * channels, 0, 2);
    }
    if (all->ahead == 0 || all->streamed)
        return;
    RO_UNROLL
    for (int i = 0; i < f.pixels; i++)
        __builtin_prefetch(out + i * channels, 1);
}

/* Computes pixels of the output from p on. The last vector of channels may overlap the one before
 * it. */
RO_INLINE void filter_pixels(const form f, const depthwise_target *t, int64_t p) {
    const gather *g = t->all->g;
    const int64_t channels = g->pixel, first = p * f.stride - t->all->left;
    for (int64_t next = 0; next < channels; next += VW) {
        const int64_t lane = min_i64(next, channels - VW);
        float *out = t->out + p * channels + lane;
        vf sum[DEPTH_PIXELS];
        look_ahead(f, t, p, lane);
        filter_vector(f, t, first, lane, sum);
        RO_UNROLL
        for (int i = 0; i < f.pixels; i++) {
            const vf y = vf_canon(vf_add(vf_set1(0.0f), sum[i]));
            if (t->all->streamed)
                stream(out + i * channels, y);
            else
                vf_store(out + i * channels, y);
        }
    }
}

RO_INLINE void filter_form(const int width, const int stride, const int mirrored, const int pixels,
                           const depthwise_target *t, int64_t p, int edge) {
    if (edge)
        filter_pixels((form){width, stride, mirrored, pixels, 1}, t, p);
    else
        filter_pixels((form){width, stride, mirrored, pixels, 0}, t, p);
}

RO_INLINE void filter_width(const int stride, const int mirrored, const int pixels,
                            const depthwise_target *t, int64_t p, int edge) {
    switch (t->all->g->v->kernel[1]) {
    case 3: filter_form(3, stride, mirrored, pixels, t, p, edge); break;
    case 5: filter_form(5, stride, mirrored, pixels, t, p, edge); break;
    default: filter_form(7, stride, mirrored, pixels, t, p, edge); break;
    }
}

RO_INLINE void filter_count(const int pixels, const depthwise_target *t, int64_t p, int edge) {
    const gather *g = t->all->g;
    if (g->backward)
        filter_width(1, 1, pixels, t, p, edge);
    else if (g->step[1] == 2)
        filter_width(2, 0, pixels, t, p, edge);
    else
        filter_width(1, 0, pixels, t, p, edge);
}

/* The last group of pixels may overlap the one before it. With 16 registers and a stride, the
 * columns of a large group do not fit. */
static void filter_line(const depthwise_target *t) {
    const gather *g = t->all->g;
    const int64_t width = g->out_size[1], step = g->step[1];
    const int64_t pixels =
        width < DEPTH_PIXELS || (VW == 8 && step > 1) ? DEPTH_FEW_PIXELS : DEPTH_PIXELS;
    const int64_t cols = (pixels - 1) * step + g->v->kernel[1];
    for (int64_t next = 0; next < width; next += pixels) {
        const int64_t p = min_i64(next, width - pixels), first = p * step - t->all->left;
        const int edge = first < 0 || first + cols > g->size[1];
        if (pixels == DEPTH_PIXELS)
            filter_count(DEPTH_PIXELS, t, p, edge);
        else
            filter_count(DEPTH_FEW_PIXELS, t, p, edge);
    }
}

/* ---- the whole operator ---- */

/* Computes lines of the output, counted through all images. */
static void run_lines(void *user, int64_t first, int64_t last, int worker) {
    const depthwise *all = user;
    const gather *g = all->g;
    const int64_t size = g->size[1] * g->pixel;
    depthwise_target t = {.all = all};
    (void)worker;
    for (int64_t line = first; line < last; line++) {
        const int64_t image = line / g->out_size[0] * g->size[0];
        int64_t at, latest = 0;
        for (int64_t r = 0; r < g->v->kernel[0]; r++) {
            pixel_at(g, 0, line % g->out_size[0], r, &at);
            t.line[r] = at < 0 || at >= g->size[0] ? NULL : g->image + (image + at) * size;
            latest = t.line[r] ? max_i64(latest, image + at) : latest;
        }
        t.ahead = g->image + (latest + 1) * size;
        t.out = g->out + line * g->out_size[1] * g->out_pixel;
        filter_line(&t);
    }
    end_stream();
}

/* Returns 0 if a cache holds the images, so that no prefetch is needed. */
int64_t RO_NAME(ro_conv_depthwise_ahead)(const ro_conv *v) {
    const int64_t pixels = v->in[0] * v->in[1] + v->out[0] * v->out[1];
    return v->batch * pixels * v->channels < STREAMED ? 0 : v->stride[0];
}

int RO_NAME(ro_conv_is_depthwise)(const gather *g) {
    const ro_conv *v = g->v;
    const int64_t width = v->kernel[1], stride = v->stride[1];
    if (v->depth != 1 || v->width != 1 || v->channels < VW || v->dilation[1] != 1 ||
        v->pad[1] >= width)
        return 0;
    if ((width != 3 && width != 5 && width != 7) || v->kernel[0] > DEPTH_LINES ||
        stride > DEPTH_STRIDE)
        return 0;
    return g->out_size[1] >= DEPTH_FEW_PIXELS && !(g->backward && (stride > 1 || v->stride[0] > 1));
}

static int takes(conv_call *c) {
    return RO_NAME(ro_conv_is_depthwise)(c->g) && may_read_zeros(c);
}

static ro_status run(conv_call *c) {
    ro_ctx *ctx = c->job->ctx;
    const gather *g = c->g;
    const int64_t lines = g->v->batch * g->out_size[0], pixels = lines * g->out_size[1];
    const int64_t work = pixels * g->pixel * g->v->kernel[0] * g->v->kernel[1];
    const int64_t items = work < 2 * CONV_PIECE_WORK ? 1 : 8 * ro_ctx_threads(ctx);
    depthwise all = {.g = g, .left = g->v->pad[1]};
    if (g->backward)
        all.left = g->v->kernel[1] - 1 - g->v->pad[1];
    all.ahead = RO_NAME(ro_conv_depthwise_ahead)(g->v);
    all.streamed = rows_stream(g->out, pixels, g->out_pixel);
    ro_pool_for(ro_ctx_pool(ctx), lines, ceil_div(lines, items), run_lines, &all);
    return RO_OK;
}

const conv_kernel RO_NAME(ro_conv_depthwise) = {"depthwise", takes, run};
