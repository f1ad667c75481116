/* conv2d_dw in groups of few channels (conv_groups.h), SPEC.md section 12.1. Each chunk of pixels
 * has its own sums, [blocks][k][GROUP_LANES], which are added in the order of chunks. */
#include "repops/cpu/image/conv_depthwise.h"
#include "repops/cpu/image/conv_kernel.h"

/* Terms whose sums stay in registers. */
#if defined(RO_ISA_avx512) || defined(RO_ISA_neon)
enum { TERMS = 8, VECTORS = GROUP_VECTORS };
#elif defined(RO_ISA_avx2)
enum { TERMS = 6, VECTORS = GROUP_VECTORS };
#else
enum { TERMS = 3, VECTORS = GROUP_VECTORS };
#endif
enum { CHUNKS_MOST = 1 << 20 /* floats of chunk sums that are kept at a time */ };

typedef struct {
    const grouped *f;
    weights *w;
    int64_t first, size; /* first chunk of this round; floats of a chunk's sums */
    int64_t outside;     /* whether columns may lie outside */
    int in_place;
    float *sums, *totals, *workspace;
} chunks;

/* ---- sums ---- */

/* Neighbouring pixels of an output line, for some lanes. */
typedef struct {
    const float *x, *dy;
    int64_t x_step, dy_step, count, lanes;
    const float *next; /* the next part of dy, to prefetch */
    int64_t portion;   /* cache lines to prefetch at a time */
} line;

RO_INLINE void add_pixels(const int terms, const line *l, int64_t from, float *sums) {
    const float *x = l->x + from, *dy = l->dy;
    vf sum[TERMS][VECTORS];
    vf_mask mask[VECTORS];
    RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        mask[v] = vf_first(l->lanes - v * VW);
    RO_UNROLL
    for (int j = 0; j < terms; j++) {
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++)
            sum[j][v] = vf_load(sums + j * GROUP_LANES + v * VW);
    }
    for (int64_t i = l->count; i > 0; i--, x += l->x_step, dy += l->dy_step) {
        vf d[VECTORS];
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++)
            d[v] = vf_load_mask(dy + v * VW, mask[v]);
        RO_UNROLL
        for (int j = 0; j < terms; j++) {
            RO_UNROLL
            for (int v = 0; v < VECTORS; v++)
                sum[j][v] = vf_fma(vf_load(x + j * GROUP_LANES + v * VW), d[v], sum[j][v]);
        }
    }
    RO_UNROLL
    for (int j = 0; j < terms; j++) {
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++)
            vf_store(sums + j * GROUP_LANES + v * VW, sum[j][v]);
    }
}

/* Adds `count` contiguous terms. */
static void add_terms(line *l, int64_t count, float *sums) {
    for (int64_t j = 0, terms; j < count; j += terms) {
        const int64_t at = j * GROUP_LANES;
        for (int64_t i = l->portion; i > 0; i--, l->next += 16)
            __builtin_prefetch(l->next, 0, 2);
        terms = ceil_div(count - j, ceil_div(count - j, TERMS));
        switch (terms) {
        case 1: add_pixels(1, l, at, sums + at); break;
        case 2: add_pixels(2, l, at, sums + at); break;
#if !defined(RO_ISA_scalar)
        case 3: add_pixels(3, l, at, sums + at); break;
        case 4: add_pixels(4, l, at, sums + at); break;
        case 5: add_pixels(5, l, at, sums + at); break;
#endif
#if defined(RO_ISA_avx512) || defined(RO_ISA_neon)
        case 6: add_pixels(6, l, at, sums + at); break;
        case 7: add_pixels(7, l, at, sums + at); break;
#endif
        default: add_pixels(TERMS, l, at, sums + at); break;
        }
    }
}

/* Adds pixels [w, end) of a line. of->x and of->dy point to pixel 0. */
static void add_taps(line *of, const tile_run *run, int64_t w, int64_t end, float *sums) {
    line l = *of;
    l.x += run->a + w * l.x_step, l.dy += w * l.dy_step, l.count = end - w;
    add_terms(&l, run->k, sums + run->b);
    of->next = l.next;
}

/* Does what add_taps does if dy is not finite: adds each tap at the pixels where it is inside. */
static void add_inside(const grouped *f, line *l, const tile_run *run, int64_t w, int64_t end,
                       float *sums) {
    const int64_t step = f->s.step, first_col = run->a / step, of_tap = tap_floats(&f->s);
    for (int64_t i = 0, first, count; i < run->k / f->s.from; i++) {
        const tile_run tap = {run->a + i * step, run->b + i * of_tap, f->s.from};
        inside(f->g->v, 1, f->least + first_col + i, &first, &count);
        add_taps(l, &tap, max_i64(w, first), min_i64(end, first + count), sums);
    }
}

