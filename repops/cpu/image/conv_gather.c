/* The product of conv_gather.h. All of b is packed once, for all threads; an item is a part of the
 * product (conv_gather_part.h). */
#include "repops/cpu/image/conv_gather_part.h"
#include "repops/cpu/image/conv_kernel.h"

/* In a batch of so many images, the pixels that lack the same taps fill a tile. */
enum { SPLIT_BATCH = 8 };

/* ---- b ---- */

/* An item is a panel of a group. */
static void pack_panels(void *user, int64_t first, int64_t last, int worker) {
    gather *g = user;
    const int64_t panels = ceil_div(g->n, NR);
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t group = i / panels, j = i % panels * NR;
        const panel s = {NULL, g->b_col, g->b_row, min_i64(NR, g->n - j), NR, g->depth};
        float *to = packed_b(g, group, j);
        for (int64_t k = 0; k < g->k; k += g->depth) {
            panel t = s;
            t.from = conv_weight(g, group, k, j);
            pack(&t, to + k * NR);
        }
        if (!g->split && !all_finite(to, g->k * NR))
            atomic_store(&g->not_finite, 1);
    }
}

int64_t RO_NAME(ro_conv_packed_count)(const gather *g) {
    return round_up(g->n, NR) * g->k * g->v->groups;
}

void RO_NAME(ro_conv_pack)(ro_pool *pool, gather *g, int64_t grain) {
    ro_pool_for(pool, ceil_div(g->n, NR) * g->v->groups, grain, pack_panels, g);
}

/* ---- the whole operator ---- */

static int64_t a_size(const gather *g) {
    return round_up(g->rows * row_size(min_i64(CONV_KC, g->k)) + VW, 16);
}

/* Runs items: each is some columns of a group for a block. */
static void run_items(void *user, int64_t first, int64_t last, int worker) {
    gather *g = user;
    float *a = g->workspace + worker * g->workspace_size, *totals = a + a_size(g);
    piece *pieces = g->pieces + worker * g->piece_count;
    for (int64_t i = first; i < last; i++) {
        gather_part s = {
            .g = g, .b = &g->blocks[i / g->across / g->v->groups], .pieces = pieces, .a = a};
        s.runs = g->runs + 2 * worker * g->piece_count;
        s.group = i / g->across % g->v->groups, s.col = i % g->across * g->cols;
        s.n = min_i64(g->cols, g->n - s.col);
        s.count = RO_NAME(ro_conv_pieces)(g, s.b, pieces);
        RO_NAME(ro_conv_run_part)(&s, totals);
    }
}

/* Cuts the product into several blocks per thread, since blocks take unequal time, and into columns
 * if blocks are too few. Returns the largest possible number of blocks. */
static int64_t share(gather *g, int threads) {
    const int64_t all = g->v->batch * g->out_size[0] * g->out_size[1], n = g->n * g->v->groups;
    const int64_t spans = g->span_count[0] * g->span_count[1];
    if (all * n * max_i64(1, g->k) < 2 * CONV_PIECE_WORK)
        threads = 1;
    g->rows = threads == 1 ? CONV_MC : min_i64(CONV_MC, ceil_div(all, 8 * threads));
    g->rows = min_i64(all, max_i64(4 * MR, g->rows));
    g->across = ceil_div(threads, max_i64(spans, all / g->rows) * g->v->groups);
    g->cols = round_up(ceil_div(g->n, min_i64(g->across, ceil_div(g->n, NR))), NR);
    g->across = ceil_div(g->n, g->cols);
    return spans + 2 * (all / g->rows);
}

/* Allocates the workspace: lists, b, then a part for each thread. */
static int gather_allocate(ro_ctx *ctx, gather *g, int64_t blocks) {
    const int64_t threads = ro_ctx_threads(ctx), spans = g->span_count[0] + g->span_count[1];
    const int64_t lists =
        spans * (int64_t)sizeof(span) + blocks * (int64_t)sizeof(gather_block) +
        threads * g->piece_count * (int64_t)(sizeof(piece) + 2 * sizeof(tile_run));
    const int64_t packed = g->kept ? 0 : RO_NAME(ro_conv_packed_count)(g);
    g->workspace_size = a_size(g) + round_up(g->rows * g->cols, 16);
    const int64_t floats = packed + threads * g->workspace_size;
    char *room = ro_workspace(ctx, (size_t)(round_up(lists, 64) + floats * (int64_t)sizeof(float)));
    if (!room)
        return 0;
    g->packed = (float *)(void *)(room + round_up(lists, 64));
    g->workspace = g->packed + packed;
    if (g->kept)
        g->packed = (float *)(uintptr_t)g->kept;
    g->spans[0] = (span *)(void *)room;
    g->spans[1] = g->spans[0] + g->span_count[0];
    g->blocks = (gather_block *)(void *)(g->spans[0] + spans);
    g->pieces = (piece *)(void *)(g->blocks + blocks);
    g->runs = (tile_run *)(void *)(g->pieces + threads * g->piece_count);
    return 1;
}

/* Decides whether spans end where taps reach outside (g->split), and counts spans. */
static void count_spans(gather *g, int split) {
    int outside = 0;
    g->split = 1;
    for (int d = 0; d < 2; d++) {
        g->span_count[d] = RO_NAME(ro_conv_spans)(g, d, NULL);
        outside |= g->span_count[d] > min_i64(g->spread[d], g->out_size[d]);
    }
    if (!outside || split)
        return;
    g->split = 0;
    for (int d = 0; d < 2; d++)
        g->span_count[d] = min_i64(g->spread[d], g->out_size[d]);
}

/* Runs the convolution. Packing may find weights that are not finite; then spans must end where
 * taps reach outside, and all is run again. */
static ro_status gather_run(ro_ctx *ctx, gather *g, int split) {
    ro_pool *pool = ro_ctx_pool(ctx);
    const int64_t panels = ceil_div(g->n, NR) * g->v->groups;
    count_spans(g, split);
    if (!gather_allocate(ctx, g, share(g, ro_ctx_threads(ctx))))
        return RO_ERR_MEMORY;
    for (int d = 0; d < 2; d++)
        RO_NAME(ro_conv_spans)(g, d, g->spans[d]);
    const int64_t items = RO_NAME(ro_conv_blocks)(g, g->blocks) * g->across * g->v->groups;
    if (!g->kept)
        RO_NAME(ro_conv_pack)(pool, g, items == 1 ? panels : 1);
    if (!g->split && atomic_load(&g->not_finite))
        return gather_run(ctx, g, 1);
    ro_pool_for(pool, items, 1, run_items, g);
    return RO_OK;
}

static int takes(conv_call *c) {
    (void)c;
    return 1;
}

ro_status RO_NAME(ro_conv_gather_run)(ro_ctx *ctx, gather *g) {
    g->k = g->v->kernel[0] * g->v->kernel[1] * g->depth;
    g->piece_count = g->v->kernel[0] * g->v->kernel[1] * (g->depth / RO_DOT_CHUNK + 2);
    return gather_run(ctx, g, g->v->batch >= SPLIT_BATCH);
}

static ro_status run(conv_call *c) {
    return RO_NAME(ro_conv_gather_run)(c->job->ctx, c->g);
}

const conv_kernel RO_NAME(ro_conv_gather) = {"gather", takes, run};
