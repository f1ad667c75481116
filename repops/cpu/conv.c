/* conv2d and conv2d_dx, SPEC.md section 12.1. Rows are pixels of the output, columns its channels;
 * conv.h says how a row's pixels of the input come to be a packed operand. */
#include "repops/cpu/conv.h"

#include <stdatomic.h>

/* One tap of the kernel. */
typedef struct {
    int64_t at[2]; /* of its pixel: position * step + at */
    int64_t k;     /* its first step by the numbers of SPEC 3.1; `depth` of them follow */
    const float *b;
} tap;

/* Output pixels that meet the same taps: all of a forward convolution; of an input gradient those
 * that leave the same remainder by the strides. Steps that none of them meets are left out. */
typedef struct {
    const float *image; /* [batch, size[0], size[1], pixel] */
    int64_t size[2], pixel;
    int64_t groups, depth;         /* steps of one tap */
    int64_t step[2], count[2];     /* positions of one image */
    int64_t m, n, k;               /* of one group's product */
    int64_t b_row, b_col, b_group; /* element (c, j) of a tap is at b[c * b_row + j * b_col] */
    float *out;                    /* position (i, j) is pixel first + i * spread of the output */
    int64_t out_size[2], out_pixel, first[2], spread[2];
    tap *taps;
    int64_t tap_count;
    int64_t *ends; /* of chunks, among the steps that are left */
    int64_t chunks;
    float *packed; /* all of b: groups, then blocks of steps, then panels of NR columns */
    int outside;   /* some tap of some position lies outside the image */
    atomic_int not_finite;
    /* how the work is shared */
    int64_t rows, cols, down, across;
    float *workspace;
    int64_t workspace_size; /* of one thread */
} gather;

/* ---- steps ---- */

static int64_t chunk_start(const gather *g, int64_t chunk) {
    return chunk ? g->ends[chunk - 1] : 0;
}

/* The chunk after the last one that is packed together with `chunk`. */
static int64_t block_end(const gather *g, int64_t chunk) {
    int64_t next = chunk + 1;
    while (next < g->chunks && g->ends[next] - chunk_start(g, chunk) <= CONV_KC)
        next++;
    return next;
}

/* Chunks end at multiples of 256 of the numbers of SPEC 3.1, whatever was left out. */
static void find_chunks(gather *g) {
    int64_t chunk = -1;
    g->chunks = 0;
    for (int64_t t = 0; t < g->tap_count; t++) {
        const int64_t start = g->taps[t].k;
        for (int64_t c = 0; c < g->depth;) {
            const int64_t now = (start + c) / RO_DOT_CHUNK;
            const int64_t next = min_i64(g->depth, (now + 1) * RO_DOT_CHUNK - start);
            g->chunks += now != chunk;
            g->ends[g->chunks - 1] = t * g->depth + next;
            chunk = now;
            c = next;
        }
    }
    g->k = g->tap_count * g->depth;
}

/* ---- b: packed once, for all threads ---- */

static float *packed_block(const gather *g, int64_t group, int64_t k0) {
    return g->packed + round_up(g->n, NR) * (group * g->k + k0);
}

static void pack_b(const gather *g, int64_t group, int64_t j, int64_t k0, int64_t k, float *to) {
    const int64_t cols = min_i64(NR, g->n - j);
    for (int64_t s = k0; s < k0 + k;) {
        const int64_t c = s % g->depth, steps = min_i64(g->depth - c, k0 + k - s);
        const float *from =
            g->taps[s / g->depth].b + group * g->b_group + c * g->b_row + j * g->b_col;
        pack(&(panel){from, g->b_col, g->b_row, cols, NR, steps}, to + (s - k0) * NR);
        s += steps;
    }
}

/* An item is a panel of a group. */
static void pack_panels(void *user, int64_t first, int64_t last, int worker) {
    gather *g = user;
    const int64_t panels = ceil_div(g->n, NR);
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t group = i / panels, j = i % panels * NR;
        for (int64_t c = 0; c < g->chunks; c = block_end(g, c)) {
            const int64_t k0 = chunk_start(g, c), k = g->ends[block_end(g, c) - 1] - k0;
            float *to = packed_block(g, group, k0) + j * k;
            pack_b(g, group, j, k0, k, to);
            if (g->outside && !all_finite(to, k * NR))
                atomic_store(&g->not_finite, 1);
        }
    }
}

