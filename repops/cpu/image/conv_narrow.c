/* Convolutions of images with few channels (conv_narrow.h, SPEC.md section 12.1). */
#include "repops/cpu/image/conv_narrow.h"
#include "repops/cpu/image/conv_kernel.h"

/* ---- lines ---- */

/* Returns the floats of a line of the image, with what windows reach outside it. */
static int64_t line_size(const ro_conv *v) {
    return ((v->out[1] - 1) * v->stride[1] + (v->kernel[1] - 1) * v->dilation[1] + 1) * v->depth;
}

static int line_inside(const ro_conv *v, int64_t line, int64_t t, int64_t *h) {
    *h = line % v->out[0] * v->stride[0] + t * v->dilation[0] - v->pad[0];
    return *h >= 0 && *h < v->in[0];
}

/* Copies the lines of the image that the windows of output line `line` meet, with +0 outside. Lines
 * are counted through all images. */
static void copy_lines(const ro_conv *v, const float *x, int64_t line, float *to) {
    const int64_t n = line / v->out[0], size = line_size(v);
    const int64_t before = min_i64(size, v->pad[1] * v->depth);
    const int64_t here = min_i64(size - before, v->in[1] * v->depth);
    for (int64_t t = 0, h; t < v->kernel[0]; t++, to += size) {
        memset(to, 0, (size_t)size * sizeof(float));
        if (line_inside(v, line, t, &h))
            memcpy(to + before, x + (n * v->in[0] + h) * v->in[1] * v->depth,
                   (size_t)here * sizeof(float));
    }
}

/* ---- conv2d ---- */

/* Windows and vectors of filters whose sums stay in registers. With few filters, there are
 * registers for twice the windows. */
#if defined(RO_ISA_avx512) || defined(RO_ISA_neon)
enum { WINDOWS = 6, VECTORS = 4 };
#else
enum { WINDOWS = 6, VECTORS = 2 };
#endif
enum { MOST_WINDOWS = 2 * WINDOWS, FEW_VECTORS = VECTORS / 2 };

typedef struct {
    const ro_conv *v;
    const float *x, *weights;
    float *out, *workspace;
    int64_t workspace_size; /* floats for each thread */
    int64_t step;           /* stride of windows */
    tile_run runs[NARROW_TERMS];
    int64_t run_count;
} product;

/* `a` points to the first window's terms, `out` to its first of `cols` results. */
RO_INLINE void filter_windows(const int windows, const int vectors, const product *g,
                              const float *a, const float *b, int64_t cols, float *out) {
    const int64_t filters = g->v->filters, step = g->step;
    vf sum[MOST_WINDOWS][VECTORS];
    vf_mask mask[VECTORS];
    RO_UNROLL
    for (int v = 0; v < vectors; v++)
        mask[v] = vf_first(cols - v * VW);
    RO_UNROLL
    for (int i = 0; i < windows; i++) {
        RO_UNROLL
        for (int v = 0; v < vectors; v++) {
            __builtin_prefetch(out + i * filters + v * VW, 1);
            sum[i][v] = vf_set1(0.0f);
        }
    }
    for (int64_t q = 0; q < g->run_count; q++) {
        const float *at = a + g->runs[q].a;
        for (int64_t p = g->runs[q].k; p > 0; p--, at++, b += filters) {
            vf bv[VECTORS];
            RO_UNROLL
            for (int v = 0; v < vectors; v++)
                bv[v] = vf_load_mask(b + v * VW, mask[v]);
            RO_UNROLL
            for (int i = 0; i < windows; i++) {
                const vf av = vf_set1(at[i * step]);
                RO_UNROLL
                for (int v = 0; v < vectors; v++)
                    sum[i][v] = vf_fma(av, bv[v], sum[i][v]);
            }
        }
    }
    RO_UNROLL
    for (int i = 0; i < windows; i++) {
        RO_UNROLL
        for (int v = 0; v < vectors; v++)
            vf_store_n(out + i * filters + v * VW, vf_canon(vf_add(vf_set1(0.0f), sum[i][v])),
                       cols - v * VW);
    }
}

