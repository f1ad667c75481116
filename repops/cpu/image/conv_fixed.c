/* conv2d_fixed, conv2d_fixed_dx and conv2d_fixed_dw (SPEC.md section 3.5). Threads share blocks of
 * their products; an engine of matmul_fixed computes the chunks of a block. */
#include "repops/cpu/gemm/fixed_check.h"
#include "repops/cpu/image/conv_fixed_planes.h"
#include "repops/op_image.h"

enum {
    BLOCK_ROWS = 512,  /* lines from which packing a chunk of b pays */
    BLOCK_COLS = 512,  /* columns from which gathering and packing a line pays */
    LEAST = 32,        /* blocks of fewer lines or columns are not cut further */
    FEW = 8,           /* results of a window that are few: see better_by_columns */
    LINE = 16,         /* floats in a cache line */
    WORK_US = 1 << 15, /* multiply-adds that take about a microsecond */
};

typedef struct {
    fixed_conv c;
    int64_t rows, cols;   /* size of a block */
    int64_t down, across; /* blocks of one product: down its rows, and across its columns */
    int64_t planes;       /* floats of a chunk's planes; 0: lines are gathered without planes */
    ro_guard_log *log;    /* findings of checks; NULL: sums are not checked */
    char *workspace;
    int64_t workspace_size; /* bytes for each thread */
} fixed_plan;

/* A block of one product, and the memory of the thread that computes it. */
typedef struct {
    const fixed_plan *plan;
    fixed_part part;
    int64_t row, rows, col, cols;
    char *packed_a, *packed_b;
    double *a_power, *b_power;
    float *lines, *columns, *total;
    fixed_planes planes;
    fixed_check *check; /* NULL: sums are not checked */
    fixed_check checks;
} fixed_block;

/* ---- memory ---- */

static int64_t columns_width(const fixed_engine *e) {
    return ceil_div(e->b_lines, VW) * VW;
}

/* Places a block's arrays in `memory`, which may be NULL. Returns how many bytes they take. */
static int64_t place(const fixed_plan *p, char *memory, fixed_block *s) {
    const fixed_engine *e = p->c.engine;
    const int64_t groups = ceil_div(p->cols, e->b_lines);
    int64_t at = 0;
    s->packed_a = fixed_take(memory, &at, e->a_bytes, 1);
    s->packed_b = fixed_take(memory, &at, groups * e->b_bytes, 1);
    s->a_power = fixed_take(memory, &at, e->a_lines, sizeof(double));
    s->b_power = fixed_take(memory, &at, groups * e->b_lines, sizeof(double));
    s->lines = fixed_take(memory, &at, e->a_lines * FIXED_LINE, sizeof(float));
    s->columns = fixed_take(memory, &at, RO_DOT_CHUNK * columns_width(e), sizeof(float));
    s->total = fixed_take(memory, &at, p->rows * p->cols, sizeof(float));
    s->planes.x = fixed_take(memory, &at, p->planes, sizeof(float));
    s->checks = (fixed_check){.engine = p->log ? e : NULL, .bits = p->c.v.bits};
    if (p->log)
        s->checks.guard = p->log->guard;
    s->check = p->log ? &s->checks : NULL;
    RO_NAME(ro_fixed_check_place)(&s->checks, p->rows, p->cols, memory, &at);
    return at;
}

/* ---- chunks ---- */

static fixed_lines lines_of_a(const fixed_block *s, const fixed_runs *runs, int64_t k,
                              int64_t steps, int64_t m) {
    const fixed_conv *c = &s->plan->c;
    const int64_t lines = min_i64(c->engine->a_lines, s->row + s->rows - m);
    if (c->plain)
        return (fixed_lines){c->a + m * c->pixel + s->part.group * c->length + k, c->pixel, 1,
                             lines, steps};
    if (s->plan->planes > 0)
        RO_NAME(ro_fixed_lines_of)(c, &s->part, &s->planes, k, steps, m, lines, s->lines);
    else if (c->kind == RO_OP_CONV2D_DW)
        RO_NAME(ro_fixed_gather_taps)(c, &s->part, k, steps, m, lines, s->lines);
    else
        RO_NAME(ro_fixed_gather_windows)(c, &s->part, runs, m, lines, steps, s->lines);
    return (fixed_lines){s->lines, FIXED_LINE, 1, lines, steps};
}

/* Prefetches the next lines of a while those before them are multiplied, if they are read in
 * place. */
