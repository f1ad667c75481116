/* matmul_fixed and ro_linear with fixed products (SPEC.md section 3.5). Threads share blocks of the
 * output; an engine computes the chunks of a block. */
#include "repops/cpu/gemm/fixed_check.h"
#include "repops/cpu/gemm/fixed_packed.h"
#include "repops/cpu/gemm/gemm.h"
#include "repops/op_product.h"
#include "repops/src/matmul.h"

enum {
    BLOCK_ROWS = 512,    /* rows from which packing a chunk of b pays */
    BLOCK_COLS = 512,    /* columns from which packing a row of a pays; a packed chunk of so many
                            stays in the L2 cache */
    LEAST = 64,          /* blocks of fewer rows or columns are not cut further */
    WORK_US = 1 << 15,   /* multiply-adds that take about a microsecond */
    WHOLE_MOST = 1 << 26 /* most bytes of an operand that is packed as a whole */
};

typedef struct {
    const fixed_engine *engine;
    ro_matmul v;
    const float *a, *b;
    const fixed_packed *whole_a, *whole_b; /* packed as a whole; NULL: each block packs its own */
    int packs_a, packs_b;                  /* blocks may have to pack them, at least for a check */
    ro_guard_log *log;                     /* findings of checks; NULL: sums are not checked */
    float *c;
    const ro_linear_job *layer; /* the layer, for its epilogue; NULL: not for ro_linear */
    int64_t rows, cols;         /* size of a block */
    int64_t down, across;       /* blocks of one product: down its rows, across its columns */
    char *workspace;
    int64_t workspace_size; /* bytes for each thread */
} fixed_plan;

/* A block of one product, and the memory into which one thread packs its operands. */
typedef struct {
    const fixed_plan *plan;
    fixed_lines a, b;
    int64_t row, col; /* position of the block's first element in the product */
    float *c;
    char *packed_a, *packed_b;
    double *a_power, *b_power;
    bool anew;          /* packs again what was packed as a whole, if its source is there */
    fixed_check *check; /* NULL: sums are not checked */
    fixed_check checks;
} fixed_block;

/* Places a block's arrays in `memory`, which may be NULL. Returns how many bytes they take. */
static int64_t place(const fixed_plan *p, char *memory, fixed_block *s) {
    const fixed_engine *e = p->engine;
    const int64_t groups = p->packs_b ? ceil_div(p->cols, e->b_lines) : 0;
    int64_t at = 0;
    s->packed_a = fixed_take(memory, &at, p->packs_a ? e->a_bytes : 0, 1);
    s->packed_b = fixed_take(memory, &at, groups * e->b_bytes, 1);
    s->a_power = fixed_take(memory, &at, p->packs_a ? e->a_lines : 0, sizeof(double));
    s->b_power = fixed_take(memory, &at, groups * e->b_lines, sizeof(double));
    s->checks = (fixed_check){.engine = p->log ? e : NULL, .bits = p->v.bits};
    if (p->log)
        s->checks.guard = p->log->guard;
    RO_NAME(ro_fixed_check_place)(&s->checks, p->rows, p->cols, memory, &at);
    return at;
}

/* Returns up to `most` lines from line `at` on, and up to a chunk of steps from step k on. */
static fixed_lines part_of(const fixed_lines *all, int64_t at, int64_t most, int64_t k) {
    fixed_lines l = *all;
    l.x = l.x ? l.x + at * l.line + k * l.step : NULL;
    l.lines = min_i64(most, all->lines - at);
    l.steps = min_i64(RO_DOT_CHUNK, all->steps - k);
    return l;
}

/* Applies alpha, beta and the epilogue to rows [m, m + rows) of the block. */
static void finish(const fixed_block *s, int64_t m, int64_t rows) {
    const ro_matmul *v = &s->plan->v;
    const ro_linear_job *l = s->plan->layer;
    for (int64_t i = m; i < m + rows; i++) {
        float *c = s->c + i * v->n;
        for (int64_t n = 0; n < s->b.lines; n++)
            c[n] = ro_canon(c[n] * v->alpha);
    }
    const ro_guard *guard = s->check ? s->check->guard : NULL;
    if (guard && guard->alter)
        guard->alter(guard->user, RO_GUARD_AT_OUTPUT, s->c + m * v->n,
                     (size_t)s->b.lines * sizeof(float));
    if (!l)
        return;
    const int64_t at = s->c - s->plan->c, col = at % v->n;
    const gemm g = {.c = s->plan->c,
                    .c_row = v->n,
                    .y = l->y,
                    .bias = l->bias,
                    .activation = l->layer.activation};
    RO_NAME(ro_gemm_end)(&g, at / v->n + m, rows, col, s->b.lines);
}