/* Computes all filters of some windows of a line. */
static void filter_strip(const product *g, int64_t windows, const float *a, float *out) {
    for (int64_t j = 0; j < g->v->filters; j += VECTORS * VW) {
        const int64_t cols = min_i64(VECTORS * VW, g->v->filters - j);
        const float *b = g->weights + j;
        switch (windows) {
        case 1: filter_windows(1, VECTORS, g, a, b, cols, out + j); break;
        case 2: filter_windows(2, VECTORS, g, a, b, cols, out + j); break;
        case 3: filter_windows(3, VECTORS, g, a, b, cols, out + j); break;
        case 4: filter_windows(4, VECTORS, g, a, b, cols, out + j); break;
        case 5: filter_windows(5, VECTORS, g, a, b, cols, out + j); break;
        default: filter_windows(6, VECTORS, g, a, b, cols, out + j); break;
        }
    }
}

/* Does what filter_strip does, for `vectors` vectors of filters and more windows at a time. */
RO_INLINE void filter_vectors(const int vectors, const product *g, int64_t windows, const float *a,
                              float *out) {
    const int64_t cols = g->v->filters;
    const float *b = g->weights;
    switch (windows) {
    case 7: filter_windows(7, vectors, g, a, b, cols, out); break;
    case 8: filter_windows(8, vectors, g, a, b, cols, out); break;
    case 9: filter_windows(9, vectors, g, a, b, cols, out); break;
    case 10: filter_windows(10, vectors, g, a, b, cols, out); break;
    case 11: filter_windows(11, vectors, g, a, b, cols, out); break;
    case 12: filter_windows(12, vectors, g, a, b, cols, out); break;
    default: filter_strip(g, windows, a, out); break;
    }
}

static void filter_few(const product *g, int64_t windows, const float *a, float *out) {
    if (g->v->filters <= VW)
        filter_vectors(1, g, windows, a, out);
    else
        filter_vectors(FEW_VECTORS, g, windows, a, out);
}

/* Computes lines of the output. */
static void run_lines(void *user, int64_t first, int64_t last, int worker) {
    const product *g = user;
    const ro_conv *v = g->v;
    float *lines = g->workspace + worker * g->workspace_size;
    const int few = v->filters <= FEW_VECTORS * VW;
    for (int64_t line = first; line < last; line++) {
        float *out = g->out + line * v->out[1] * v->filters;
        copy_lines(v, g->x, line, lines);
        for (int64_t w = 0, windows; w < v->out[1]; w += windows) {
            const int64_t left = v->out[1] - w;
            windows = ceil_div(left, ceil_div(left, few ? MOST_WINDOWS : WINDOWS));
            (few ? filter_few : filter_strip)(g, windows, lines + w * g->step,
                                              out + w * v->filters);
        }
    }
}

/* Lists the terms that are contiguous in the copied lines. */
static void list_runs(product *g) {
    const ro_conv *v = g->v;
    const int64_t size = line_size(v), together = v->dilation[1] == 1 ? v->kernel[1] : 1;
    for (int64_t t = 0; t < v->kernel[0]; t++)
        for (int64_t i = 0; i < v->kernel[1]; i += together)
            g->runs[g->run_count++] =
                (tile_run){t * size + i * v->dilation[1] * v->depth, 0, together * v->depth};
}

static int takes(conv_call *c) {
    return c->kind == RO_OP_CONV2D && narrow(c->v) && may_read_zeros(c);
}

static ro_status run(conv_call *c) {
    const ro_job *job = c->job;
    const ro_conv *v = c->v;
    const int threads = ro_ctx_threads(job->ctx);
    const int64_t lines = v->batch * v->out[0];
    const int64_t work = lines * v->out[1] * v->filters * terms_of_window(v);
    const int64_t items = work < 2 * CONV_PIECE_WORK ? 1 : 8 * threads;
    product g = {.v = v, .x = job->in[0], .weights = job->in[1], .out = job->out};
    g.step = v->stride[1] * v->depth;
    g.workspace_size = round_up(v->kernel[0] * line_size(v), 16);
    g.workspace = ro_workspace(job->ctx, (size_t)(threads * g.workspace_size) * sizeof(float));
    if (!g.workspace)
        return RO_ERR_MEMORY;
    list_runs(&g);
    ro_pool_for(ro_ctx_pool(job->ctx), lines, ceil_div(lines, items), run_lines, &g);
    return RO_OK;
}

const conv_kernel RO_NAME(ro_conv_narrow) = {"narrow", takes, run};

/* ---- conv2d_dw: dw is the transposed matrix of a chunk's terms, times dy ---- */

/* Copies the terms of windows [w, end) of a line, window by window. Stores run into what is stored
 * next. */