static void fetch_lines(const fixed_block *s, int64_t k, int64_t steps, int64_t m) {
    const fixed_conv *c = &s->plan->c;
    const int64_t lines = c->plain ? min_i64(c->engine->a_lines, s->row + s->rows - m) : 0;
    for (int64_t i = 0; i < lines; i++)
        for (int64_t j = 0; j < steps; j += LINE)
            __builtin_prefetch(c->a + (m + i) * c->pixel + s->part.group * c->length + k + j);
}

static fixed_lines columns_of_b(const fixed_block *s, const fixed_runs *runs, int64_t k,
                                int64_t steps, int64_t n) {
    const fixed_conv *c = &s->plan->c;
    const int64_t lines = min_i64(c->engine->b_lines, s->col + s->cols - n);
    const int64_t width = columns_width(c->engine);
    if (c->kind != RO_OP_CONV2D_DX)
        return (fixed_lines){c->b + k * c->v.filters + s->part.group * c->v.width + n, 1,
                             c->v.filters, lines, steps};
    RO_NAME(ro_fixed_gather_weights)(c, &s->part, runs, n, lines, width, s->columns);
    return (fixed_lines){s->columns, 1, width, lines, steps};
}

/* Packs `steps` steps of columns. Only the first `met` of them are multiplied with lines of a, so a
 * check adds up no more than these. */
static void pack_columns(const fixed_block *s, const fixed_runs *runs, int64_t k, int64_t steps,
                         int64_t met) {
    const fixed_engine *e = s->plan->c.engine;
    const int bits = s->plan->c.v.bits;
    for (int64_t n = 0; n < s->cols; n += e->b_lines) {
        fixed_lines l = columns_of_b(s, runs, k, steps, s->col + n);
        char *to = s->packed_b + n / e->b_lines * e->b_bytes;
        e->pack_b(&l, bits, to, s->b_power + n);
        l.steps = met;
        if (s->check)
            RO_NAME(ro_fixed_check_group)
        (s->check, n / e->b_lines, to,
         RO_NAME(ro_fixed_packed_sum)(e, RO_PACKED_W, &l, bits, to, s->b_power + n));
    }
}

/* Adds a chunk in which every term is absent: its sums are +0, or NaN if a column is not finite. */
static void add_absent(const fixed_block *s) {
    for (int64_t n = 0; n < s->cols; n++)
        for (int64_t m = 0; s->b_power[n] != s->b_power[n] && m < s->rows; m++)
            s->total[m * s->cols + n] = RO_F32_NAN;
}

/* Fills planes with the pixels that the windows of a chunk see, for all channels of the group. */
static void fill_planes(fixed_block *s, int64_t k, int64_t windows) {
    const fixed_conv *c = &s->plan->c;
    s->planes.view = RO_NAME(ro_fixed_view_of)(c, &s->part);
    s->planes.channel = s->part.group * c->v.depth, s->planes.channels = c->v.depth;
    RO_NAME(ro_fixed_fill_planes)(c, &s->part, k, windows, &s->planes);
}

/* The range of steps of a chunk. */
typedef struct {
    fixed_runs runs;
    int64_t k, steps;
} fixed_chunk;

/* Packs lines of a from row m of the block on. Returns their tiles. */
static fixed_tiles tiles_of(const fixed_block *s, const fixed_chunk *c, int64_t m) {
    const fixed_lines l = lines_of_a(s, &c->runs, c->k, c->steps, s->row + m);
    const fixed_engine *e = s->plan->c.engine;
    e->pack_a(&l, s->plan->c.v.bits, s->packed_a, s->a_power);
    return (fixed_tiles){.a = s->packed_a,
                         .b = s->packed_b,
                         .a_power = s->a_power,
                         .b_power = s->b_power,
                         .rows = l.lines,
                         .cols = s->cols,
                         .steps = c->steps,
                         .bits = s->plan->c.v.bits,
                         .c = s->total + m * s->cols,
                         .c_row = s->cols};
}

/* ---- checks ---- */

/* Finds rows that were computed wrongly: packs rows again, computes the chunk's sums again, and
 * compares them. */
static void find_rows(const fixed_block *s, const fixed_chunk *chunk, ro_guard_finding *found) {
    const fixed_engine *e = s->plan->c.engine;
    const fixed_check *c = s->check;
    for (int64_t m = 0; m < s->rows; m += e->a_lines) {
        const fixed_sums sums = {c->expected, c->again, NULL};
        fixed_tiles t = tiles_of(s, chunk, m);
        t.c = c->scratch, t.sums = &sums, t.first = true;
        memset(c->again, 0, (size_t)e->a_lines * sizeof *c->again);
        e->tiles(&t);
        RO_NAME(ro_fixed_check_rows)(c, t.rows, m, found);
    }
}