/* ---- a: gathered ---- */

/* A row: its image, and where the pixels of its taps are counted from. */
typedef struct {
    const float *image;
    int64_t i, j;
} place;

static place place_of(const gather *g, int64_t row) {
    const int64_t j = row % g->count[1], i = row / g->count[1] % g->count[0];
    const int64_t n = row / g->count[1] / g->count[0];
    return (place){g->image + n * g->size[0] * g->size[1] * g->pixel, i, j};
}

static void next_place(const gather *g, place *p) {
    if (++p->j < g->count[1])
        return;
    p->j = 0;
    if (++p->i < g->count[0])
        return;
    p->i = 0;
    p->image += g->size[0] * g->size[1] * g->pixel;
}

/* NULL if it lies outside. */
static const float *pixel_of(const gather *g, const place *p, const tap *t) {
    const int64_t h = p->i * g->step[0] + t->at[0], w = p->j * g->step[1] + t->at[1];
    if ((uint64_t)h >= (uint64_t)g->size[0] || (uint64_t)w >= (uint64_t)g->size[1])
        return NULL;
    return p->image + (h * g->size[1] + w) * g->pixel;
}

/* Up to VW steps of up to VW rows. */
RO_INLINE void gather_square(const float *const *from, int64_t rows, int64_t p, int64_t steps,
                             float *to) {
    vf r[VW];
    for (int64_t i = 0; i < VW; i++)
        r[i] = i < rows && from[i] ? vf_load_n(from[i] + p, steps) : vf_set1(0.0f);
    transpose(r);
    for (int64_t i = 0; i < steps; i++)
        vf_store(to + (p + i) * rows, r[i]);
}