/* Packed lines of one chunk: a group of rows of a, or all columns of a block. */
typedef struct {
    const char *group;
    const double *power;
    const uint32_t *sum; /* sum of each group's words when it was packed; NULL: not known */
} packed_lines;

static packed_lines lines_from(const fixed_packed *p, int64_t k, int64_t line) {
    const int64_t chunk = k / RO_DOT_CHUNK, group = line / p->group_lines;
    return (packed_lines){packed_group(p, chunk, group), packed_powers(p, chunk, group),
                          p->adds ? packed_sum(p, chunk, group) : NULL};
}

static packed_lines rows_of(const fixed_block *s, const fixed_lines *l, int64_t k, int64_t m) {
    if (s->plan->whole_a && !(s->anew && l->x))
        return lines_from(s->plan->whole_a, k, s->row + m);
    s->plan->engine->pack_a(l, s->plan->v.bits, s->packed_a, s->a_power);
    return (packed_lines){s->packed_a, s->a_power, NULL};
}

/* Packs a group of columns, and begins its check while the group is in cache. */
static void pack_group(const fixed_block *s, int64_t k, int64_t n) {
    const fixed_engine *e = s->plan->engine;
    const int bits = s->plan->v.bits;
    const fixed_lines l = part_of(&s->b, n, e->b_lines, k);
    char *to = s->packed_b + n / e->b_lines * e->b_bytes;
    e->pack_b(&l, bits, to, s->b_power + n);
    if (s->check)
        RO_NAME(ro_fixed_check_group)
    (s->check, n / e->b_lines, to,
     RO_NAME(ro_fixed_packed_sum)(e, RO_PACKED_W, &l, bits, to, s->b_power + n));
}

/* Begins the checks of columns that were packed as a whole. If their sums at that time are not
 * known, adds them up now. */
static void check_groups(const fixed_block *s, const packed_lines *b, int64_t k) {
    const fixed_engine *e = s->plan->engine;
    for (int64_t n = 0, g = 0; n < s->b.lines; n += e->b_lines, g++) {
        const fixed_lines l = part_of(&s->b, n, e->b_lines, k);
        char *group = (char *)(uintptr_t)b->group + g * e->b_bytes;
        RO_NAME(ro_fixed_check_group)
        (s->check, g, group,
         b->sum ? b->sum[g]
                : RO_NAME(ro_fixed_packed_sum)(e, RO_PACKED_W, &l, s->plan->v.bits, group,
                                               b->power + n));
    }
}

static packed_lines columns_of(const fixed_block *s, int64_t k) {
    const fixed_engine *e = s->plan->engine;
    if (s->plan->whole_b && !(s->anew && s->b.x)) {
        const packed_lines b = lines_from(s->plan->whole_b, k, s->col);
        if (s->check)
            check_groups(s, &b, k);
        return b;
    }
    for (int64_t n = 0; n < s->b.lines; n += e->b_lines)
        pack_group(s, k, n);
    return (packed_lines){s->packed_b, s->b_power, NULL};
}

/* ---- checks ---- */

static void run_tiles(const fixed_block *s, fixed_tiles *t, const uint32_t *known, int64_t m) {
    if (s->check)
        RO_NAME(ro_fixed_check_run)(s->check, t, known, m);
    else
        s->plan->engine->tiles(t);
}

static fixed_tiles tiles_of(const fixed_block *s, const packed_lines *a, const packed_lines *b,
                            const fixed_lines *l, int64_t m, int64_t k) {
    return (fixed_tiles){a->group,
                         b->group,
                         a->power,
                         b->power,
                         l->lines,
                         s->b.lines,
                         l->steps,
                         s->plan->v.bits,
                         s->c + m * s->plan->v.n,
                         s->plan->v.n,
                         NULL,
                         k == 0};
}

