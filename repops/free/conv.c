/* Convolutions, SPEC.md section 12.1, as implicit products of gemm.h: operand a is gathered from
 * the image while it is packed, with 0 if a tap is outside. */
#include "repops/free/gemm.h"

#include "repops/src/conv.h"

/* A tap. It meets the pixel of the image at the product's position times step, plus `at`. */
typedef struct {
    int64_t at[2];
    int64_t number; /* kh KW + kw */
} tap;

typedef struct {
    const ro_conv *v;
    const float *image;            /* [batch, size, pixel] */
    int64_t size[2], pixel, depth; /* depth: channels of a group */
    int64_t count[2], step[2];     /* positions of the product, and their strides in the image */
    int64_t first[2], spread[2], out_size[2], out_pixel; /* first position in the output; strides */
    int64_t width;                                       /* channels of a group in the output */
    const tap *taps;
    const float *weights;
} gather;

typedef struct {
    int64_t n, at[2];
} position;

static position position_of(const gather *x, int64_t i) {
    const int64_t line = i / x->count[1];
    return (position){line / x->count[0], {line % x->count[0], i % x->count[1]}};
}

static void next_position(const gather *x, position *p) {
    if (++p->at[1] < x->count[1])
        return;
    p->at[1] = 0;
    if (++p->at[0] < x->count[0])
        return;
    p->at[0] = 0;
    p->n++;
}

/* Returns the pixel that tap t meets at position p, or NULL outside. */
static const float *pixel_of(const gather *x, const position *p, const tap *t) {
    const int64_t h = p->at[0] * x->step[0] + t->at[0], w = p->at[1] * x->step[1] + t->at[1];
    if ((uint64_t)h >= (uint64_t)x->size[0] || (uint64_t)w >= (uint64_t)x->size[1])
        return NULL;
    return x->image + ((p->n * x->size[0] + h) * x->size[1] + w) * x->pixel;
}

/* ---- conv2d and conv2d_dx: rows are positions, k is (tap, channel) ---- */

/* Some steps of one tap, from step `at` of a packed part on. */
typedef struct {
    int64_t tap, channel, steps;
} segment;

static segment segment_of(const gather *x, const free_part *part, int64_t at) {
    const int64_t k = part->k + at, channel = k % x->depth;
    return (segment){k / x->depth, channel, min_i64(x->depth - channel, part->steps - at)};
}

/* Returns where the packed lines of a segment are stored. */
static real *line_of(const free_part *part, int64_t at, int64_t steps, int64_t width, real *to) {
    return to + (part->reverse ? part->steps - at - steps : at) * width;
}

static void pack_positions(const free_gemm *g, const free_part *part, real *to) {
    const gather *x = g->user;
    const int64_t channel = part->product * x->depth;
    const float *from[FREE_PANEL];
    position at[FREE_PANEL], next = position_of(x, part->lane);
    for (int64_t i = 0; i < part->lanes; i++, next_position(x, &next))
        at[i] = next;
    segment s;
    for (int64_t p = 0; p < part->steps; p += s.steps) {
        s = segment_of(x, part, p);
        for (int64_t i = 0; i < part->lanes; i++) {
            from[i] = pixel_of(x, &at[i], &x->taps[s.tap]);
            from[i] = from[i] ? from[i] + channel + s.channel : NULL;
        }
        RO_FREE_NAME(ro_free_pack_lanes)
        (from, part->lanes, s.steps, part->reverse, FREE_PANEL,
         line_of(part, p, s.steps, FREE_PANEL, to));
    }
}

static const float *position_term(const free_gemm *g, int64_t group, int64_t row, int64_t k) {
    const gather *x = g->user;
    const position p = position_of(x, row);
    const float *pixel = pixel_of(x, &p, &x->taps[k / x->depth]);
    return pixel ? pixel + group * x->depth + k % x->depth : NULL;
}

