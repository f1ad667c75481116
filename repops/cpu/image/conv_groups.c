/* conv2d and conv2d_dx in groups of few channels (conv_groups.h). An item is a line of the output.
 * Spread lines are kept for the next output lines that meet them. */
#include "repops/cpu/image/conv_kernel.h"

/* Pixels and vectors whose sums stay in registers. */
#if defined(RO_ISA_avx512) || defined(RO_ISA_neon)
enum { PIXELS = 8, VECTORS = GROUP_VECTORS };
#else
enum { PIXELS = 6, VECTORS = GROUP_VECTORS };
#endif
enum { MOST_STRETCHES = MOST_LINES * MOST_TAPS * (RO_DOT_CHUNK + GROUP_MOST) / RO_DOT_CHUNK };

typedef struct {
    const grouped *f;
    int clip;       /* taps outside are left out, not read as +0 */
    float *weights; /* [blocks][k][GROUP_LANES] */
    float *workspace;
} filters;

/* ---- weights ---- */

/* Packs the terms of one tap for a lane. */
static void pack_lane(const grouped *f, int64_t tap, int64_t lane, float *to) {
    const gather *g = f->g;
    const float *w = g->weights + tap * g->v->depth * g->v->filters;
    w += lane / g->n * g->b_group + lane % g->n * g->b_col;
    for (int64_t c = 0; c < g->depth; c++)
        to[c * GROUP_LANES] = w[c * g->b_row];
}

static void pack_blocks(void *user, int64_t first, int64_t last, int worker) {
    const filters *all = user;
    const grouped *f = all->f;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        float *to = all->weights + i * f->k * GROUP_LANES;
        const int64_t lanes = min_i64(GROUP_LANES, f->s.lanes - i * GROUP_LANES);
        memset(to, 0, (size_t)(f->k * GROUP_LANES) * sizeof(float));
        for (int64_t t = 0; t < f->k / f->s.from; t++)
            for (int64_t j = 0; j < lanes; j++)
                pack_lane(f, t, i * GROUP_LANES + j, to + t * tap_floats(&f->s) + j);
    }
}

/* ---- products ---- */

/* Terms that are contiguous in a spread line and in the weights. */
typedef struct {
    const float *x, *b;
    int64_t terms;
    int last; /* a chunk ends here, and another one follows */
} stretch;

/* Some positions of one residue in an output line, for one block. */
typedef struct {
    const stretch *stretch;
    int64_t stretches, x, b; /* x, b: offsets from the first block */
    int64_t x_step, x_term;
    float *out, *ahead; /* ahead: the next output line */
    int64_t out_step, lanes;
    float total[PIXELS * GROUP_LANES]; /* the sum of the chunks before, if there are several */
} groups_target;

RO_INLINE void end_chunk(const int pixels, vf sum[PIXELS][VECTORS], float *total, int first) {
    RO_UNROLL
    for (int i = 0; i < pixels; i++) {
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            float *at = total + i * GROUP_LANES + v * VW;
            vf_store(at, vf_add(first ? vf_set1(0.0f) : vf_load(at), sum[i][v]));
            sum[i][v] = vf_set1(0.0f);
        }
    }
}

RO_INLINE void add_terms(const int pixels, const float *x, int64_t x_step, int64_t x_term,
                         const float *b, int64_t terms, vf sum[PIXELS][VECTORS]) {
    for (; terms > 0; terms--, x += x_term, b += GROUP_LANES) {
        vf bv[VECTORS];
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++)
            bv[v] = vf_load(b + v * VW);
        RO_UNROLL
        for (int i = 0; i < pixels; i++) {
            RO_UNROLL
            for (int v = 0; v < VECTORS; v++)
                sum[i][v] = vf_fma(vf_load(x + i * x_step + v * VW), bv[v], sum[i][v]);
        }
    }
}

