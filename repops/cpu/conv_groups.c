/* conv2d and conv2d_dx in groups of few channels (conv_groups.h). Items are lines of the output;
 * the spread lines that the next line of the output meets again are kept. */
#include "repops/cpu/conv_groups.h"

/* Pixels whose sums stay in registers; taps of a line, lines that are kept, at most; floats of them
 * that the second cache holds. */
#if defined(RO_ISA_avx512) || defined(RO_ISA_neon)
enum { PIXELS = 8, VECTORS = GROUP_VECTORS };
#else
enum { PIXELS = 6, VECTORS = GROUP_VECTORS };
#endif
enum { MOST_TAPS = 32, MOST_LINES = 32, MOST_RESIDUES = 8, CACHED = 1 << 16 };
enum { MOST_STRETCHES = MOST_LINES * MOST_TAPS * (RO_DOT_CHUNK + GROUP_MOST) / RO_DOT_CHUNK };

/* Pixels of a line of the output that leave the same remainder by the stride meet the same taps:
 * from the first one's column, from term 0 of a line of the kernel. */
typedef struct {
    tile_run run[MOST_TAPS];
    int64_t count;
} taps;

typedef struct {
    const gather *g;
    spread s;
    taps residue[MOST_RESIDUES];
    int64_t residues;
    int64_t kept, positions; /* lines; positions of a residue that go together, at most */
    int64_t least, most;     /* pixels of a line of the image that position 0 meets */
    int64_t lines;           /* of the output, of an item */
    int64_t k;               /* terms */
    float *weights;          /* [blocks][k][GROUP_LANES] */
    float *workspace;
    int64_t workspace_size; /* of one thread */
} grouped;

/* ---- geometry ---- */

/* Terms that follow each other in the spread line and in the weights are one run. */
static void add_tap(grouped *f, taps *t, int64_t tap, int64_t col) {
    const int64_t from = f->s.from, a = col * spread_step(&f->s), b = tap * from * GROUP_LANES;
    tile_run *last = t->count ? &t->run[t->count - 1] : NULL;
    if (last && last->a + last->k * GROUP_LANES == a && last->b + last->k * GROUP_LANES == b)
        last->k += from;
    else
        t->run[t->count++] = (tile_run){a, b, from};
}

/* The pixels of the image that taps of a line meet, from position 0 of each residue. */
static void find_reach(grouped *f) {
    const gather *g = f->g;
    int64_t at, found = 0;
    for (int64_t r = 0; r < f->residues; r++)
        for (int64_t t = 0; t < g->v->kernel[1]; t++)
            if (pixel_at(g, 1, r, t, &at)) {
                f->least = found ? min_i64(f->least, at) : at;
                f->most = found++ ? max_i64(f->most, at) : at;
            }
}

static void list_taps(grouped *f) {
    const gather *g = f->g;
    int64_t at;
    for (int64_t r = 0; r < f->residues; r++)
        for (int64_t t = 0; t < g->v->kernel[1]; t++)
            if (pixel_at(g, 1, r, t, &at))
                add_tap(f, &f->residue[r], t,
                        g->backward ? f->positions - 1 + f->most - at : at - f->least);
}

static grouped plan(const gather *g) {
    const ro_conv *v = g->v;
    grouped f = {.g = g, .residues = min_i64(g->spread[1], g->out_size[1])};
    f.s = (spread){.image = g->image, .channels = g->pixel, .size = g->size[1]};
    f.s.from = g->depth, f.s.to = g->n, f.s.lanes = g->out_pixel, f.s.mirrored = g->backward;
    f.k = v->kernel[0] * v->kernel[1] * g->depth;
    f.s.blocks = ceil_div(f.s.lanes, GROUP_LANES);
    f.kept = (v->kernel[0] - 1) * v->dilation[0] / g->spread[0] + 1;
    find_reach(&f);
    const int64_t all = ceil_div(g->out_size[1], g->spread[1]);
    const int64_t cols = CACHED / (f.kept * f.s.blocks * spread_step(&f.s)) - (f.most - f.least);
    f.positions = min_i64(all, max_i64(2 * PIXELS, cols / g->step[1]));
    f.positions = ceil_div(all, ceil_div(all, f.positions));
    f.s.cols = (f.positions - 1) * g->step[1] + f.most - f.least + 1;
    return f;
}

