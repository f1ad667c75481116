/* conv2d_fixed and conv2d_fixed_dx with windows as columns and filters (or channels of x) as rows:
 * for products whose windows are short, or with few filters, which would leave columns empty. For a
 * block of windows, all chunks of the filters are packed once, and then its windows, a few at a
 * time. */
#include "repops/cpu/gemm/gemm_pack.h"
#include "repops/cpu/image/conv_fixed_planes.h"
#include "repops/op_image.h"

enum {
    ROWS_MOST = 512,
    CHANNELS = 16,             /* channels in the groups of a block: a cache line of each pixel */
    FILTERS_MOST = 256 * 1024, /* bytes of packed filters: half of an L2 cache */
    WINDOWS = 512,             /* windows of a block: enough to pay for packing the filters */
    WINDOWS_LEAST = 32,
};

typedef struct {
    fixed_conv c;
    int64_t groups;                     /* groups in a block */
    int64_t rows, cols;                 /* size of a block: results of a window, windows */
    int64_t across, down, group_blocks; /* blocks of one product; blocks for all groups */
    int64_t plane_size;                 /* most floats of a channel's planes */
    char *workspace;
    int64_t workspace_size; /* bytes for each thread */
} plan;

/* A chunk of a group's filters. */
typedef struct {
    char *packed;
    double *power;
    int32_t at[RO_DOT_CHUNK]; /* offset of each step in the planes */
    int64_t steps;            /* steps that windows are packed with */
} chunk;

/* A block, and the memory of the thread that computes it. */
typedef struct {
    const plan *plan;
    fixed_part part;
    int64_t groups;
    int64_t row, rows, col, cols; /* row and rows are those of one group */
    fixed_planes planes;
    chunk *chunks;
    char *packed_a, *packed_b;
    double *a_power, *b_power;
    float *columns, *total; /* copied steps and sums of a few windows */
} block;

/* ---- memory ---- */

/* Returns the chunks of a group. Each has packs_of(p) packs of rows. */
static int64_t chunks_of(const plan *p) {
    return ceil_div(p->c.k, RO_DOT_CHUNK);
}

static int64_t packs_of(const plan *p) {
    return ceil_div(p->rows, p->c.engine->a_lines);
}

static int64_t filter_bytes(const plan *p) {
    return p->groups * chunks_of(p) * packs_of(p) * p->c.engine->a_bytes;
}

/* Places a block's arrays in `memory`, which may be NULL. Returns how many bytes they take. */
static int64_t place(const plan *p, char *memory, block *s) {
    const fixed_engine *e = p->c.engine;
    const int64_t chunks = p->groups * chunks_of(p), packs = chunks * packs_of(p);
    const int64_t channels = p->groups * (p->c.pixel / p->c.v.groups);
    int64_t at = 0;
    s->chunks = fixed_take(memory, &at, chunks, sizeof(chunk));
    s->packed_a = fixed_take(memory, &at, packs * e->a_bytes, 1);
    s->packed_b = fixed_take(memory, &at, e->b_bytes, 1);
    s->a_power = fixed_take(memory, &at, packs * e->a_lines, sizeof(double));
    s->b_power = fixed_take(memory, &at, e->b_lines, sizeof(double));
    s->columns = fixed_take(memory, &at, RO_DOT_CHUNK * fixed_columns_width(e) + VW, sizeof(float));
    s->total =
        fixed_take(memory, &at, ceil_div(p->groups * p->rows, VW) * VW * fixed_columns_width(e),
                   sizeof(float));
    s->planes.x = fixed_take(memory, &at, (channels + 1) * p->plane_size, sizeof(float));
    return at;
}

/* ---- chunks ---- */

/* Returns rows [m, m + a_lines) of the group's weights, with all steps of the chunk at k. */
static fixed_lines weights_of(const block *s, const fixed_runs *runs, int64_t k, int64_t m) {
    const fixed_conv *c = &s->plan->c;
    const ro_conv *v = &c->v;
    const int64_t lines = min_i64(c->engine->a_lines, s->rows - m),
                  width = fixed_columns_width(c->engine);
    if (c->kind == RO_OP_CONV2D)
        return (fixed_lines){c->b + k * v->filters + s->part.group * v->width + s->row + m,
                             1,
                             v->filters,
                             lines,
                             runs->steps,
                             NULL};
    RO_NAME(ro_fixed_gather_weights)(c, &s->part, runs, s->row + m, lines, width, s->columns);
    return (fixed_lines){s->columns, 1, width, lines, runs->steps, NULL};
}