RO_INLINE void filter_pixels(const int pixels, groups_target *t, int64_t p) {
    vf sum[PIXELS][VECTORS];
    int chunks = 0;
    RO_UNROLL
    for (int i = 0; i < pixels; i++) {
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            __builtin_prefetch(t->ahead + (p + i) * t->out_step + v * VW, 1);
            sum[i][v] = vf_set1(0.0f);
        }
    }
    for (int64_t q = 0; q < t->stretches; q++) {
        const stretch *s = &t->stretch[q];
        add_terms(pixels, s->x + t->x + p * t->x_step, t->x_step, t->x_term, s->b + t->b, s->terms,
                  sum);
        if (s->last)
            end_chunk(pixels, sum, t->total, chunks++ == 0);
    }
    RO_UNROLL
    for (int i = 0; i < pixels; i++) {
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            const vf before = chunks ? vf_load(t->total + i * GROUP_LANES + v * VW) : vf_set1(0.0f);
            vf_store_n(t->out + (p + i) * t->out_step + v * VW, vf_canon(vf_add(before, sum[i][v])),
                       t->lanes - v * VW);
        }
    }
}

static void filter_positions(groups_target *t, int64_t count) {
    for (int64_t p = 0, pixels; p < count; p += pixels) {
        pixels = ceil_div(count - p, ceil_div(count - p, PIXELS));
        switch (pixels) {
        case 1: filter_pixels(1, t, p); break;
        case 2: filter_pixels(2, t, p); break;
        case 3: filter_pixels(3, t, p); break;
        case 4: filter_pixels(4, t, p); break;
        case 5: filter_pixels(5, t, p); break;
#if defined(RO_ISA_avx512) || defined(RO_ISA_neon)
        case 6: filter_pixels(6, t, p); break;
        case 7: filter_pixels(7, t, p); break;
#endif
        default: filter_pixels(PIXELS, t, p); break;
        }
    }
}

/* ---- lines ---- */

/* Lists the stretches of one residue, for the first block. */
static int64_t list_stretches(const filters *all, const kept_lines *z, const taps *row,
                              stretch *to) {
    const grouped *f = z->f;
    int64_t count = 0, chunk = 0;
    for (int64_t i = 0; i < f->g->v->kernel[0]; i++)
        for (int64_t q = 0; z->line[i] && q < row->count; q++) {
            const tile_run *run = &row->run[q];
            int64_t k = i * f->g->v->kernel[1] * f->s.from + run->b / GROUP_LANES;
            for (int64_t done = 0, terms; done < run->k; done += terms, k += terms) {
                terms = min_i64(run->k - done, RO_DOT_CHUNK - k % RO_DOT_CHUNK);
                if (count)
                    to[count - 1].last = k / RO_DOT_CHUNK != chunk;
                chunk = k / RO_DOT_CHUNK;
                to[count++] = (stretch){z->line[i] + run->a + done * f->s.term,
                                        all->weights + k * GROUP_LANES, terms, 0};
            }
        }
    return count;
}

/* Neighbouring positions of a residue that meet the same taps in a line of the kernel. */
typedef struct {
    const taps *row;
    int64_t first, count; /* counted from the first position of the kept lines */
    float *out;           /* the first position's output */
} neighbours;

static void filter_blocks(const filters *all, const kept_lines *z, const neighbours *at) {
    const grouped *f = z->f;
    const gather *g = f->g;
    stretch list[MOST_STRETCHES];
    groups_target t = {.stretch = list};
    t.stretches = list_stretches(all, z, at->row, list);
    t.x_step = (f->s.mirrored ? -g->step[1] : g->step[1]) * f->s.step, t.x_term = f->s.term;
    t.out_step = g->spread[1] * g->out_pixel;
    for (int64_t b = 0; b < f->s.blocks; b++) {
        const int64_t lane = b * GROUP_LANES;
        t.x = b * f->s.block + at->first * t.x_step, t.b = b * f->k * GROUP_LANES;
        t.out = at->out + lane;
        t.ahead = t.out + g->out_size[1] * g->out_pixel, t.lanes = f->s.lanes - lane;
        filter_positions(&t, at->count);
    }
}

/* Returns how many positions from p on have all their taps inside. */
static int64_t whole_positions(const grouped *f, int64_t p) {
    const int64_t step = f->g->step[1];
    if (f->least + p * step < 0)
        return 0;
    return max_i64(0, ceil_div(f->s.size - f->most, step) - p);
}

