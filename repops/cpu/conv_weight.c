/* conv2d_dw, SPEC.md section 12.1. Rows are the weights of one output channel, columns the output
 * channels, steps the pixels of the output; conv.h says how a comes to be packed. */
#include "repops/cpu/conv.h"

#include <stdatomic.h>

typedef struct {
    ro_conv v;
    const float *x, *dy;
    float *dw;
    int64_t m, n, k; /* of one group's product */
    int outside;
    atomic_int not_finite;
    /* how the work is shared */
    int64_t rows, cols, down, across;
    float *workspace;
    int64_t workspace_size; /* of one thread */
} weights;

/* ---- a: rows i of a tap are neighbours in x ---- */

/* Steps are pixels of the output; this walks over them. */
typedef struct {
    int64_t n, h, w;
} cursor;

static cursor cursor_of(const ro_conv *v, int64_t step) {
    return (cursor){step / v->out[1] / v->out[0], step / v->out[1] % v->out[0], step % v->out[1]};
}

static void next_line(const ro_conv *v, cursor *at) {
    at->w = 0;
    if (++at->h == v->out[0])
        at->h = 0, at->n++;
}

/* Rows [lane, lane + count) of a panel, all of one tap. A store of whole vectors runs over into the
 * step that follows, which is written next. */
typedef struct {
    const ro_conv *v;
    int64_t at[2];  /* of the tap's pixel: position * stride + at */
    const float *x; /* the first row's channel */
    int64_t count, width;
    int whole; /* the run is all of the panel */
} run;

RO_INLINE void put_zeros(const run *r, int64_t steps, float *to) {
    for (int64_t p = 0; p < steps; p++, to += r->width)
        for (int64_t i = 0; i < r->count; i++)
            to[i] = 0.0f;
}

/* One vector holds a panel's step (of scalar code, several do). */
RO_INLINE void copy_whole(const float *from, int64_t from_step, int64_t steps, int64_t count,
                          int64_t width, float *to) {
    for (int64_t p = 0; p < steps; p++, from += from_step, to += width)
        for (int64_t i = 0; i < ((int)VW < (int)MR ? count : 1); i += VW)
            vf_store(to + i, vf_load_n(from + i, count - i));
}

static void copy_lanes(const run *r, const float *from, int64_t from_step, int64_t steps,
                       float *to) {
    if (r->whole) {
        copy_whole(from, from_step, steps, r->count, r->width, to);
        return;
    }
    for (int64_t p = 0; p < steps; p++, from += from_step, to += r->width)
        for (int64_t i = 0; i < r->count; i++)
            to[i] = from[i];
}

/* `steps` of one line of the output, from column w on: the first and last of them may lie outside.
 */
static void gather_line(const run *r, const cursor *at, int64_t steps, float *to) {
    const ro_conv *v = r->v;
    const int64_t h = at->h * v->stride[0] + r->at[0], step = v->stride[1];
    const int64_t w = at->w * step + r->at[1];
    int64_t first = w < 0 ? ceil_div(-w, step) : 0;
    int64_t end = w < v->in[1] ? ceil_div(v->in[1] - w, step) : 0;
    first = h < 0 || h >= v->in[0] ? steps : min_i64(first, steps);
    end = max_i64(first, min_i64(end, steps));
    put_zeros(r, first, to);
    if (end > first)
        copy_lanes(r, r->x + ((at->n * v->in[0] + h) * v->in[1] + w + first * step) * v->channels,
                   step * v->channels, end - first, to + first * r->width);
    put_zeros(r, steps - end, to + end * r->width);
}

static void gather_run(const run *r, int64_t k0, int64_t k, float *to) {
    cursor at = cursor_of(r->v, k0);
    for (int64_t p = 0; p < k; next_line(r->v, &at)) {
        const int64_t steps = min_i64(r->v->out[1] - at.w, k - p);
        gather_line(r, &at, steps, to + p * r->width);
        p += steps;
    }
}