int RO_NAME(ro_conv_is_grouped)(const gather *g) {
    if (!small_groups(g->v) || g->v->kernel[1] > MOST_TAPS || g->v->kernel[0] > MOST_LINES ||
        g->spread[1] > MOST_RESIDUES)
        return 0;
    const grouped f = plan(g);
    return f.kept <= MOST_LINES && f.kept * f.s.blocks * spread_block(&f.s) <= SPREAD_MOST;
}

/* ---- weights ---- */

/* Terms of one tap for a lane. */
static void pack_lane(const grouped *f, int64_t tap, int64_t lane, float *to) {
    const gather *g = f->g;
    const float *w = g->weights + tap * g->v->depth * g->v->filters;
    w += lane / g->n * g->b_group + lane % g->n * g->b_col;
    for (int64_t c = 0; c < g->depth; c++)
        to[c * GROUP_LANES] = w[c * g->b_row];
}

static void pack_blocks(void *user, int64_t first, int64_t last, int worker) {
    const grouped *f = user;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        float *to = f->weights + i * f->k * GROUP_LANES;
        const int64_t lanes = min_i64(GROUP_LANES, f->s.lanes - i * GROUP_LANES);
        memset(to, 0, (size_t)(f->k * GROUP_LANES) * sizeof(float));
        for (int64_t t = 0; t < f->k / f->s.from; t++)
            for (int64_t j = 0; j < lanes; j++)
                pack_lane(f, t, i * GROUP_LANES + j, to + t * spread_step(&f->s) + j);
    }
}

/* ---- products ---- */

/* Terms that lie together. */
typedef struct {
    const float *x, *b;
    int64_t terms;
    int last; /* of their chunk, and not of all */
} stretch;

/* Positions of one residue of a line of the output, one block. */
typedef struct {
    const stretch *stretch;
    int64_t stretches, x, b; /* x, b: from the first block */
    int64_t x_step;
    float *out, *ahead; /* ahead: the next line's */
    int64_t out_step, lanes;
    float total[PIXELS * GROUP_LANES]; /* of chunks so far, where there are several */
} target;

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

