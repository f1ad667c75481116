/* conv2d_dw, SPEC.md section 12.1. Rows are the weights of one output channel, columns the output
 * channels, steps the pixels of the output. If a tap has enough rows, or dy is not finite, each tap
 * is a product of its own, over the pixels where it lies inside the image. Otherwise all taps are
 * one product. */
#include "repops/cpu/image/conv_kernel.h"
#include "repops/cpu/image/conv_narrow.h"

/* Packing dy for each tap pays from TAP_ROWS rows on, if one in TAP_ABSENT pixels lies outside. */
enum { TAP_ROWS = 4 * MR, TAP_ABSENT = 8 };

enum {
    CHUNKED = 1 << 13,      /* most elements of dw for which threads share its chunks */
    CHUNKED_MOST = 1 << 22, /* most floats of results in that case, as each chunk has its own */
};

/* ---- the product of some rows and columns ---- */

static window window_of(const weights *g, int64_t unit) {
    window w = {{0, 0}, {g->v.out[0], g->v.out[1]}};
    for (int d = 0; d < 2 && g->by_tap; d++)
        inside(&g->v, d, offset_of(&g->v, d, unit), &w.first[d], &w.count[d]);
    return w;
}

/* Returns how many steps before k are in the window. */
static int64_t steps_before(const ro_conv *v, const window *u, int64_t k) {
    const int64_t w = k % v->out[1], h = k / v->out[1] % v->out[0], n = k / v->out[1] / v->out[0];
    const int64_t lines = max_i64(0, min_i64(u->count[0], h - u->first[0]));
    const int64_t pixels = max_i64(0, min_i64(u->count[1], w - u->first[1]));
    const int here = h >= u->first[0] && h < u->first[0] + u->count[0];
    return (n * u->count[0] + lines) * u->count[1] + (here ? pixels : 0);
}

/* Runs one tile, chunk by chunk. */
static void run_chunks(const weight_part *s, int rows, tile t) {
    const weights *g = s->g;
    for (int64_t p = 0; p * RO_DOT_CHUNK < s->k; p++) {
        const int64_t k = s->k0 + p * RO_DOT_CHUNK;
        t.k = s->chunk[p];
        t.flags = (k == 0 ? TILE_FIRST : 0) | (k + RO_DOT_CHUNK >= g->k ? TILE_LAST : 0);
        tile now = t;
        if (g->chunks)
            now.flags = TILE_RAW, now.c += k / RO_DOT_CHUNK * g->m * g->v.filters;
        run_tile(rows, &now);
        t.a += t.k * t.a_step;
        t.b += t.k * NR;
        t.ahead += t.ahead ? t.k * t.ahead_step : 0;
    }
}

/* Makes the first tiles prefetch the next steps of dy, one cache line of each step per tile: only
 * if rows are few, so that packing dy takes a large part of the time. */
static void look_ahead(const weight_part *s, int64_t number, tile *t) {
    const weights *g = s->g;
    const int64_t next = s->k0 + s->k;
    t->ahead = NULL;
    if (g->m > CONV_MC || next >= g->k || number * 16 >= s->n)
        return;
    t->ahead = g->dy + next * g->v.filters + s->group * g->n + s->col + number * 16;
    t->ahead_step = g->v.filters;
}

/* Multiplies rows [i0, i0 + m) of the part, which are packed at s->a. */
static void multiply(const weight_part *s, int64_t i0, int64_t m) {
    const weights *g = s->g;
    const int64_t height = panel_rows(m, MR), width = panel_width(height), filters = g->v.filters;
    int64_t number = 0;
    float *out =
        (g->chunks ? g->chunks : g->dw) + (s->row + i0) * filters + s->group * g->n + s->col;
    for (int64_t j = 0; j < s->n; j += NR)
        for (int64_t i = 0; i < m; i += height) {
            const int64_t rows = min_i64(height, m - i);
            tile t = {.a = s->a + i / height * width * s->steps, .a_step = panel_width(rows)};
            t.b = s->b + j * s->steps, t.b_step = NR;
            t.c = t.out = out + i * filters + j, t.c_row = t.out_row = filters;
            t.cols = min_i64(NR, s->n - j), t.alpha = 1.0f;
            look_ahead(s, number++, &t);
            run_chunks(s, (int)rows, t);
        }
}