static void gather_panel(const weights *g, int64_t group, int64_t row, int64_t rows, int64_t k0,
                         int64_t k, float *to) {
    const ro_conv *v = &g->v;
    for (int64_t lane = 0; lane < rows;) {
        const int64_t t = (row + lane) / v->depth, c = (row + lane) % v->depth;
        run r = {.v = v, .x = g->x + group * v->depth + c, .width = rows};
        r.count = min_i64(rows - lane, v->depth - c);
        r.whole = r.count == rows;
        r.at[0] = t / v->kernel[1] * v->dilation[0] - v->pad[0];
        r.at[1] = t % v->kernel[1] * v->dilation[1] - v->pad[1];
        gather_run(&r, k0, k, to + lane);
        lane += r.count;
    }
}

/* ---- the product of some rows and columns ---- */

typedef struct {
    weights *g;
    int64_t group, row, m, col, n;
    float *a, *b;
} part;

static void pack_b(const part *s, int64_t k0, int64_t k) {
    const weights *g = s->g;
    const int64_t filters = g->v.filters;
    const float *from = g->dy + k0 * filters + s->group * g->n + s->col;
    for (int64_t j = 0; j < s->n; j += NR) {
        const int64_t cols = min_i64(NR, s->n - j);
        pack(&(panel){from + j, 1, filters, cols, NR, k}, s->b + j * k);
    }
    if (g->outside && !all_finite(s->b, round_up(s->n, NR) * k))
        atomic_store(&s->g->not_finite, 1);
}

/* Rows [i, i + m) of the part are packed at s->a. */
static void run_rows(const part *s, int64_t i0, int64_t m, int64_t k0, int64_t k) {
    const weights *g = s->g;
    const int64_t height = panel_height(m), filters = g->v.filters;
    float *out = g->dw + (s->row + i0) * filters + s->group * g->n + s->col;
    for (int64_t j = 0; j < s->n; j += NR) {
        for (int64_t i = 0; i < m; i += height) {
            const int64_t rows = min_i64(height, m - i);
            tile t = {.a = s->a + i * k, .a_step = rows, .b = s->b + j * k, .b_step = NR};
            t.c = t.out = out + i * filters + j, t.c_row = t.out_row = filters;
            t.cols = min_i64(NR, s->n - j), t.alpha = 1.0f;
            for (int64_t p = 0; p < k; p += t.k) {
                t.k = min_i64(RO_DOT_CHUNK, k - p);
                t.flags = k0 + p == 0 ? TILE_FIRST : 0;
                t.flags |= k0 + p + t.k == g->k ? TILE_LAST : 0;
                run_tile((int)rows, &t);
                t.a += t.k * rows;
                t.b += t.k * NR;
            }
        }
    }
}

static void run_part(const part *s) {
    const weights *g = s->g;
    for (int64_t k0 = 0; k0 < g->k; k0 += CONV_KC) {
        const int64_t k = min_i64(CONV_KC, g->k - k0);
        pack_b(s, k0, k);
        for (int64_t i0 = 0; i0 < s->m; i0 += CONV_MC) {
            const int64_t m = min_i64(CONV_MC, s->m - i0), height = panel_height(m);
            for (int64_t i = 0; i < m; i += height)
                gather_panel(g, s->group, s->row + i0 + i, min_i64(height, m - i), k0, k,
                             s->a + i * k);
            run_rows(s, i0, m, k0, k);
        }
    }
}

static void run_items(void *user, int64_t first, int64_t last, int worker) {
    weights *g = user;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i / g->across % g->down * g->rows, col = i % g->across * g->cols;
        part s = {.g = g, .group = i / g->across / g->down, .row = row, .col = col};
        s.m = min_i64(g->rows, g->m - row);
        s.n = min_i64(g->cols, g->n - col);
        s.b = g->workspace + worker * g->workspace_size;
        s.a = s.b + round_up(g->cols, NR) * min_i64(CONV_KC, g->k);
        run_part(&s);
    }
}

/* ---- without the terms outside, for a dy that is not finite ---- */