static int64_t position_place(const free_gemm *g, int64_t group, int64_t row) {
    const gather *x = g->user;
    const position p = position_of(x, row);
    const int64_t h = x->first[0] + p.at[0] * x->spread[0];
    const int64_t w = x->first[1] + p.at[1] * x->spread[1];
    return ((p.n * x->out_size[0] + h) * x->out_size[1] + w) * x->out_pixel + group * x->width;
}

/* Packs the filters of conv2d_dx: column ci of step (tap, f') is w[tap, ci, f]. */
static void pack_filters(const free_gemm *g, const free_part *part, real *to) {
    const gather *x = g->user;
    const int64_t filters = x->v->filters;
    const float *from[FREE_WIDEST];
    segment s;
    for (int64_t p = 0; p < part->steps; p += s.steps) {
        s = segment_of(x, part, p);
        const int64_t line = x->taps[s.tap].number * x->v->depth + part->lane;
        for (int64_t i = 0; i < part->lanes; i++)
            from[i] = x->weights + (line + i) * filters + part->product * x->depth + s.channel;
        RO_FREE_NAME(ro_free_pack_lanes)
        (from, part->lanes, s.steps, part->reverse, FREE_NR,
         line_of(part, p, s.steps, FREE_NR, to));
    }
}

static int pads(const ro_conv *v) {
    return v->pad[0] > 0 || v->pad[1] > 0;
}

/* Returns whether the image is a matrix of pixels: the kernel is 1 x 1, without stride and
 * padding. */
static int pointwise(const ro_conv *v) {
    return v->kernel[0] == 1 && v->kernel[1] == 1 && v->stride[0] == 1 && v->stride[1] == 1 &&
           !pads(v);
}

/* Treats the image as a matrix whose rows are pixels. */
static void as_matrix(free_gemm *g, const gather *x) {
    g->pack_a = NULL, g->term = NULL, g->absent = 0;
    g->a = (free_matrix){x->image, x->pixel, 1, x->depth, 0};
}

static tap *new_taps(ro_ctx *ctx, const ro_conv *v) {
    tap *taps = ro_host_alloc(ctx, (size_t)(v->kernel[0] * v->kernel[1]) * sizeof *taps);
    if (!taps)
        (void)ro_fail(ctx, RO_ERR_MEMORY, "no memory for the taps of a convolution");
    return taps;
}

/* Lists all taps as offsets in the image from a window's first pixel. */
static void list_taps(const ro_conv *v, tap *taps) {
    for (int64_t h = 0; h < v->kernel[0]; h++)
        for (int64_t w = 0; w < v->kernel[1]; w++)
            *taps++ = (tap){{h * v->dilation[0] - v->pad[0], w * v->dilation[1] - v->pad[1]},
                            h * v->kernel[1] + w};
}

static ro_status conv2d(const ro_free_job *job) {
    const ro_conv v = ro_conv_of(job->call);
    tap *taps = new_taps(job->ctx, &v);
    if (!taps)
        return RO_ERR_MEMORY;
    list_taps(&v, taps);
    gather x = {.v = &v, .image = job->in[0], .pixel = v.channels, .depth = v.depth};
    x.spread[0] = x.spread[1] = 1, x.out_pixel = v.filters, x.width = v.width, x.taps = taps;
    for (int d = 0; d < 2; d++) {
        x.size[d] = v.in[d], x.step[d] = v.stride[d];
        x.count[d] = x.out_size[d] = v.out[d];
    }
    free_gemm g = {.products = v.groups,
                   .m = v.batch * v.out[0] * v.out[1],
                   .n = v.width,
                   .k = v.kernel[0] * v.kernel[1] * v.depth,
                   .inner = 1,
                   .b = {job->in[1], 1, v.filters, v.width, 0},
                   .pack_a = pack_positions,
                   .term = position_term,
                   .place = position_place,
                   .alpha = 1.0f,
                   .absent = pads(&v),
                   .user = &x};
    if (pointwise(&v))
        as_matrix(&g, &x);
    const ro_status status = RO_FREE_NAME(ro_free_multiply)(job, &g);
    ro_host_free(job->ctx, taps);
    return status;
}
RO_FREE_KERNEL(conv2d, .run = conv2d)