/* Finds rows that were computed wrongly: packs rows again, computes the chunk's sums again, and
 * compares them. */
static void find_rows(const fixed_block *s, const packed_lines *b, int64_t k,
                      ro_guard_finding *found) {
    const fixed_engine *e = s->plan->engine;
    fixed_check *c = s->check;
    fixed_block again = *s;
    again.anew = true;
    for (int64_t m = 0; m < s->a.lines; m += e->a_lines) {
        const fixed_sums sums = {c->expected, c->again, NULL};
        const fixed_lines l = part_of(&s->a, m, e->a_lines, k);
        const packed_lines a = rows_of(&again, &l, k, m);
        fixed_tiles t = tiles_of(&again, &a, b, &l, m, k);
        t.c = c->scratch, t.c_row = s->b.lines, t.sums = &sums, t.first = true;
        memset(c->again, 0, (size_t)e->a_lines * sizeof *c->again);
        e->tiles(&t);
        RO_NAME(ro_fixed_check_rows)(c, t.rows, m, found);
    }
}

/* Returns 1 if the chunk's sums pass their checks. `time` is 0, and 1 when the block is computed
 * again. */
static int end_checks(const fixed_block *s, const packed_lines *b, int64_t k, int time) {
    const fixed_plan *p = s->plan;
    const fixed_tiles t = {.b = b->group,
                           .b_power = b->power,
                           .cols = s->b.lines,
                           .steps = min_i64(RO_DOT_CHUNK, p->v.k - k)};
    ro_guard_finding found;
    if (RO_NAME(ro_fixed_check_end)(s->check, &t, &found))
        return 1;
    if (found.kind == RO_GUARD_SUMS)
        find_rows(s, b, k, &found);
    found.again = time;
    found.product = (s->c - p->c) / p->v.n / p->v.m, found.chunk = k / RO_DOT_CHUNK;
    found.row += found.row < 0 ? 0 : s->row;
    found.col += found.col < 0 ? 0 : s->col;
    ro_guard_note(p->log, &found);
    return 0;
}

/* ---- blocks ---- */

static void clear(const fixed_block *s) {
    for (int64_t i = 0; i < s->a.lines; i++)
        memset(s->c + i * s->plan->v.n, 0, (size_t)s->b.lines * sizeof(float));
}

static int run_chunk(const fixed_block *s, int64_t k, int time) {
    const fixed_engine *e = s->plan->engine;
    if (s->check)
        RO_NAME(ro_fixed_check_start)(s->check, s->a.lines, s->b.lines);
    const packed_lines b = columns_of(s, k);
    for (int64_t m = 0; m < s->a.lines; m += e->a_lines) {
        const fixed_lines l = part_of(&s->a, m, e->a_lines, k);
        const packed_lines a = rows_of(s, &l, k, m);
        fixed_tiles t = tiles_of(s, &a, &b, &l, m, k);
        run_tiles(s, &t, a.sum, m);
        if (k + RO_DOT_CHUNK >= s->plan->v.k) /* here the rows are still in cache */
            finish(s, m, l.lines);
    }
    return !s->check || end_checks(s, &b, k, time);
}

static int run_chunks(const fixed_block *s, int time) {
    for (int64_t k = 0; k < s->plan->v.k; k += RO_DOT_CHUNK)
        if (!run_chunk(s, k, time))
            return 0;
    if (s->plan->v.k == 0) {
        clear(s);
        finish(s, 0, s->a.lines);
    }
    return 1;
}

/* Runs a block, and once more if its sums fail their checks. */
static void run_block(fixed_block *s) {
    s->check = s->plan->log ? &s->checks : NULL;
    s->anew = false;
    for (int time = 0; time < 2 && !run_chunks(s, time); time++)
        s->anew = true;
}

/* Return all lines of an operand of one product. */
static fixed_lines a_of(const fixed_plan *p, int64_t product) {
    const ro_matmul *v = &p->v;
    return (fixed_lines){p->a ? p->a + product * v->m * v->k : NULL,
                         v->trans_a ? 1 : v->k,
                         v->trans_a ? v->m : 1,
                         v->m,
                         v->k,
                         NULL};
}