static float exact_weight(const weights *g, int64_t row, int64_t filter) {
    const ro_conv *v = &g->v;
    const int64_t t = row / v->depth, channel = filter / v->width * v->depth + row % v->depth;
    float total = 0, sum = 0;
    cursor at = {0, 0, 0};
    for (int64_t k = 0; k < g->k; k++) {
        const int64_t h = at.h * v->stride[0] + t / v->kernel[1] * v->dilation[0] - v->pad[0];
        const int64_t w = at.w * v->stride[1] + t % v->kernel[1] * v->dilation[1] - v->pad[1];
        if (k % RO_DOT_CHUNK == 0)
            total = total + sum, sum = 0;
        if (h >= 0 && h < v->in[0] && w >= 0 && w < v->in[1])
            sum = ro_fma(g->x[((at.n * v->in[0] + h) * v->in[1] + w) * v->channels + channel],
                         g->dy[k * v->filters + filter], sum);
        if (++at.w == v->out[1])
            next_line(v, &at);
    }
    return ro_canon(total + sum);
}

static void exact_rows(void *user, int64_t first, int64_t last, int worker) {
    const weights *g = user;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        for (int64_t f = 0; f < g->v.filters; f++)
            g->dw[i * g->v.filters + f] = exact_weight(g, i, f);
}

/* ---- sharing ---- */

enum { MOST_COLS = 512 };

/* As square as multiples of the register tile allow: every cut packs an operand once more. */
static void share(weights *g, int threads) {
    const int64_t work = g->m * g->n * g->v.groups * min_i64(g->k, CONV_PIECE_WORK);
    const int64_t wanted = work < 2 * CONV_PIECE_WORK ? 1 : threads == 1 ? 1 : 2 * threads;
    g->down = 1, g->across = ceil_div(g->n, MOST_COLS);
    while (g->down * g->across * g->v.groups < wanted &&
           (g->m > g->down * MR || g->n > g->across * NR)) {
        if (g->n / g->across >= g->m / g->down)
            g->across *= 2;
        else
            g->down *= 2;
    }
    g->rows = round_up(ceil_div(g->m, g->down), MR);
    g->cols = round_up(ceil_div(g->n, g->across), NR);
    g->down = ceil_div(g->m, g->rows);
    g->across = ceil_div(g->n, g->cols);
}

/* x^T dy, over all pixels. */
static ro_status multiply_pixels(const ro_job *job, const ro_conv *v) {
    const gemm g = {.m = v->channels,
                    .n = v->filters,
                    .k = v->batch * v->in[0] * v->in[1],
                    .a = job->in[0],
                    .b = job->in[1],
                    .a_row = 1,
                    .a_col = v->channels,
                    .b_row = v->filters,
                    .b_col = 1,
                    .c = job->out,
                    .c_row = v->filters,
                    .chunk = RO_DOT_CHUNK,
                    .alpha = 1.0f};
    return RO_NAME(ro_gemm_shared)(job->ctx, &g);
}

static ro_status conv2d_dw(const ro_job *job) {
    const ro_conv v = ro_conv_of(job->call);
    if (no_terms(job))
        return RO_OK;
    if (pointwise(&v))
        return multiply_pixels(job, &v);
    ro_pool *pool = ro_ctx_pool(job->ctx);
    const int threads = ro_ctx_threads(job->ctx);
    weights g = {.v = v, .x = job->in[0], .dy = job->in[1], .dw = job->out, .n = v.width};
    g.m = v.kernel[0] * v.kernel[1] * v.depth;
    g.k = v.batch * v.out[0] * v.out[1];
    g.outside = v.pad[0] > 0 || v.pad[1] > 0;
    share(&g, threads);
    const int64_t k = min_i64(CONV_KC, g.k);
    g.workspace_size = round_up(g.cols * k + min_i64(CONV_MC, g.rows) * k + VW, 16);
    g.workspace = ro_workspace(job->ctx, (size_t)(threads * g.workspace_size) * sizeof(float));
    if (!g.workspace)
        return RO_ERR_MEMORY;
    ro_pool_for(pool, g.down * g.across * v.groups, 1, run_items, &g);
    if (atomic_load(&g.not_finite))
        ro_pool_for(pool, g.m, max_i64(1, g.m / (8 * threads)), exact_rows, &g);
    return RO_OK;
}

void RO_NAME(ro_add_conv_weight)(ro_table *table) {
    table->kernel[RO_OP_CONV2D_DW] = (ro_kernel){.run = conv2d_dw};
}