/* Stores run over into the steps that follow, which are written next. */
static void gather_steps(const float *const *from, int64_t rows, int64_t steps, float *to) {
    int64_t p = 0;
    if ((int)VW >= (int)MR && steps >= VW / 4) {
        for (; p + VW <= steps; p += VW)
            gather_square(from, rows, p, VW, to);
        if (p < steps)
            gather_square(from, rows, p, steps - p, to);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (p = 0; p < steps; p++)
            to[p * rows + i] = from[i] ? from[i][p] : 0.0f;
}

static void gather_panel(const gather *g, int64_t offset, const place *at, int64_t rows, int64_t k0,
                         int64_t k, float *to) {
    const float *from[MR];
    for (int64_t s = k0; s < k0 + k;) {
        const tap *t = &g->taps[s / g->depth];
        const int64_t c = s % g->depth, steps = min_i64(g->depth - c, k0 + k - s);
        for (int64_t i = 0; i < rows; i++) {
            from[i] = pixel_of(g, &at[i], t);
            from[i] = from[i] ? from[i] + offset + c : NULL;
        }
        gather_steps(from, rows, steps, to + (s - k0) * rows);
        s += steps;
    }
}

/* ---- the product of some rows and columns ---- */

typedef struct {
    const gather *g;
    int64_t group, row, m, col, n;
    float *a, *c; /* packed rows; totals, rows c_row apart */
    int64_t c_row;
} part;

static void gather_rows(const part *s, int64_t k0, int64_t k) {
    const int64_t height = panel_height(s->m);
    place at[MR], next = place_of(s->g, s->row);
    for (int64_t i = 0; i < s->m; i += height) {
        const int64_t rows = min_i64(height, s->m - i);
        for (int64_t r = 0; r < rows; r++, next_place(s->g, &next))
            at[r] = next;
        gather_panel(s->g, s->group * s->g->depth, at, rows, k0, k, s->a + i * k);
    }
}

/* One tile of c over the chunks [first, last), whose steps are packed at a and b. */
static void run_chunks(const gather *g, int rows, int64_t first, int64_t last, tile t) {
    for (int64_t q = first; q < last; q++) {
        t.k = g->ends[q] - chunk_start(g, q);
        t.flags = (q == 0 ? TILE_FIRST : 0) | (q == g->chunks - 1 ? TILE_LAST : 0);
        run_tile(rows, &t);
        t.a += t.k * t.a_step;
        t.b += t.k * t.b_step;
    }
}

static void run_block(const part *s, int64_t first, int64_t last) {
    const gather *g = s->g;
    const int64_t k0 = chunk_start(g, first), k = g->ends[last - 1] - k0;
    const int64_t height = panel_height(s->m);
    gather_rows(s, k0, k);
    for (int64_t j = 0; j < s->n; j += NR) {
        tile t = {.b = packed_block(g, s->group, k0) + (s->col + j) * k, .b_step = NR};
        t.cols = min_i64(NR, s->n - j), t.alpha = 1.0f, t.c_row = t.out_row = s->c_row;
        for (int64_t i = 0; i < s->m; i += height) {
            t.a_step = min_i64(height, s->m - i);
            t.a = s->a + i * k;
            t.c = t.out = s->c + i * s->c_row + j;
            run_chunks(g, (int)t.a_step, first, last, t);
        }
    }
}

static float *out_pixel(const gather *g, int64_t row) {
    const int64_t j = row % g->count[1], i = row / g->count[1] % g->count[0];
    const int64_t n = row / g->count[1] / g->count[0];
    const int64_t h = g->first[0] + i * g->spread[0], w = g->first[1] + j * g->spread[1];
    return g->out + ((n * g->out_size[0] + h) * g->out_size[1] + w) * g->out_pixel;
}

/* Rows of the product are neighbours in the output. */
static int dense(const gather *g) {
    return g->count[0] == g->out_size[0] && g->count[1] == g->out_size[1];
}

static void run_part(part *s, float *workspace) {
    const gather *g = s->g;
    const int64_t column = s->group * g->n + s->col;
    s->a = workspace;
    s->c = workspace + g->workspace_size - g->rows * g->cols;
    s->c_row = g->cols;
    if (dense(g))
        s->c = out_pixel(g, s->row) + column, s->c_row = g->out_pixel;
    if (g->chunks == 0)
        for (int64_t i = 0; i < s->m; i++)
            memset(s->c + i * s->c_row, 0, (size_t)s->n * sizeof(float));
    for (int64_t c = 0; c < g->chunks; c = block_end(g, c))
        run_block(s, c, block_end(g, c));
    for (int64_t i = 0; i < s->m && !dense(g); i++)
        memcpy(out_pixel(g, s->row + i) + column, s->c + i * s->c_row,
               (size_t)s->n * sizeof(float));
}

static void run_items(void *user, int64_t first, int64_t last, int worker) {
    const gather *g = user;
    for (int64_t i = first; i < last; i++) {
        const int64_t group = i / g->across / g->down;
        const int64_t row = i / g->across % g->down * g->rows, col = i % g->across * g->cols;
        part s = {.g = g, .group = group, .row = row, .col = col};
        s.m = min_i64(g->rows, g->m - row);
        s.n = min_i64(g->cols, g->n - col);
        run_part(&s, g->workspace + worker * g->workspace_size);
    }
}

/* ---- without the terms outside, for weights that are not finite ---- */

enum { EXACT_TILE = 256 };

typedef struct {
    float total[EXACT_TILE], sum[EXACT_TILE];
} exact_sums;

static void end_chunk(exact_sums *x, int64_t count) {
    for (int64_t j = 0; j < count; j++) {
        x->total[j] = x->total[j] + x->sum[j];
        x->sum[j] = 0.0f;
    }
}

/* Columns [col, col + count) of a row. */
static void exact_row(const gather *g, int64_t group, int64_t row, int64_t col, int64_t count) {
    const place at = place_of(g, row);
    exact_sums x = {{0}, {0}};
    float *restrict out = out_pixel(g, row) + group * g->n + col;
    int64_t last = 0;
    for (int64_t t = 0; t < g->tap_count; t++) {
        const tap *now = &g->taps[t];
        const float *a = pixel_of(g, &at, now);
        const float *b = now->b + group * g->b_group + col * g->b_col;
        for (int64_t c = 0; c < g->depth; c++) {
            const int64_t chunk = (now->k + c) / RO_DOT_CHUNK;
            if (chunk != last)
                end_chunk(&x, count);
            last = chunk;
            for (int64_t j = 0; a && j < count; j++)
                x.sum[j] =
                    ro_fma(a[group * g->depth + c], b[c * g->b_row + j * g->b_col], x.sum[j]);
        }
    }
    end_chunk(&x, count);
    for (int64_t j = 0; j < count; j++)
        out[j] = ro_canon(x.total[j]);
}

static void exact_rows(void *user, int64_t first, int64_t last, int worker) {
    const gather *g = user;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        for (int64_t group = 0; group < g->groups; group++)
            for (int64_t col = 0; col < g->n; col += EXACT_TILE)
                exact_row(g, group, i, col, min_i64(EXACT_TILE, g->n - col));
}

/* ---- sharing ---- */

/* Blocks of rows, a whole number for each thread; columns are cut where rows do not suffice. */
static void share(gather *g, int threads) {
    if (g->m * g->n * max_i64(1, g->k) * g->groups < 2 * CONV_PIECE_WORK)
        threads = 1;
    g->down = round_up(ceil_div(g->m, CONV_MC), threads);
    g->rows = max_i64(MR, ceil_div(g->m, g->down));
    g->down = ceil_div(g->m, g->rows);
    g->across = min_i64(ceil_div(threads, g->down * g->groups), ceil_div(g->n, NR));
    g->cols = round_up(ceil_div(g->n, g->across), NR);
    g->across = ceil_div(g->n, g->cols);
}

static void run_shared(ro_ctx *ctx, gather *g) {
    ro_pool *pool = ro_ctx_pool(ctx);
    const int64_t items = g->down * g->across * g->groups, panels = ceil_div(g->n, NR) * g->groups;
    ro_pool_for(pool, panels, items == 1 ? panels : 1, pack_panels, g);
    if (atomic_load(&g->not_finite))
        ro_pool_for(pool, g->m, max_i64(1, g->m / (8 * ro_ctx_threads(ctx))), exact_rows, g);
    else
        ro_pool_for(pool, items, 1, run_items, g);
}

/* ---- taps ---- */

/* Where index `i` of the kernel finds its pixels, if this operator and remainder meet it. */
static int tap_at(const ro_conv *v, int backward, const gather *g, int d, int64_t i, int64_t *at) {
    *at = i * v->dilation[d] - v->pad[d];
    if (!backward)
        return 1;
    const int64_t shift = g->first[d] - *at;
    *at = shift / v->stride[d];
    return shift % v->stride[d] == 0;
}

static int64_t count_taps(const ro_conv *v, int backward, const gather *g, int d) {
    int64_t count = 0, at;
    for (int64_t i = 0; i < v->kernel[d]; i++)
        count += tap_at(v, backward, g, d, i, &at);
    return count;
}

static int reaches_outside(const gather *g, const tap *t) {
    int outside = 0;
    for (int d = 0; d < 2; d++)
        outside |= t->at[d] < 0 || (g->count[d] - 1) * g->step[d] + t->at[d] >= g->size[d];
    return outside;
}

static void list_taps(const ro_conv *v, int backward, const float *weights, gather *g) {
    g->tap_count = 0;
    for (int64_t i = 0; i < v->kernel[0]; i++)
        for (int64_t j = 0; j < v->kernel[1]; j++) {
            const int64_t number = i * v->kernel[1] + j;
            tap t = {.k = number * g->depth, .b = weights + number * v->depth * v->filters};
            if (!tap_at(v, backward, g, 0, i, &t.at[0]) || !tap_at(v, backward, g, 1, j, &t.at[1]))
                continue;
            g->outside |= reaches_outside(g, &t);
            g->taps[g->tap_count++] = t;
        }
}

/* ---- operators ---- */

/* The workspace: taps, ends of chunks, packed b, then a part for each thread. */
static ro_status run_gather(ro_ctx *ctx, const ro_conv *v, int backward, const float *weights,
                            gather *g) {
    const int threads = ro_ctx_threads(ctx);
    const int64_t taps = count_taps(v, backward, g, 0) * count_taps(v, backward, g, 1);
    const int64_t ends = taps * (g->depth / RO_DOT_CHUNK + 2);
    g->k = taps * g->depth;
    g->groups = v->groups;
    share(g, threads);
    const int64_t most = min_i64(CONV_KC, g->k);
    g->workspace_size = round_up(g->rows * most + VW, 16) + (dense(g) ? 0 : g->rows * g->cols);
    const int64_t lists =
        round_up(taps * (int64_t)sizeof(tap) + ends * (int64_t)sizeof(int64_t), 64);
    const int64_t packed = round_up(g->n, NR) * g->k * g->groups;
    const int64_t floats = packed + threads * g->workspace_size;
    char *room = ro_workspace(ctx, (size_t)lists + (size_t)floats * sizeof(float));
    if (!room)
        return RO_ERR_MEMORY;
    g->taps = (tap *)(void *)room;
    g->ends = (int64_t *)(void *)(room + taps * (int64_t)sizeof(tap));
    g->packed = (float *)(void *)(room + lists);
    g->workspace = g->packed + packed;
    list_taps(v, backward, weights, g);
    find_chunks(g);
    run_shared(ctx, g);
    return RO_OK;
}

/* Pixels by channels of x times w: forward w as it lies, backward transposed. */
static ro_status multiply_pixels(const ro_job *job, const ro_conv *v, int backward) {
    const int64_t from = backward ? v->filters : v->channels;
    const int64_t to = backward ? v->channels : v->filters;
    const gemm g = {.m = v->batch * v->in[0] * v->in[1],
                    .n = to,
                    .k = from,
                    .a = job->in[0],
                    .b = job->in[1],
                    .a_row = from,
                    .a_col = 1,
                    .b_row = backward ? 1 : v->filters,
                    .b_col = backward ? v->filters : 1,
                    .c = job->out,
                    .c_row = to,
                    .chunk = RO_DOT_CHUNK,
                    .alpha = 1.0f};
    return RO_NAME(ro_gemm_shared)(job->ctx, &g);
}

static ro_status conv2d(const ro_job *job) {
    const ro_conv v = ro_conv_of(job->call);
    if (no_terms(job))
        return RO_OK;
    if (pointwise(&v))
        return multiply_pixels(job, &v, 0);
    gather g = {.image = job->in[0], .pixel = v.channels, .depth = v.depth};
    g.m = v.batch * v.out[0] * v.out[1], g.n = v.width;
    g.b_row = v.filters, g.b_col = 1, g.b_group = v.width;
    g.out = job->out, g.out_pixel = v.filters;
    for (int d = 0; d < 2; d++) {
        g.size[d] = v.in[d];
        g.step[d] = v.stride[d];
        g.count[d] = g.out_size[d] = v.out[d];
        g.spread[d] = 1;
    }
    return run_gather(job->ctx, &v, 0, job->in[1], &g);
}

/* Pixels of x that leave remainder `first` by the strides. */
static ro_status input_gradient(const ro_job *job, const ro_conv *v, const int64_t first[2]) {
    gather g = {.image = job->in[0], .pixel = v->filters, .depth = v->width};
    g.n = v->depth;
    g.b_row = 1, g.b_col = v->filters, g.b_group = v->width;
    g.out = job->out, g.out_pixel = v->channels;
    for (int d = 0; d < 2; d++) {
        g.size[d] = v->out[d];
        g.step[d] = 1;
        g.first[d] = first[d];
        g.spread[d] = v->stride[d];
        g.out_size[d] = v->in[d];
        g.count[d] = ceil_div(v->in[d] - first[d], v->stride[d]);
    }
    g.m = v->batch * g.count[0] * g.count[1];
    return run_gather(job->ctx, v, 1, job->in[1], &g);
}

static ro_status conv2d_dx(const ro_job *job) {
    const ro_conv v = ro_conv_of(job->call);
    ro_status status = RO_OK;
    int64_t first[2];
    if (no_terms(job))
        return RO_OK;
    if (pointwise(&v))
        return multiply_pixels(job, &v, 1);
    for (first[0] = 0; first[0] < min_i64(v.stride[0], v.in[0]); first[0]++)
        for (first[1] = 0; first[1] < min_i64(v.stride[1], v.in[1]) && status == RO_OK; first[1]++)
            status = input_gradient(job, &v, first);
    return status;
}

void RO_NAME(ro_add_conv)(ro_table *table) {
    table->kernel[RO_OP_CONV2D] = (ro_kernel){.run = conv2d};
    table->kernel[RO_OP_CONV2D_DX] = (ro_kernel){.run = conv2d_dx};
}