/* Sets *at to the window that has tap `number` at the first position with `remainder` modulo the
 * stride. Returns 0 if no such position has one. */
static int window_of(const ro_conv *v, int d, int64_t number, int64_t remainder, int64_t *at) {
    const int64_t from = remainder + v->pad[d] - number * v->dilation[d];
    *at = from / v->stride[d];
    return from % v->stride[d] == 0;
}

static int64_t list_windows(const ro_conv *v, const int64_t remainder[2], tap *taps) {
    int64_t count = 0;
    for (int64_t h = 0; h < v->kernel[0]; h++)
        for (int64_t w = 0; w < v->kernel[1]; w++) {
            tap t = {.number = h * v->kernel[1] + w};
            if (window_of(v, 0, h, remainder[0], &t.at[0]) &&
                window_of(v, 1, w, remainder[1], &t.at[1]))
                taps[count++] = t;
        }
    return count;
}

/* Multiplies for the pixels with one pair of remainders modulo the strides, which all meet the same
 * taps. */
static ro_status multiply_remainder(const ro_free_job *job, const ro_conv *v, tap *taps,
                                    const int64_t remainder[2]) {
    gather x = {.v = v, .image = job->in[0], .pixel = v->filters, .depth = v->width};
    x.step[0] = x.step[1] = 1, x.out_pixel = v->channels, x.width = v->depth, x.taps = taps;
    x.weights = job->in[1];
    for (int d = 0; d < 2; d++) {
        x.size[d] = v->out[d], x.out_size[d] = v->in[d];
        x.first[d] = remainder[d], x.spread[d] = v->stride[d];
        x.count[d] = ceil_div(v->in[d] - remainder[d], v->stride[d]);
    }
    free_gemm g = {.products = v->groups,
                   .m = v->batch * x.count[0] * x.count[1],
                   .n = v->depth,
                   .k = list_windows(v, remainder, taps) * v->width,
                   .inner = 1,
                   .pack_a = pack_positions,
                   .pack_b = pack_filters,
                   .term = position_term,
                   .place = position_place,
                   .alpha = 1.0f,
                   .absent = 1,
                   .user = &x};
    if (pointwise(v))
        as_matrix(&g, &x);
    return RO_FREE_NAME(ro_free_multiply)(job, &g);
}

static ro_status conv2d_dx(const ro_free_job *job) {
    const ro_conv v = ro_conv_of(job->call);
    ro_status status = RO_OK;
    int64_t r[2];
    tap *taps = new_taps(job->ctx, &v);
    if (!taps)
        return RO_ERR_MEMORY;
    for (r[0] = 0; r[0] < min_i64(v.stride[0], v.in[0]); r[0]++)
        for (r[1] = 0; r[1] < min_i64(v.stride[1], v.in[1]) && status == RO_OK; r[1]++)
            status = multiply_remainder(job, &v, taps, r);
    ro_host_free(job->ctx, taps);
    return status;
}
RO_FREE_KERNEL(conv2d_dx, .run = conv2d_dx)

/* ---- conv2d_dw: rows are (tap, channel), k is windows ---- */

/* Consecutive lanes of one tap. */
typedef struct {
    int64_t tap, channel, lane, lanes;
} stretch;

static int64_t list_stretches(const gather *x, const free_part *part, stretch *to) {
    int64_t count = 0;
    for (int64_t i = 0; i < part->lanes; i += to[count++].lanes) {
        const int64_t row = part->lane + i, channel = row % x->depth;
        to[count] = (stretch){row / x->depth, part->product * x->depth + channel, i,
                              min_i64(part->lanes - i, x->depth - channel)};
    }
    return count;
}

/* Copies whole vectors. This overwrites what follows, which is stored next. */
RO_INLINE void copy_lanes(const float *from, int64_t lanes, float *to) {
    for (int64_t i = 0; i < lanes; i += VW)
        vf_store(to + i, from ? vf_load_n(from + i, lanes - i) : vf_set1(0.0f));
}