static fixed_lines b_of(const fixed_plan *p, int64_t product) {
    const ro_matmul *v = &p->v;
    return (fixed_lines){p->b ? p->b + product * v->k * v->n : NULL,
                         v->trans_b ? v->k : 1,
                         v->trans_b ? 1 : v->n,
                         v->n,
                         v->k,
                         NULL};
}

static void run_blocks(void *user, int64_t first, int64_t last, int worker) {
    const fixed_plan *p = user;
    const ro_matmul *v = &p->v;
    for (int64_t i = first; i < last; i++) {
        const int64_t product = i / p->across / p->down;
        const int64_t row = i / p->across % p->down * p->rows, col = i % p->across * p->cols;
        fixed_block s = {
            .plan = p, .a = a_of(p, product), .b = b_of(p, product), .row = row, .col = col};
        s.a.x = s.a.x ? s.a.x + row * s.a.line : NULL, s.a.lines = min_i64(p->rows, v->m - row);
        s.b.x = s.b.x ? s.b.x + col * s.b.line : NULL, s.b.lines = min_i64(p->cols, v->n - col);
        s.c = p->c + (product * v->m + row) * v->n + col;
        place(p, p->workspace + worker * p->workspace_size, &s);
        run_block(&s);
    }
}

/* Cuts products into blocks whose sizes are multiples of the engine's groups. Several blocks per
 * thread let threads finish at about the same time. */
static void cut(fixed_plan *p, int threads) {
    const fixed_engine *e = p->engine;
    int64_t rows = BLOCK_ROWS, cols = BLOCK_COLS;
    for (;;) {
        p->rows = ceil_div(min_i64(rows, p->v.m), e->a_lines) * e->a_lines;
        p->cols = ceil_div(min_i64(cols, p->v.n), e->b_lines) * e->b_lines;
        p->down = ceil_div(p->v.m, p->rows);
        p->across = ceil_div(p->v.n, p->cols);
        if (threads == 1 || p->v.batch * p->down * p->across >= 2 * threads ||
            (p->rows <= LEAST && p->cols <= LEAST))
            return;
        if (p->rows > p->cols)
            rows = p->rows / 2;
        else
            cols = p->cols / 2;
    }
}

const fixed_engine *RO_NAME(ro_fixed_engine)(int bits, int number) {
    /* The engines, fastest first, with their speed relative to FP32's products, for integers of 24,
     * 16 and 8 bits (bench/NOTES.md). */
    const fixed_engine *const all[] = {
        RO_NAME(ro_fixed_tiles)(
            bits), /* AMX: an estimate of 3.6 at 24 bits; no such machine was at hand */
        RO_NAME(ro_fixed_words)(bits), /* AVX-512 with VNNI: 0.55, 0.82, 2.7 */
        RO_NAME(ro_fixed_pairs)(bits), /* AVX2: 0.42, 0.68, 1.4 */
        RO_NAME(ro_fixed_dots)(bits),  /* NEON with DotProd: not measured */
        RO_NAME(ro_fixed_double)(),    /* every machine: 0.41 at 24 and at 16, with AVX2 */
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] && number-- == 0)
            return all[i];
    return NULL;
}

const char *RO_NAME(ro_fixed_engine_name)(int bits, int number) {
    const fixed_engine *engine = RO_NAME(ro_fixed_engine)(bits, number);
    return engine ? engine->name : NULL;
}

/* Returns the bytes of an operand packed as a whole, or 0 where that does not pay: where only one
 * block would pack each line, in a batch, or if the operand is too large. */
static int64_t whole_size(const fixed_plan *p, ro_packed_operand side, int64_t blocks) {
    if (p->v.batch > 1 || blocks == 1)
        return 0;
    const int64_t size = RO_NAME(ro_fixed_packed_size)(
        p->engine, side, side == RO_PACKED_X ? p->v.m : p->v.n, p->v.k);
    return size <= WHOLE_MOST ? ceil_div(size, 64) * 64 : 0;
}