static void copy_windows(const ro_conv *v, const float *lines, int64_t w, int64_t end, float *to) {
    const int64_t across = v->kernel[1] * v->depth, tail = across % VW, size = line_size(v);
    const int64_t height = v->kernel[0], dilation = v->dilation[1] * v->depth;
    const vf_mask mask = vf_first(tail);
    for (; w < end; w++) {
        const float *from = lines + w * v->stride[1] * v->depth;
        for (int64_t t = 0; t < height; t++, from += size, to += across) {
            int64_t i = 0;
            if (dilation > v->depth) {
                for (int64_t c = 0; c < across; c++)
                    to[c] = from[c / v->depth * dilation + c % v->depth];
                continue;
            }
            for (; i < across - tail; i += VW)
                vf_store(to + i, vf_load(from + i));
            if (tail)
                vf_store(to + i, vf_load_mask(from + i, mask));
        }
    }
}

/* Returns whether dy is finite at those windows [w, end) of a line that have taps outside. */
static int finite_outside(const weight_part *s, int64_t line, int64_t w, int64_t end) {
    const ro_conv *v = &s->g->v;
    int64_t h, first[2], count[2];
    int outside = 0;
    for (int64_t t = 0; t < v->kernel[0]; t++)
        outside |= !line_inside(v, line, t, &h);
    inside(v, 1, -v->pad[1], &first[0], &count[0]);
    inside(v, 1, (v->kernel[1] - 1) * v->dilation[1] - v->pad[1], &first[1], &count[1]);
    for (; w < end; w++)
        if ((outside || w < first[0] || w >= first[1] + count[1]) &&
            !all_finite(s->g->dy + (line * v->out[1] + w) * v->filters + s->col, s->n))
            return 0;
    return 1;
}

/* Copies the terms of a chunk's windows [k, end). */
static void copy_chunk(const weight_part *s, int64_t k, int64_t end, float *lines, float *to) {
    const ro_conv *v = &s->g->v;
    for (int64_t count; k < end; k += count, to += count * s->m) {
        const int64_t line = k / v->out[1], w = k % v->out[1];
        count = min_i64(v->out[1] - w, end - k);
        copy_lines(v, s->g->x, line, lines);
        copy_windows(v, lines, w, w + count, to);
        if (s->g->outside && !finite_outside(s, line, w, w + count))
            atomic_store(&s->g->not_finite, 1);
    }
}

static void multiply_chunk(const weight_part *s, const float *a, int64_t k0, int64_t k) {
    const weights *g = s->g;
    const int64_t filters = g->v.filters;
    const int64_t rows = panel_rows(s->m, place_rows(s->n));
    const int64_t tiles = ceil_div(s->m, rows) * ceil_div(s->n, place_cols(rows, s->n));
    float *out = g->chunks ? g->chunks + k0 / RO_DOT_CHUNK * g->m * filters : g->dw;
    tile t = {.k = k, .a_row = 1, .a_step = s->m, .b_step = filters, .alpha = 1.0f};
    t.c_row = t.out_row = filters;
    t.flags = (k0 == 0 ? TILE_FIRST : 0) | (k0 + k >= g->k ? TILE_LAST : 0);
    if (g->chunks)
        t.flags = TILE_FIRST;
    t.ahead = g->dy + (k0 + k) * filters, t.ahead_step = ceil_div(filters, tiles);
    for (int64_t j = 0; j < s->n; j += t.cols) {
        t.cols = place_cols(rows, s->n - j);
        t.b = g->dy + k0 * filters + s->col + j;
        for (int64_t i = 0; i < s->m; i += rows, t.ahead += k * t.ahead_step) {
            t.a = a + i;
            t.c = t.out = out + (s->row + i) * filters + s->col + j;
            RO_NAME(ro_tile_place)((int)min_i64(rows, s->m - i), &t);
        }
    }
}

int64_t RO_NAME(ro_conv_narrow_workspace)(const ro_conv *v) {
    return round_up(v->kernel[0] * line_size(v) + RO_DOT_CHUNK * terms_of_window(v) + 2 * VW, 16);
}

void RO_NAME(ro_conv_narrow_weight)(const weight_part *s) {
    float *lines = s->a, *terms = lines + s->g->v.kernel[0] * line_size(&s->g->v) + VW;
    for (int64_t k0 = s->k0, k; k0 < s->k0 + s->k; k0 += k) {
        k = min_i64(RO_DOT_CHUNK, s->k0 + s->k - k0);
        copy_chunk(s, k0, k0 + k, lines, terms);
        multiply_chunk(s, terms, k0, k);
    }
}