/* Returns the taps of `row` that lie inside, for position p of the kept lines. */
static taps taps_inside(const kept_lines *z, const taps *row, int64_t p) {
    const grouped *f = z->f;
    const int64_t pixel = z->first + p * f->g->step[1]; /* the pixel of column 0 */
    const int64_t low = f->s.mirrored ? pixel - f->s.size + 1 : -pixel, high = low + f->s.size;
    taps t = {.count = 0};
    for (int64_t q = 0; q < row->count; q++) {
        const tile_run *run = &row->run[q];
        const int64_t col = run->a / f->s.step;
        const int64_t from = max_i64(col, low), end = min_i64(col + run->k / f->s.from, high);
        if (from < end)
            t.run[t.count++] =
                (tile_run){from * f->s.step, run->b + (from - col) * tap_floats(&f->s),
                           (end - from) * f->s.from};
    }
    return t;
}

/* Computes positions of residue r in an output line, from the kept lines' first position p on. */
static void filter_residue(const filters *all, const kept_lines *z, int64_t r, int64_t p,
                           int64_t line) {
    const grouped *f = z->f;
    const gather *g = f->g;
    const int64_t step = g->spread[1], w = line * g->out_size[1] + r + p * step;
    const int64_t count = min_i64(f->positions, ceil_div(g->out_size[1] - r, step) - p);
    taps clipped;
    neighbours at = {.first = 0};
    for (; at.first < count; at.first += at.count) {
        at.row = &f->residue[r], at.count = count,
        at.out = g->out + (w + at.first * step) * g->out_pixel;
        if (all->clip)
            at.count = min_i64(count - at.first, whole_positions(f, p + at.first));
        if (at.count == 0) {
            clipped = taps_inside(z, at.row, at.first);
            at.row = &clipped, at.count = 1;
        }
        filter_blocks(all, z, &at);
    }
}

/* Computes lines [first, last) of the output. */
static void run_items(void *user, int64_t first, int64_t last, int worker) {
    const filters *all = user;
    const grouped *f = all->f;
    const int64_t positions = ceil_div(f->g->out_size[1], f->g->spread[1]);
    kept_lines z = {.f = f, .lines = all->workspace + worker * kept_floats(f)};
    for (int64_t p = 0; p < positions; p += f->positions) {
        RO_NAME(ro_conv_keep_none)(&z, p);
        for (int64_t line = first; line < last; line++) {
            RO_NAME(ro_conv_keep_lines)(&z, line);
            for (int64_t r = 0; r < f->residues; r++)
                filter_residue(all, &z, r, p, line);
        }
    }
}

/* Allocates the workspace: sources, weights, then lines for each thread. */
static int groups_allocate(ro_ctx *ctx, grouped *f, filters *all) {
    const int64_t vectors = f->s.blocks * GROUP_VECTORS;
    const int64_t list = round_up(vectors * (int64_t)sizeof(sources), 64);
    const int64_t packed = round_up(f->s.blocks * f->k * GROUP_LANES, 16);
    const int64_t floats = packed + ro_ctx_threads(ctx) * kept_floats(f);
    char *room = ro_workspace(ctx, (size_t)(list + floats * (int64_t)sizeof(float)));
    f->s.sources = (sources *)(void *)room;
    all->weights = (float *)(void *)(room + list);
    all->workspace = all->weights + packed;
    return room != NULL;
}

static int takes(conv_call *c) {
    return RO_NAME(ro_conv_plan_groups)(c->groups, c->g, 0);
}

static ro_status run(conv_call *c) {
    ro_ctx *ctx = c->job->ctx;
    grouped *f = c->groups;
    ro_pool *pool = ro_ctx_pool(ctx);
    const int64_t lines = f->g->v->batch * f->g->out_size[0];
    const int64_t work = lines * f->g->out_size[1] * f->s.lanes * f->k;
    const int64_t items = work < 2 * CONV_PIECE_WORK ? 1 : 8 * ro_ctx_threads(ctx);
    filters all = {.f = f, .clip = !may_read_zeros(c)};
    if (!groups_allocate(ctx, f, &all))
        return RO_ERR_MEMORY;
    RO_NAME(ro_conv_find_sources)(f);
    ro_pool_for(pool, f->s.blocks, items == 1 ? f->s.blocks : 1, pack_blocks, &all);
    ro_pool_for(pool, lines, ceil_div(lines, items), run_items, &all);
    return RO_OK;
}

const conv_kernel RO_NAME(ro_conv_grouped) = {"grouped", takes, run};
