/* conv2d_dw (conv_weight.h) chunk by chunk, with x in place. A tile's rows are neighbouring
 * channels of a tap's pixel. Its steps are, line by line, those pixels of a chunk whose tap lies
 * inside the image. A chunk of dy is packed once for all taps, and the tiles prefetch the next
 * chunk. */
#include "repops/cpu/image/conv_kernel.h"

enum {
    LEAST_WIDTH = 8,    /* least pixels of a line */
    LEAST_DEPTH = 24,   /* least channels of a tap */
    MOST_COLUMNS = 512, /* most columns of an item */
    MOST_WIDTH = 768,   /* most channels plus columns: a chunk of both stays in the cache */
};

typedef struct {
    const ro_conv *v;
    const float *x, *dy;
    float *dw;
    int64_t k, taps, height; /* height: rows of a tile */
    int64_t tiles;           /* tiles of a tap */
    int64_t rows, cols;      /* size of an item in tiles and columns */
    int64_t across;
    int64_t most_runs; /* most runs of a tap */
    char *workspace;
    int64_t workspace_size; /* bytes for each thread */
} lanes;

/* Some tiles and columns, for one chunk. */
typedef struct {
    const lanes *g;
    int64_t first, last; /* range of tiles, counted through all taps */
    int64_t col, n;
    int64_t k0, k;
    tile_run *runs; /* most_runs for each tap */
    int64_t *run_count, *steps;
    float *b;
} stretch;

/* Lists those pixels of the chunk whose tap t is inside, line by line. */
static void list_runs(const stretch *s, int64_t t) {
    const ro_conv *v = s->g->v;
    const int64_t offset[2] = {offset_of(v, 0, t), offset_of(v, 1, t)};
    tile_run *to = s->runs + t * s->g->most_runs;
    int64_t first[2], count[2], steps = 0, stop;
    inside(v, 0, offset[0], &first[0], &count[0]);
    inside(v, 1, offset[1], &first[1], &count[1]);
    s->run_count[t] = 0;
    for (int64_t k = s->k0; k < s->k0 + s->k; k = stop) {
        const int64_t w = k % v->out[1], h = k / v->out[1] % v->out[0];
        stop = min_i64(k - w + v->out[1], s->k0 + s->k);
        const int64_t from = max_i64(w, first[1]);
        const int64_t end = min_i64(w + stop - k, first[1] + count[1]);
        if (h < first[0] || h >= first[0] + count[0] || from >= end)
            continue;
        const int64_t line = k / v->out[1] / v->out[0] * v->in[0] + h * v->stride[0] + offset[0];
        const int64_t pixel = line * v->in[1] + from * v->stride[1] + offset[1];
        *to++ = (tile_run){pixel * v->channels, (k + from - w - s->k0) * NR, end - from};
        s->run_count[t]++;
        steps += end - from;
    }
    s->steps[t] = steps;
}

/* Makes the first tiles prefetch the next chunk of x and then of dy, one cache line per step. Skips
 * pad[0] lines of x, which this chunk has read already. */
static void look_ahead(const stretch *s, int64_t number, tile *t) {
    const lanes *g = s->g;
    const ro_conv *v = g->v;
    const int64_t next = s->k0 + s->k, done = number * RO_DOT_CHUNK * 16;
    const int64_t per = v->stride[0] * v->stride[1] * v->channels;
    t->ahead = t->b, t->ahead_step = 0;
    if (next >= g->k)
        return;
    const int64_t of_x = RO_DOT_CHUNK * per;
    if (done < of_x) {
        t->ahead = g->x + next * per + done + v->pad[0] * v->in[1] * v->channels;
        t->ahead_step = 16;
    } else if (done - of_x < RO_DOT_CHUNK * v->filters) {
        t->ahead = g->dy + next * v->filters + (done - of_x);
        t->ahead_step = 16;
    }
}

static void pack_columns(const stretch *s) {
    const int64_t filters = s->g->v->filters;
    const float *from = s->g->dy + s->k0 * filters + s->col;
    for (int64_t j = 0; j < s->n; j += NR)
        pack(&(panel){from + j, 1, filters, min_i64(NR, s->n - j), NR, s->k},
             s->b + j * RO_DOT_CHUNK);
}