/* The pixels that a stretch meets along a line of windows. Window w, if in [first, last), meets the
 * channels from image[at + w * step] on. */
typedef struct {
    int64_t at, step, first, last;
} line_view;

static line_view view_of(const gather *x, const position *p, const stretch *s) {
    const tap *t = &x->taps[s->tap];
    const int64_t h = p->at[0] * x->step[0] + t->at[0], stride = x->step[1];
    if ((uint64_t)h >= (uint64_t)x->size[0])
        return (line_view){0};
    const int64_t pixel = (p->n * x->size[0] + h) * x->size[1] + t->at[1];
    return (line_view){pixel * x->pixel + s->channel, stride * x->pixel,
                       t->at[1] < 0 ? ceil_div(-t->at[1], stride) : 0,
                       ceil_div(max_i64(0, x->size[1] - t->at[1]), stride)};
}

static void pack_windows(const free_gemm *g, const free_part *part, real *to) {
    const gather *x = g->user;
    stretch list[FREE_PANEL];
    line_view view[FREE_PANEL];
    float line[FREE_PANEL + VW];
    const int64_t count = list_stretches(x, part, list);
    position at = position_of(x, part->k);
    for (int64_t i = 0; i < FREE_PANEL + VW; i++)
        line[i] = 0;
    for (int64_t p = 0; p < part->steps; p++, next_position(x, &at)) {
        const int64_t w = at.at[1];
        for (int64_t i = 0; i < count; i++) {
            if (p == 0 || w == 0)
                view[i] = view_of(x, &at, &list[i]);
            const line_view *v = &view[i];
            const float *from =
                w >= v->first && w < v->last ? x->image + (v->at + w * v->step) : NULL;
            copy_lanes(from, list[i].lanes, line + list[i].lane);
        }
        real *row = to + (part->reverse ? part->steps - 1 - p : p) * FREE_PANEL;
        for (int64_t i = 0; i < FREE_PANEL; i += VW)
            free_put(row + i, vf_load(line + i));
    }
}

static const float *window_term(const free_gemm *g, int64_t group, int64_t row, int64_t k) {
    const gather *x = g->user;
    const position p = position_of(x, k);
    const float *pixel = pixel_of(x, &p, &x->taps[row / x->depth]);
    return pixel ? pixel + group * x->depth + row % x->depth : NULL;
}

static int64_t weight_place(const free_gemm *g, int64_t group, int64_t row) {
    const gather *x = g->user;
    return row * x->v->filters + group * x->width;
}

static ro_status conv2d_dw(const ro_free_job *job) {
    const ro_conv v = ro_conv_of(job->call);
    tap *taps = new_taps(job->ctx, &v);
    if (!taps)
        return RO_ERR_MEMORY;
    list_taps(&v, taps);
    gather x = {.v = &v, .image = job->in[0], .pixel = v.channels, .depth = v.depth, .taps = taps};
    x.width = v.width;
    for (int d = 0; d < 2; d++)
        x.size[d] = v.in[d], x.step[d] = v.stride[d], x.count[d] = v.out[d];
    free_gemm g = {.products = v.groups,
                   .m = v.kernel[0] * v.kernel[1] * v.depth,
                   .n = v.width,
                   .k = v.batch * v.out[0] * v.out[1],
                   .inner = 1,
                   .b = {job->in[1], 1, v.filters, v.width, 0},
                   .pack_a = pack_windows,
                   .term = window_term,
                   .place = weight_place,
                   .alpha = 1.0f,
                   .absent = pads(&v),
                   .user = &x};
    if (pointwise(&v)) {
        as_matrix(&g, &x);
        g.a.lane_step = 1, g.a.k_step = x.pixel;
    }
    const ro_status status = RO_FREE_NAME(ro_free_multiply)(job, &g);
    ro_host_free(job->ctx, taps);
    return status;
}
RO_FREE_KERNEL(conv2d_dw, .run = conv2d_dw)