static void count_steps(weight_part *s) {
    int64_t before = steps_before(&s->g->v, &s->u, s->k0);
    s->steps = 0;
    for (int64_t p = 0; p < s->k; p += RO_DOT_CHUNK) {
        const int64_t end = s->k0 + min_i64(p + RO_DOT_CHUNK, s->k);
        const int64_t after = steps_before(&s->g->v, &s->u, end);
        s->chunk[p / RO_DOT_CHUNK] = after - before;
        s->steps += after - before;
        before = after;
    }
}

static void run_part(weight_part *s, int64_t end) {
    const weights *g = s->g;
    for (; s->k0 < end; s->k0 += s->k) {
        s->k = min_i64(CONV_KC, end - s->k0);
        if (g->narrow) {
            RO_NAME(ro_conv_narrow_weight)(s);
            continue;
        }
        count_steps(s);
        RO_NAME(ro_conv_pack_dy)(s);
        for (int64_t i0 = 0; i0 < s->m; i0 += CONV_MC) {
            const int64_t m = min_i64(CONV_MC, s->m - i0);
            RO_NAME(ro_conv_pack_x)(s, s->row + i0, m);
            multiply(s, i0, m);
        }
    }
}

static int64_t packed_rows(const weights *g) {
    return ceil_div(min_i64(CONV_MC, g->rows), MR) * panel_width(MR) + MR;
}

static void run_items(void *user, int64_t first, int64_t last, int worker) {
    weights *g = user;
    const int64_t blocks = ceil_div(g->k, g->depth);
    for (int64_t i = first; i < last; i++) {
        const int64_t item = i / blocks, product = item / g->across / g->down;
        const int64_t unit = product % g->units, row = item / g->across % g->down * g->rows;
        weight_part s = {.g = g, .group = product / g->units, .col = item % g->across * g->cols};
        s.u = window_of(g, unit);
        s.row = unit * g->m + row;
        s.m = min_i64(g->rows, g->m - row);
        s.n = min_i64(g->cols, g->n - s.col);
        s.k0 = i % blocks * g->depth;
        s.b = g->workspace + worker * g->workspace_size;
        s.a = s.b + g->cols * min_i64(CONV_KC, g->k);
        run_part(&s, min_i64(g->k, s.k0 + g->depth));
    }
}

/* Adds the results of chunks in order. An item is an element of dw. */
static void add_chunks(void *user, int64_t first, int64_t last, int worker) {
    const weights *g = user;
    const int64_t size = g->m * g->v.filters;
    float *restrict out = g->dw;
    (void)worker;
    for (int64_t e = first; e < last; e++)
        out[e] = 0.0f;
    for (int64_t k = 0; k < g->k; k += RO_DOT_CHUNK) {
        const float *restrict sum = g->chunks + k / RO_DOT_CHUNK * size;
        for (int64_t e = first; e < last; e++)
            out[e] = out[e] + sum[e];
    }
    for (int64_t e = first; e < last; e++)
        out[e] = ro_canon(out[e]);
}

/* ---- sharing ---- */

/* Returns how many pixels are inside, summed over all taps. */
static int64_t terms(const ro_conv *v) {
    int64_t sum[2] = {0, 0}, first, count;
    for (int d = 0; d < 2; d++)
        for (int64_t t = 0; t < v->kernel[d]; t++) {
            inside(v, d, t * v->dilation[d] - v->pad[d], &first, &count);
            sum[d] += count;
        }
    return v->batch * sum[0] * sum[1];
}

enum { MOST_COLS = 512 };

/* Cuts the products for threads. Every cut packs an operand once more. */
static void share(weights *g, int threads) {
    const int64_t work = g->units * g->m * g->n * g->v.groups * min_i64(g->k, CONV_PIECE_WORK);
    const int64_t many = work < 2 * CONV_PIECE_WORK ? 1 : threads;
    int64_t down = 1, across = ceil_div(g->n, MOST_COLS), items;
    const int chunked = many > 1 && g->units == 1 && g->m * g->v.filters <= CHUNKED &&
                        g->k >= 2 * many * CONV_KC &&
                        g->m * g->v.filters * ceil_div(g->k, RO_DOT_CHUNK) <= CHUNKED_MOST;
    g->depth = chunked ? CONV_KC : g->k;
    while (!chunked && (items = down * across * g->units * g->v.groups) < 8 * many &&
           (items < many || items % many) && (g->m > down * MR || g->n > across * NR)) {
        if (g->n > across * NR && (g->n / across >= g->m / down || g->m <= down * MR))
            across *= 2;
        else
            down *= 2;
    }
    g->rows = round_up(ceil_div(g->m, down), down > 1 ? MR : 1);
    g->cols = round_up(ceil_div(g->n, across), NR);
    g->down = ceil_div(g->m, g->rows);
    g->across = ceil_div(g->n, g->cols);
}