static void multiply(const stretch *s) {
    const lanes *g = s->g;
    const ro_conv *v = g->v;
    int64_t number = 0;
    tile t = {.a_step = v->stride[1] * v->channels, .alpha = 1.0f};
    t.c_row = t.out_row = v->filters;
    t.flags = (s->k0 == 0 ? TILE_FIRST : 0) | (s->k0 + s->k == g->k ? TILE_LAST : 0);
    for (int64_t j = 0; j < s->n; j += NR) {
        t.b = s->b + j * RO_DOT_CHUNK, t.cols = min_i64(NR, s->n - j);
        for (int64_t i = s->first; i < s->last; i++) {
            const int64_t tap = i / g->tiles, channel = i % g->tiles * g->height;
            t.a = g->x + channel;
            t.runs = s->runs + tap * g->most_runs, t.run_count = s->run_count[tap];
            t.k = s->steps[tap];
            t.c = t.out = g->dw + (tap * v->depth + channel) * v->filters + s->col + j;
            look_ahead(s, number++, &t);
            RO_NAME(ro_tile_lanes)((int)min_i64(g->height, v->depth - channel), &t);
        }
    }
}

static void run_items(void *user, int64_t first, int64_t last, int worker) {
    const lanes *g = user;
    stretch s = {.g = g};
    s.b = (float *)(void *)(g->workspace + worker * g->workspace_size);
    s.runs = (tile_run *)(void *)(s.b + g->cols * RO_DOT_CHUNK);
    s.run_count = (int64_t *)(void *)(s.runs + g->taps * g->most_runs);
    s.steps = s.run_count + g->taps;
    for (int64_t i = first; i < last; i++) {
        s.first = i / g->across * g->rows, s.col = i % g->across * g->cols;
        s.last = min_i64(s.first + g->rows, g->taps * g->tiles);
        s.n = min_i64(g->cols, g->v->filters - s.col);
        for (s.k0 = 0; s.k0 < g->k; s.k0 += s.k) {
            s.k = min_i64(RO_DOT_CHUNK, g->k - s.k0);
            for (int64_t t = s.first / g->tiles; t * g->tiles < s.last; t++)
                list_runs(&s, t);
            pack_columns(&s);
            multiply(&s);
        }
    }
}

/* Cuts columns first, as each cut of rows packs dy once more. Returns the number of items. */
static int64_t share(lanes *g, int64_t threads) {
    const int64_t n = g->v->filters, all = g->taps * g->tiles;
    if (g->k * n * g->taps * g->v->depth < 2 * CONV_PIECE_WORK)
        threads = 1;
    int64_t across = max_i64(ceil_div(n, MOST_COLUMNS), min_i64(threads, n / NR));
    g->cols = round_up(ceil_div(n, max_i64(1, across)), NR);
    g->across = ceil_div(n, g->cols);
    g->rows = g->across % threads == 0 ? all : ceil_div(all, min_i64(all, threads));
    return g->across * ceil_div(all, g->rows);
}

static int takes(conv_call *c) {
    const ro_conv *v = c->v;
    return v->groups == 1 && v->out[1] >= LEAST_WIDTH && v->depth >= LEAST_DEPTH &&
           v->depth + min_i64(MOST_COLUMNS, v->filters) <= MOST_WIDTH;
}

static ro_status run(conv_call *c) {
    const ro_job *job = c->job;
    const ro_conv *v = c->v;
    const int threads = ro_ctx_threads(job->ctx);
    lanes g = {.v = v, .x = job->in[0], .dy = job->in[1], .dw = job->out};
    g.k = v->batch * v->out[0] * v->out[1];
    g.taps = v->kernel[0] * v->kernel[1];
    g.height = panel_rows(v->depth, MR), g.tiles = ceil_div(v->depth, g.height);
    g.most_runs = RO_DOT_CHUNK / v->out[1] + 2;
    const int64_t items = share(&g, threads);
    g.workspace_size = round_up(g.cols * RO_DOT_CHUNK * (int64_t)sizeof(float) +
                                    g.taps * g.most_runs * (int64_t)sizeof(tile_run) +
                                    2 * g.taps * (int64_t)sizeof(int64_t),
                                64);
    g.workspace = ro_workspace(job->ctx, (size_t)(threads * g.workspace_size));
    if (!g.workspace)
        return RO_ERR_MEMORY;
    ro_pool_for(ro_ctx_pool(job->ctx), items, 1, run_items, &g);
    return RO_OK;
}

const conv_kernel RO_NAME(ro_conv_lanes_weight) = {"lanes", takes, run};