/* Returns 1 if the chunk's sums pass their checks. `time` is 1 when the block is computed again. */
static int end_checks(const fixed_block *s, const fixed_chunk *chunk, int time) {
    const fixed_conv *c = &s->plan->c;
    const fixed_tiles t = {
        .b = s->packed_b, .b_power = s->b_power, .cols = s->cols, .steps = chunk->steps};
    const int64_t phase = s->part.phase[0] * c->phases[1] + s->part.phase[1];
    ro_guard_finding found;
    if (RO_NAME(ro_fixed_check_end)(s->check, &t, &found))
        return 1;
    if (found.kind == RO_GUARD_SUMS)
        find_rows(s, chunk, &found);
    found.again = time;
    found.product = phase * c->v.groups + s->part.group, found.chunk = chunk->k / RO_DOT_CHUNK;
    found.row += found.row < 0 ? 0 : s->row;
    found.col += found.col < 0 ? 0 : s->col;
    ro_guard_note(s->plan->log, &found);
    return 0;
}

/* ---- blocks ---- */

/* Returns 0 if the chunk's sums fail their checks. */
static int run_chunk(fixed_block *s, int64_t k, int time) {
    const fixed_conv *c = &s->plan->c;
    const int64_t steps = min_i64(RO_DOT_CHUNK, c->k - k);
    fixed_chunk chunk; /* not initialised, as runs are large; filled below */
    chunk.k = k, chunk.steps = steps;
    if (c->kind != RO_OP_CONV2D_DW)
        RO_NAME(ro_fixed_find_runs)(c, &s->part, k, &chunk.runs);
    if (c->kind == RO_OP_CONV2D_DX)
        chunk.steps = fixed_steps_met(&chunk.runs);
    if (s->check)
        RO_NAME(ro_fixed_check_start)(s->check, s->rows, s->cols);
    pack_columns(s, &chunk.runs, k, steps, chunk.steps);
    if (s->plan->planes > 0)
        fill_planes(s, k, steps);
    if (chunk.steps == 0)
        add_absent(s);
    for (int64_t m = 0; chunk.steps > 0 && m < s->rows; m += c->engine->a_lines) {
        fixed_tiles t = tiles_of(s, &chunk, m);
        fetch_lines(s, k, steps, s->row + m + c->engine->a_lines);
        if (s->check)
            RO_NAME(ro_fixed_check_run)(s->check, &t, NULL, m);
        else
            c->engine->tiles(&t);
    }
    return !s->check || chunk.steps == 0 || end_checks(s, &chunk, time);
}

static int run_chunks(fixed_block *s, int time) {
    memset(s->total, 0, (size_t)(s->rows * s->cols) * sizeof(float));
    for (int64_t k = 0; k < s->plan->c.k; k += RO_DOT_CHUNK)
        if (!run_chunk(s, k, time))
            return 0;
    return 1;
}

/* Runs a block, and once more if its sums fail their checks. */
static void run_block(fixed_block *s) {
    const fixed_conv *c = &s->plan->c;
    for (int time = 0; time < 2 && !run_chunks(s, time);)
        time++;
    for (int64_t m = 0; m < s->rows; m++) {
        float *out = fixed_result_of(c, &s->part, s->row + m) + s->col;
        for (int64_t n = 0; n < s->cols; n++)
            out[n] = ro_canon(s->total[m * s->cols + n]);
    }
}

static int64_t lines_in(const fixed_conv *c, const fixed_part *p) {
    return c->kind == RO_OP_CONV2D_DW ? c->m : fixed_windows(c, p);
}

static void run_blocks(void *user, int64_t first, int64_t last, int worker) {
    const fixed_plan *p = user;
    const fixed_conv *c = &p->c;
    for (int64_t i = first; i < last; i++) {
        const int64_t product = i / p->across / p->down, phase = product / c->v.groups;
        fixed_block s = {
            .plan = p,
            .part = {product % c->v.groups, {phase / c->phases[1], phase % c->phases[1]}},
            .row = i / p->across % p->down * p->rows,
            .col = i % p->across * p->cols};
        s.rows = min_i64(p->rows, lines_in(c, &s.part) - s.row);
        s.cols = min_i64(p->cols, c->n - s.col);
        place(p, p->workspace + worker * p->workspace_size, &s);
        if (s.rows > 0)
            run_block(&s);
    }
}

/* ---- plans ---- */

/* Cuts products into blocks whose sizes are multiples of the engine's groups. Several blocks per
 * thread let threads finish at about the same time. */