static void pack_chunk(const block *s, int64_t k, int64_t number) {
    const fixed_conv *c = &s->plan->c;
    const fixed_engine *e = c->engine;
    chunk *to = &s->chunks[number];
    fixed_runs runs;
    RO_NAME(ro_fixed_find_runs)(c, &s->part, k, &runs);
    to->steps = fixed_steps_met(&runs);
    to->packed = s->packed_a + number * packs_of(s->plan) * e->a_bytes;
    to->power = s->a_power + number * packs_of(s->plan) * e->a_lines;
    RO_NAME(ro_fixed_place_steps)(&s->planes, &runs, to->steps, to->at);
    for (int64_t m = 0; m < s->rows; m += e->a_lines) {
        const fixed_lines l = weights_of(s, &runs, k, m);
        e->pack_a(&l, c->v.bits, to->packed + m / e->a_lines * e->a_bytes, to->power + m);
    }
}

static void pack_filters(const block *s) {
    const int64_t chunks = chunks_of(s->plan);
    block of_group = *s;
    for (int64_t i = 0; i < s->groups * chunks; i++) {
        of_group.part.group = s->part.group + i / chunks;
        pack_chunk(&of_group, i % chunks * RO_DOT_CHUNK, i);
    }
}

static void add_absent(const block *s, const chunk *x, int64_t windows, float *total) {
    for (int64_t m = 0; m < s->rows; m++)
        for (int64_t n = 0; x->power[m] != x->power[m] && n < windows; n++)
            total[m * fixed_columns_width(s->plan->c.engine) + n] = RO_F32_NAN;
}

/* Adds a chunk to the totals of `windows` windows from window n of the block on. */
static void add_chunk(const block *s, const chunk *x, int64_t n, int64_t windows, float *total) {
    const fixed_conv *c = &s->plan->c;
    const fixed_engine *e = c->engine;
    const int64_t width = fixed_columns_width(e);
    if (x->steps == 0) {
        add_absent(s, x, windows, total);
        return;
    }
    const fixed_lines l = RO_NAME(ro_fixed_columns_of)(c, &s->part, &s->planes, x->at, s->col + n,
                                                       windows, x->steps, s->columns);
    e->pack_b(&l, c->v.bits, s->packed_b, s->b_power);
    for (int64_t m = 0; m < s->rows; m += e->a_lines)
        e->tiles(&(fixed_tiles){x->packed + m / e->a_lines * e->a_bytes, s->packed_b, x->power + m,
                                s->b_power, min_i64(e->a_lines, s->rows - m), windows, x->steps,
                                c->v.bits, total + m * width, width});
}

/* ---- blocks ---- */

/* Rounds VW columns of the totals, and stores those that are windows. */
static void write_windows(const float *total, int64_t width, int64_t rows, int64_t windows,
                          float *const *out) {
    for (int64_t m = 0; m < rows; m += VW) {
        vf x[VW];
        for (int64_t i = 0; i < VW; i++)
            x[i] = vf_load(total + (m + i) * width);
        transpose(x);
        for (int64_t i = 0; i < min_i64(VW, windows); i++)
            vf_store_n(out[i] + m, vf_canon(x[i]), rows - m);
    }
}

/* Computes some windows of the block from n on, and prefetches where their results will be
 * stored. */
static void run_windows(const block *s, int64_t n) {
    const plan *p = s->plan;
    const int64_t chunks = chunks_of(p), width = fixed_columns_width(p->c.engine);
    const int64_t windows = min_i64(p->c.engine->b_lines, s->cols - n), rows = s->groups * s->rows;
    float *out[FIXED_LINES_MOST];
    for (int64_t i = 0; i < windows; i++) {
        out[i] = fixed_result_of(&p->c, &s->part, s->col + n + i) + s->row;
        for (int64_t m = 0; m < rows; m += CHANNELS)
            __builtin_prefetch(out[i] + m, 1);
    }
    memset(s->total, 0, (size_t)(rows * width) * sizeof(float));
    for (int64_t i = 0; i < s->groups * chunks; i++)
        add_chunk(s, &s->chunks[i], n, windows, s->total + i / chunks * s->rows * width);
    for (int64_t i = 0; i < windows; i += VW)
        write_windows(s->total + i, width, rows, windows - i, out + i);
}

static void run_block(block *s) {
    const plan *p = s->plan;
    s->planes.view = RO_NAME(ro_fixed_view_of)(&p->c, &s->part);
    s->planes.channels = s->groups * (p->c.pixel / p->c.v.groups);
    s->planes.channel = s->part.group * (p->c.pixel / p->c.v.groups);
    RO_NAME(ro_fixed_fill_planes)(&p->c, &s->part, s->col, s->cols, &s->planes);
    pack_filters(s);
    for (int64_t n = 0; n < s->cols; n += p->c.engine->b_lines)
        run_windows(s, n);
}