RO_INLINE void add_terms(const int pixels, const float *x, int64_t x_step, const float *b,
                         int64_t terms, vf sum[PIXELS][VECTORS]) {
    for (; terms > 0; terms--, x += GROUP_LANES, b += GROUP_LANES) {
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

RO_INLINE void filter_pixels(const int pixels, target *t, int64_t p) {
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
        add_terms(pixels, s->x + t->x + p * t->x_step, t->x_step, s->b + t->b, s->terms, sum);
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

static void filter_positions(target *t, int64_t count) {
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

/* Some lines of the output. */
typedef struct {
    const grouped *f;
    float *lines;
    int64_t number[MOST_LINES];    /* that are kept */
    const float *line[MOST_LINES]; /* for each line of the kernel; NULL: outside */
} item;

/* The lines of the image that line h of image n meets, spread from pixel `first` on. */
static void find_lines(item *z, int64_t n, int64_t h, int64_t first) {
    const grouped *f = z->f;
    const gather *g = f->g;
    int64_t at;
    for (int64_t i = 0; i < g->v->kernel[0]; i++) {
        z->line[i] = NULL;
        if (!pixel_at(g, 0, h, i, &at) || at < 0 || at >= g->size[0])
            continue;
        const int64_t number = n * g->size[0] + at, slot = number % f->kept;
        float *to = z->lines + slot * f->s.blocks * spread_block(&f->s);
        if (z->number[slot] != number)
            RO_NAME(ro_conv_spread)(&f->s, number, first, to);
        z->number[slot] = number;
        z->line[i] = to;
    }
}

/* Those of one residue, for the first block. */
static int64_t list_stretches(const item *z, const taps *row, stretch *to) {
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
                to[count++] = (stretch){z->line[i] + run->a + done * GROUP_LANES,
                                        f->weights + k * GROUP_LANES, terms, 0};
            }
        }
    return count;
}

/* Positions from p on, of one residue of a line of the output. */
static void filter_residue(const item *z, int64_t r, int64_t p, int64_t line) {
    const grouped *f = z->f;
    const gather *g = f->g;
    const int64_t w = r + p * g->spread[1];
    const int64_t count = min_i64(f->positions, ceil_div(g->out_size[1] - w, g->spread[1]));
    stretch all[MOST_STRETCHES];
    target t = {.stretch = all, .stretches = list_stretches(z, &f->residue[r], all)};
    t.x_step = (f->s.mirrored ? -g->step[1] : g->step[1]) * spread_step(&f->s);
    t.out_step = g->spread[1] * g->out_pixel;
    for (int64_t b = 0; b < f->s.blocks; b++) {
        const int64_t lane = b * GROUP_LANES;
        t.x = b * spread_block(&f->s), t.b = b * f->k * GROUP_LANES;
        t.out = g->out + (line * g->out_size[1] + w) * g->out_pixel + lane;
        t.ahead = t.out + g->out_size[1] * g->out_pixel, t.lanes = f->s.lanes - lane;
        filter_positions(&t, count);
    }
}

/* Positions from p on, of lines [first, last) of the output. */
static void filter_lines(item *z, int64_t p, int64_t first, int64_t last) {
    const grouped *f = z->f;
    const gather *g = f->g;
    const int64_t end = p + f->positions;
    const int64_t col = g->backward ? (end - 1) * g->step[1] + f->most : p * g->step[1] + f->least;
    for (int64_t i = 0; i < f->kept; i++)
        z->number[i] = -1;
    for (int64_t line = first; line < last; line++) {
        find_lines(z, line / g->out_size[0], line % g->out_size[0], col);
        for (int64_t r = 0; r < f->residues; r++)
            filter_residue(z, r, p, line);
    }
}

static void run_items(void *user, int64_t first, int64_t last, int worker) {
    const grouped *f = user;
    item z = {.f = f, .lines = f->workspace + worker * f->workspace_size};
    const int64_t all = ceil_div(f->g->out_size[1], f->g->spread[1]);
    for (int64_t p = 0; p < all; p += f->positions)
        filter_lines(&z, p, first, last);
}

/* The workspace: sources, weights, then lines for each thread. */
static int allocate(ro_ctx *ctx, grouped *f) {
    const int64_t vectors = f->s.blocks * GROUP_VECTORS, threads = ro_ctx_threads(ctx);
    const int64_t list = round_up(vectors * (int64_t)sizeof(sources), 64);
    const int64_t packed = f->s.blocks * f->k * GROUP_LANES;
    f->workspace_size = round_up(f->kept * f->s.blocks * spread_block(&f->s), 16);
    const int64_t floats = packed + threads * f->workspace_size;
    char *room = ro_workspace(ctx, (size_t)(list + floats * (int64_t)sizeof(float)));
    if (!room)
        return 0;
    f->s.sources = (sources *)(void *)room;
    f->weights = (float *)(void *)(room + list);
    f->workspace = f->weights + round_up(packed, 16);
    return 1;
}

ro_status RO_NAME(ro_conv_grouped)(ro_ctx *ctx, const gather *g) {
    ro_pool *pool = ro_ctx_pool(ctx);
    const int64_t lines = g->v->batch * g->out_size[0];
    grouped f = plan(g);
    const int64_t work = lines * g->out_size[1] * f.s.lanes * f.k;
    const int64_t items = work < 2 * CONV_PIECE_WORK ? 1 : 8 * ro_ctx_threads(ctx);
    if (!allocate(ctx, &f))
        return RO_ERR_MEMORY;
    list_taps(&f);
    RO_NAME(ro_conv_find_sources)(&f.s);
    ro_pool_for(pool, f.s.blocks, items == 1 ? f.s.blocks : 1, pack_blocks, &f);
    ro_pool_for(pool, lines, ceil_div(lines, items), run_items, &f);
    return RO_OK;
}