static int64_t cut(fixed_plan *p, int threads) {
    const fixed_conv *c = &p->c;
    const fixed_engine *e = c->engine;
    int64_t rows = BLOCK_ROWS, cols = BLOCK_COLS;
    for (;;) {
        p->rows = ceil_div(min_i64(rows, c->m), e->a_lines) * e->a_lines;
        p->cols = ceil_div(min_i64(cols, c->n), e->b_lines) * e->b_lines;
        p->down = ceil_div(c->m, p->rows);
        p->across = ceil_div(c->n, p->cols);
        const int64_t blocks = c->v.groups * c->phases[0] * c->phases[1] * p->down * p->across;
        const int tall = p->rows > LEAST && p->rows > e->a_lines;
        const int wide = p->cols > LEAST && p->cols > e->b_lines;
        if (threads == 1 || blocks >= 2 * threads || !(tall || wide))
            return blocks;
        if (tall && (p->rows > p->cols || !wide))
            rows = p->rows / 2;
        else
            cols = p->cols / 2;
    }
}

/* Returns the floats of conv2d_dw's planes. They pay if a block has several taps of a channel. */
static int64_t planes_of(const fixed_plan *p) {
    const fixed_conv *c = &p->c;
    const fixed_part part = {0};
    if (c->kind != RO_OP_CONV2D_DW || c->k == 0 || min_i64(p->rows, c->m) < 2 * c->v.depth)
        return 0;
    const fixed_view v = RO_NAME(ro_fixed_view_of)(c, &part);
    const int64_t rows = RO_NAME(ro_fixed_plane_rows)(c, &part, &v, min_i64(RO_DOT_CHUNK, c->k));
    const int64_t size =
        RO_NAME(ro_fixed_plane_size)(&v, rows) * (v.phases[0] * v.phases[1] * c->v.depth + 1);
    return size * (int64_t)sizeof(float) <= FIXED_PLANES_MOST ? size : 0;
}

/* Returns whether windows are better as columns: gathered ones, or ones with few results, which
 * would leave columns of b empty. With AVX2, 24 bits: 1.25 times as fast for 3 or 16 channels, 3
 * for 3 results. */
static int better_by_columns(const fixed_conv *c) {
    return c->k > 0 && (!c->plain || c->v.groups > 1 || c->n <= FEW);
}

ro_status RO_NAME(ro_conv2d_fixed_by)(const ro_job *job, const fixed_engine *engine, int way) {
    fixed_plan p = {.c = RO_NAME(ro_fixed_conv_of)(job)};
    fixed_block s;
    ro_status status;
    p.c.engine = engine;
    const double outputs = (double)ro_shape_numel(&job->call->output);
    if (outputs == 0)
        return RO_OK;
    const int threads =
        ro_pool_threads(ro_ctx_pool(job->ctx), outputs * (double)(p.c.k + 1) / WORK_US);
    const int columns = way == FIXED_COLUMNS || (way == FIXED_EITHER && better_by_columns(&p.c));
    if (columns && p.c.kind != RO_OP_CONV2D_DW &&
        RO_NAME(ro_fixed_by_columns)(job, &p.c, threads, &status))
        return status;
    if (way == FIXED_COLUMNS)
        return RO_ERR_UNSUPPORTED;
    ro_guard_log log = {.guard = ro_ctx_guarding(job->ctx)};
    p.log = log.guard && engine->adding ? &log : NULL;
    const int64_t blocks = cut(&p, threads);
    p.planes = planes_of(&p);
    p.workspace_size = place(&p, NULL, &s);
    p.workspace = ro_workspace(job->ctx, (size_t)(p.workspace_size * ro_ctx_threads(job->ctx)));
    if (!p.workspace)
        return RO_ERR_MEMORY;
    ro_pool_for(ro_ctx_pool(job->ctx), blocks, threads == 1 ? blocks : 1, run_blocks, &p);
    return p.log ? ro_guard_end(job->ctx, &log) : RO_OK;
}

static ro_status conv2d_fixed(const ro_job *job) {
    const int bits = (int)job->call->attr[RO_CONV_FIXED_BITS];
    return RO_NAME(ro_conv2d_fixed_by)(job, RO_NAME(ro_fixed_engine)(bits, 0), FIXED_EITHER);
}
RO_KERNEL(conv2d_fixed, .run = conv2d_fixed)
RO_KERNEL(conv2d_fixed_dx, .run = conv2d_fixed)
RO_KERNEL(conv2d_fixed_dw, .run = conv2d_fixed)