static void run_blocks(void *user, int64_t first, int64_t last, int worker) {
    const plan *p = user;
    const fixed_conv *c = &p->c;
    for (int64_t i = first; i < last; i++) {
        const int64_t product = i / p->across / p->down, phase = product / p->group_blocks;
        const int64_t group = product % p->group_blocks * p->groups;
        block s = {.plan = p,
                   .part = {group, {phase / c->phases[1], phase % c->phases[1]}},
                   .groups = min_i64(p->groups, c->v.groups - group),
                   .row = i / p->across % p->down * p->rows,
                   .col = i % p->across * p->cols};
        s.rows = min_i64(p->rows, c->n - s.row);
        s.cols = min_i64(p->cols, fixed_windows(c, &s.part) - s.col);
        place(p, p->workspace + worker * p->workspace_size, &s);
        if (s.cols > 0)
            run_block(&s);
    }
}

/* ---- plans ---- */

/* Sets the sizes that follow from `cols`. Returns the bytes of a block's planes. */
static int64_t size_planes(plan *p) {
    const fixed_conv *c = &p->c;
    p->plane_size = 0;
    for (int64_t i = 0; i < c->phases[0] * c->phases[1]; i++) {
        const fixed_part part = {0, {i / c->phases[1], i % c->phases[1]}};
        const fixed_view v = RO_NAME(ro_fixed_view_of)(c, &part);
        const int64_t rows = RO_NAME(ro_fixed_plane_rows)(c, &part, &v, p->cols);
        const int64_t size = RO_NAME(ro_fixed_plane_size)(&v, rows) * v.phases[0] * v.phases[1];
        p->plane_size = p->plane_size > size ? p->plane_size : size;
    }
    return p->plane_size * p->groups * (c->pixel / c->v.groups) * (int64_t)sizeof(float);
}

static int64_t blocks_of(plan *p) {
    const fixed_conv *c = &p->c;
    p->down = ceil_div(c->n, p->rows), p->across = ceil_div(c->m, p->cols);
    p->group_blocks = ceil_div(c->v.groups, p->groups);
    return c->phases[0] * c->phases[1] * p->group_blocks * p->down * p->across;
}

/* Returns the number of blocks, or 0 if planes or packed filters would be too large. */
static int64_t cut(plan *p, int threads) {
    const fixed_conv *c = &p->c;
    const int64_t lines = c->engine->b_lines;
    p->groups = min_i64(ceil_div(CHANNELS, c->pixel / c->v.groups), c->v.groups);
    p->rows = min_i64(c->n, ROWS_MOST);
    p->groups = min_i64(p->groups, ROWS_MOST / p->rows);
    while (p->groups > 1 && filter_bytes(p) > FILTERS_MOST)
        p->groups /= 2;
    if (filter_bytes(p) > FILTERS_MOST)
        return 0;
    for (int64_t cols = min_i64(c->m, WINDOWS);; cols = ceil_div(p->cols, 2)) {
        p->cols = ceil_div(cols, lines) * lines;
        const int64_t bytes = size_planes(p), blocks = blocks_of(p);
        const int small = p->cols <= WINDOWS_LEAST || p->cols <= lines;
        if (bytes <= FIXED_PLANES_MOST && (small || threads == 1 || blocks >= 2 * threads))
            return blocks;
        if (small)
            return bytes <= FIXED_PLANES_MOST ? blocks : 0;
    }
}

int RO_NAME(ro_fixed_by_columns)(const ro_job *job, const fixed_conv *c, int threads,
                                 ro_status *status) {
    plan p = {.c = *c};
    block s;
    p.c.length = c->kind == RO_OP_CONV2D ? c->v.depth : c->v.width;
    p.c.across = c->v.kernel[1];
    const int64_t blocks = cut(&p, threads);
    if (blocks == 0)
        return 0;
    p.workspace_size = place(&p, NULL, &s);
    p.workspace = ro_workspace(job->ctx, (size_t)(p.workspace_size * ro_ctx_threads(job->ctx)));
    *status = p.workspace ? RO_OK : RO_ERR_MEMORY;
    if (p.workspace)
        ro_pool_for(ro_ctx_pool(job->ctx), blocks, threads == 1 ? blocks : 1, run_blocks, &p);
    return 1;
}