/* Adds pixels [k, end) of one output line, for all taps. */
static void add_line(const chunks *c, kept_lines *z, int64_t k, int64_t end, float *sums) {
    const grouped *f = c->f;
    const ro_conv *v = f->g->v;
    const taps *row = &f->residue[0];
    const int64_t of_line = v->kernel[1] * tap_floats(&f->s), w = k % v->out[1];
    const int clip = c->outside && !all_finite(c->w->dy + k * v->filters, (end - k) * v->filters);
    line l = {.dy_step = v->filters, .x_step = v->stride[1] * f->s.step};
    RO_NAME(ro_conv_keep_lines)(z, k / v->out[1]);
    const int64_t portions = f->s.blocks * v->kernel[0] * ceil_div(of_line, TERMS * GROUP_LANES);
    l.next = c->w->dy + end * v->filters;
    l.portion = clip ? 0 : ceil_div(v->out[1] * v->filters, 16 * portions);
    for (int64_t b = 0; b < f->s.blocks; b++, sums += f->k * GROUP_LANES) {
        l.dy = c->w->dy + (k - w) * v->filters + b * GROUP_LANES;
        l.lanes = f->s.lanes - b * GROUP_LANES;
        for (int64_t i = 0; i < v->kernel[0]; i++)
            for (int64_t q = 0; z->line[i] && q < row->count; q++) {
                l.x = z->line[i] + b * f->s.block;
                if (clip)
                    add_inside(f, &l, &row->run[q], w, w + end - k, sums + i * of_line);
                else
                    add_taps(&l, &row->run[q], w, w + end - k, sums + i * of_line);
            }
    }
}

/* Sums chunks [first, last) of this round. */
static void run_chunks(void *user, int64_t first, int64_t last, int worker) {
    const chunks *c = user;
    const ro_conv *v = c->f->g->v;
    kept_lines z = {.f = c->f, .lines = c->workspace + worker * kept_floats(c->f)};
    RO_NAME(ro_conv_keep_none)(&z, 0);
    for (int64_t p = first; p < last; p++) {
        const int64_t from = (c->first + p) * RO_DOT_CHUNK;
        const int64_t end = min_i64(from + RO_DOT_CHUNK, c->w->k);
        float *sums = c->sums + p * c->size;
        memset(sums, 0, (size_t)c->size * sizeof(float));
        for (int64_t k = from, stop; k < end; k = stop) {
            stop = min_i64(end, k - k % v->out[1] + v->out[1]);
            if (c->in_place)
                RO_NAME(ro_conv_depthwise_sums)(c->f, c->w->dy, k, stop, sums);
            else
                add_line(c, &z, k, stop, sums);
        }
    }
}

/* ---- totals ---- */

typedef struct {
    const chunks *c;
    int64_t count;
} round;

static void add_sums(void *user, int64_t first, int64_t last, int worker) {
    const round *r = user;
    const chunks *c = r->c;
    float *restrict total = c->totals;
    (void)worker;
    for (int64_t p = 0; p < r->count; p++) {
        const float *restrict sum = c->sums + p * c->size;
        for (int64_t e = first; e < last; e++)
            total[e] = total[e] + sum[e];
    }
}

static void store_totals(const chunks *c) {
    const grouped *f = c->f;
    for (int64_t b = 0; b < f->s.blocks; b++)
        for (int64_t k = 0; k < f->k; k++) {
            const float *from = c->totals + (b * f->k + k) * GROUP_LANES;
            float *to = c->w->dw + k * f->s.lanes + b * GROUP_LANES;
            for (int64_t v = 0; v < GROUP_LANES; v += VW)
                vf_store_n(to + v, vf_canon(vf_load(from + v)), f->s.lanes - b * GROUP_LANES - v);
        }
}

/* Allocates the workspace: sources, totals, sums of `most` chunks, then lines for each thread. */
static int groups_weight_allocate(ro_ctx *ctx, grouped *f, chunks *c, int64_t most) {
    const int64_t vectors = f->s.blocks * GROUP_VECTORS;
    const int64_t list = round_up(vectors * (int64_t)sizeof(sources), 64);
    const int64_t floats = (1 + most) * c->size + ro_ctx_threads(ctx) * kept_floats(f);
    char *room = ro_workspace(ctx, (size_t)(list + floats * (int64_t)sizeof(float)));
    f->s.sources = (sources *)(void *)room;
    c->totals = (float *)(void *)(room + list);
    c->sums = c->totals + c->size;
    c->workspace = c->sums + most * c->size;
    return room != NULL;
}

static int takes(conv_call *c) {
    return RO_NAME(ro_conv_plan_groups)(c->groups, c->g, 1);
}

static ro_status run(conv_call *call) {
    ro_ctx *ctx = call->job->ctx;
    grouped *f = call->groups;
    ro_pool *pool = ro_ctx_pool(ctx);
    const ro_conv *v = call->v;
    weights w = weights_of(call);
    const int64_t all = ceil_div(w.k, RO_DOT_CHUNK), threads = ro_ctx_threads(ctx);
    chunks c = {.f = f, .w = &w, .size = round_up(f->k * f->s.blocks * GROUP_LANES, 16)};
    const int64_t most = min_i64(all, max_i64(8 * threads, CHUNKS_MOST / c.size));
    const int64_t items = w.k * c.size < 2 * CONV_PIECE_WORK ? 1 : 8 * threads;
    c.outside = f->least < 0 || f->most + (v->out[1] - 1) * v->stride[1] >= v->in[1];
    c.in_place = RO_NAME(ro_conv_is_depthwise_weight)(f->g);
    if (!groups_weight_allocate(ctx, f, &c, most))
        return RO_ERR_MEMORY;
    RO_NAME(ro_conv_find_sources)(f);
    memset(c.totals, 0, (size_t)c.size * sizeof(float));
    for (; c.first < all; c.first += most) {
        round r = {&c, min_i64(most, all - c.first)};
        ro_pool_for(pool, r.count, ceil_div(r.count, items), run_chunks, &c);
        ro_pool_for(pool, c.size, items == 1 ? c.size : ceil_div(c.size, threads), add_sums, &r);
    }
    store_totals(&c);
    return RO_OK;
}

const conv_kernel RO_NAME(ro_conv_grouped_weight) = {"grouped", takes, run};