/* Allocates the workspace: a part for each thread, then results of chunks. */
static int weight_allocate(ro_ctx *ctx, weights *g) {
    const int64_t threads = ro_ctx_threads(ctx), k = min_i64(CONV_KC, g->k);
    const int64_t chunks = g->depth < g->k ? g->m * g->v.filters * ceil_div(g->k, RO_DOT_CHUNK) : 0;
    g->workspace_size = round_up((g->cols + packed_rows(g)) * k + VW, 16);
    if (g->narrow)
        g->workspace_size += RO_NAME(ro_conv_narrow_workspace)(&g->v);
    g->workspace =
        ro_workspace(ctx, (size_t)(threads * g->workspace_size + chunks) * sizeof(float));
    g->chunks = g->workspace && chunks ? g->workspace + threads * g->workspace_size : NULL;
    return g->workspace != NULL;
}

static int taps_pay(const weights *g) {
    const int64_t all = g->v.kernel[0] * g->v.kernel[1] * g->k;
    return g->v.depth >= TAP_ROWS && all - terms(&g->v) >= all / TAP_ABSENT;
}

static ro_status weight_run(ro_ctx *ctx, weights *g, int by_tap) {
    ro_pool *pool = ro_ctx_pool(ctx);
    const int threads = ro_ctx_threads(ctx);
    const ro_conv *v = &g->v;
    const int64_t area = v->kernel[0] * v->kernel[1];
    g->by_tap = by_tap;
    g->units = by_tap ? area : 1;
    g->m = by_tap ? v->depth : area * v->depth;
    g->outside = v->pad[0] > 0 || v->pad[1] > 0;
    share(g, threads);
    g->narrow = !by_tap && g->rows >= g->m && narrow(v);
    if (!weight_allocate(ctx, g))
        return RO_ERR_MEMORY;
    const int64_t products = g->down * g->across * v->groups * g->units;
    ro_pool_for(pool, products * ceil_div(g->k, g->depth), 1, run_items, g);
    if (g->chunks)
        ro_pool_for(pool, g->m * v->filters, ceil_div(g->m * v->filters, threads), add_chunks, g);
    return RO_OK;
}

static int takes(conv_call *c) {
    (void)c;
    return 1;
}

static ro_status run(conv_call *c) {
    weights g = weights_of(c);
    const ro_status status = weight_run(c->job->ctx, &g, taps_pay(&g));
    return status == RO_OK && atomic_load(&g.not_finite) ? weight_run(c->job->ctx, &g, 1) : status;
}

static const conv_kernel packed = {"packed", takes, run};

/* ---- the whole operator ---- */

/* Each comment says what a kernel is for, and its gain over the rows below it, as in conv.c. */
static const conv_kernel *const kernels[] = {
    /* Long lines, with channels and filters that stay in a cache: x in place. 1.35 and 1.22. */
    &RO_NAME(ro_conv_lanes_weight),
    /* 1 x 1: an ordinary product. */
    &RO_NAME(ro_conv_pixels_weight),
    /* Few channels per group: as for conv2d, with sums of each chunk. 6.9 and 6.0. */
    &RO_NAME(ro_conv_grouped_weight),
    /* All others. With few channels, conv_narrow.c copies windows, not packs: 1.6 and 1.5. */
    &packed,
};

static ro_status conv2d_dw(const ro_job *job) {
    const ro_conv v = conv_of(job);
    grouped groups;
    if (no_terms(job))
        return RO_OK;
    gather g = forward_gather(&v, job->in[0]);
    return run_conv(kernels, &(conv_call){job, RO_OP_CONV2D_DW, &v, &g, &groups});
}
RO_KERNEL(conv2d_dw, .run = conv2d_dw)