/* Packs operands as a whole where that pays, and places the memory of threads. */
static ro_status prepare(ro_ctx *ctx, fixed_plan *p) {
    const int64_t a_size = p->whole_a ? 0 : whole_size(p, RO_PACKED_X, p->across);
    const int64_t b_size = p->whole_b ? 0 : whole_size(p, RO_PACKED_W, p->down);
    const fixed_lines a = a_of(p, 0), b = b_of(p, 0);
    fixed_block s;
    p->packs_a = p->log || (!p->whole_a && a_size == 0);
    p->packs_b = p->log || (!p->whole_b && b_size == 0);
    p->workspace_size = place(p, NULL, &s);
    const int64_t size = a_size + b_size + p->workspace_size * ro_ctx_threads(ctx);
    char *memory = ro_workspace(ctx, (size_t)size);
    if (!memory && size > 0) /* no memory is needed if both operands are packed */
        return RO_ERR_MEMORY;
    if (a_size > 0)
        p->whole_a = RO_NAME(ro_fixed_pack)(ctx, p->engine, RO_PACKED_X, &a, p->v.bits, memory);
    if (b_size > 0)
        p->whole_b =
            RO_NAME(ro_fixed_pack)(ctx, p->engine, RO_PACKED_W, &b, p->v.bits, memory + a_size);
    p->workspace = memory ? memory + a_size + b_size : NULL;
    return RO_OK;
}

static ro_status run_all(ro_ctx *ctx, fixed_plan *p) {
    const double work = (double)p->v.batch * (double)p->v.m * (double)p->v.n * (double)(p->v.k + 1);
    if (work <= 0)
        return RO_OK;
    const int threads = ro_pool_threads(ro_ctx_pool(ctx), work / WORK_US);
    cut(p, threads);
    const int64_t blocks = p->v.batch * p->down * p->across;
    const ro_status status = prepare(ctx, p);
    if (status != RO_OK)
        return status;
    ro_pool_for(ro_ctx_pool(ctx), blocks, threads == 1 ? blocks : 1, run_blocks, p);
    return RO_OK;
}

static ro_status run_plan(ro_ctx *ctx, fixed_plan *p) {
    ro_guard_log log = {.guard = ro_ctx_guarding(ctx)};
    if (!log.guard || !p->engine->adding)
        return run_all(ctx, p);
    p->log = &log;
    const ro_status status = run_all(ctx, p);
    return status == RO_OK ? ro_guard_end(ctx, &log) : status;
}

ro_status RO_NAME(ro_matmul_fixed_by)(const ro_job *job, const fixed_engine *engine) {
    fixed_plan p = {.engine = engine,
                    .v = ro_matmul_of(job->call),
                    .a = job->in[0],
                    .b = job->in[1],
                    .c = job->out};
    return run_plan(job->ctx, &p);
}

static ro_status matmul_fixed(const ro_job *job) {
    const int bits = (int)job->call->attr[RO_MATMUL_FIXED_BITS];
    return RO_NAME(ro_matmul_fixed_by)(job, RO_NAME(ro_fixed_engine)(bits, 0));
}
RO_KERNEL(matmul_fixed, .run = matmul_fixed)

/* The product is stored in y directly if the caller keeps no z. */
ro_status RO_NAME(ro_linear_of_packed)(ro_ctx *ctx, const ro_linear_job *j,
                                       const ro_linear_operands *in) {
    const ro_linear_layer *l = &j->layer;
    fixed_plan p = {.engine = RO_NAME(ro_fixed_engine)(l->fixed_bits, 0),
                    .v = {.batch = 1,
                          .m = l->rows,
                          .n = l->out,
                          .k = l->in,
                          .trans_a = in->transposed_x != 0,
                          .trans_b = l->transposed != 0,
                          .alpha = 1.0f,
                          .bits = l->fixed_bits},
                    .a = j->x,
                    .b = j->w,
                    .whole_a = in->packed_x,
                    .whole_b = in->packed_w,
                    .c = j->z ? j->z : j->y,
                    .layer = j};
    return run_plan(ctx, &p);
}

ro_status RO_NAME(ro_linear_fixed)(ro_ctx *ctx, const ro_linear_job *j) {
    const ro_linear_operands none = {.size = sizeof none};
    return RO_NAME(ro_linear_of_packed)(ctx, j, &none);
}
