/* matmul_fixed and ro_linear with fixed products (SPEC.md section 3.5): blocks of the output,
 * shared among threads; an engine computes their chunks. */
#include "repops/cpu/gemm/fixed_packed.h"
#include "repops/cpu/gemm/gemm.h"
#include "repops/op_product.h"
#include "repops/src/matmul.h"

enum {
    BLOCK_ROWS = 512, /* rows that repay packing a chunk of b */
    BLOCK_COLS = 512, /* columns that repay packing a row of a; a packed chunk of b stays in the
                         second-level cache */
    LEAST = 64,       /* rows or columns of a block that is cut no further */
    WORK_US = 1 << 15 /* multiply-adds of one microsecond */
};

typedef struct {
    const fixed_engine *engine;
    ro_matmul v;
    const float *a, *b;
    const fixed_packed *packed; /* in place of b; NULL: it is packed here */
    float *c;
    const ro_linear_job *layer; /* what follows the product; NULL: nothing */
    int64_t rows, cols;         /* of a block */
    int64_t down, across;       /* blocks of one product */
    char *workspace;
    int64_t workspace_size; /* of one thread, in bytes */
} fixed_plan;

/* A block of one product, and where one thread packs. */
typedef struct {
    const fixed_plan *plan;
    fixed_lines a, b;
    int64_t col; /* the first one of b, in the product */
    float *c;
    char *packed_a, *packed_b;
    double *a_power, *b_power;
} fixed_block;

/* Places a block's parts in `memory`, and returns their bytes. */
static int64_t place(const fixed_plan *p, char *memory, fixed_block *s) {
    const fixed_engine *e = p->engine;
    const int64_t groups = p->packed ? 0 : ceil_div(p->cols, e->b_lines);
    int64_t at = 0;
    s->packed_a = fixed_take(memory, &at, e->a_bytes, 1);
    s->packed_b = fixed_take(memory, &at, groups * e->b_bytes, 1);
    s->a_power = fixed_take(memory, &at, e->a_lines, sizeof(double));
    s->b_power = fixed_take(memory, &at, groups * e->b_lines, sizeof(double));
    return at;
}

/* Lines [at, at + most) of an operand from k on, as far as there are. */
static fixed_lines part_of(const fixed_lines *all, int64_t at, int64_t most, int64_t k) {
    fixed_lines l = *all;
    l.x += at * l.line + k * l.step;
    l.lines = min_i64(most, all->lines - at);
    l.steps = min_i64(RO_DOT_CHUNK, all->steps - k);
    return l;
}

/* Completes rows [m, m + rows) of the block. */
static void finish(const fixed_block *s, int64_t m, int64_t rows) {
    const ro_matmul *v = &s->plan->v;
    const ro_linear_job *l = s->plan->layer;
    for (int64_t i = m; i < m + rows; i++) {
        float *c = s->c + i * v->n;
        for (int64_t n = 0; n < s->b.lines; n++)
            c[n] = ro_canon(c[n] * v->alpha);
    }
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

/* A chunk of the block's columns, packed. */
typedef struct {
    const char *group;
    const double *power;
} packed_chunk;

static packed_chunk chunk_of(const fixed_block *s, int64_t k) {
    const fixed_engine *e = s->plan->engine;
    const fixed_packed *p = s->plan->packed;
    if (p)
        return (packed_chunk){packed_group(p, k / RO_DOT_CHUNK, s->col / e->b_lines),
                              packed_powers(p, k / RO_DOT_CHUNK, s->col / e->b_lines)};
    for (int64_t n = 0; n < s->b.lines; n += e->b_lines) {
        const fixed_lines l = part_of(&s->b, n, e->b_lines, k);
        e->pack_b(&l, s->plan->v.bits, s->packed_b + n / e->b_lines * e->b_bytes, s->b_power + n);
    }
    return (packed_chunk){s->packed_b, s->b_power};
}

static void run_chunk(const fixed_block *s, int64_t k) {
    const fixed_engine *e = s->plan->engine;
    const int bits = s->plan->v.bits;
    const packed_chunk b = chunk_of(s, k);
    for (int64_t m = 0; m < s->a.lines; m += e->a_lines) {
        const fixed_lines l = part_of(&s->a, m, e->a_lines, k);
        e->pack_a(&l, bits, s->packed_a, s->a_power);
        e->tiles(&(fixed_tiles){s->packed_a, b.group, s->a_power, b.power, l.lines, s->b.lines,
                                l.steps, bits, s->c + m * s->plan->v.n, s->plan->v.n});
        if (k + RO_DOT_CHUNK >= s->plan->v.k) /* these rows are in a cache now */
            finish(s, m, l.lines);
    }
}

static void run_block(const fixed_block *s) {
    for (int64_t m = 0; m < s->a.lines; m++)
        memset(s->c + m * s->plan->v.n, 0, (size_t)s->b.lines * sizeof(float));
    for (int64_t k = 0; k < s->plan->v.k; k += RO_DOT_CHUNK)
        run_chunk(s, k);
    if (s->plan->v.k == 0)
        finish(s, 0, s->a.lines);
}

static void run_blocks(void *user, int64_t first, int64_t last, int worker) {
    const fixed_plan *p = user;
    const ro_matmul *v = &p->v;
    for (int64_t i = first; i < last; i++) {
        const int64_t product = i / p->across / p->down;
        const int64_t row = i / p->across % p->down * p->rows, col = i % p->across * p->cols;
        const fixed_lines a = {p->a + product * v->m * v->k, v->trans_a ? 1 : v->k,
                               v->trans_a ? v->m : 1, v->m, v->k};
        const fixed_lines b = {p->b ? p->b + product * v->k * v->n : NULL, v->trans_b ? v->k : 1,
                               v->trans_b ? 1 : v->n, v->n, v->k};
        fixed_block s = {.plan = p, .a = a, .b = b, .col = col};
        s.a.x += row * a.line, s.a.lines = min_i64(p->rows, v->m - row);
        s.b.x = b.x ? b.x + col * b.line : NULL, s.b.lines = min_i64(p->cols, v->n - col);
        s.c = p->c + (product * v->m + row) * v->n + col;
        place(p, p->workspace + worker * p->workspace_size, &s);
        run_block(&s);
    }
}

/* Sizes are multiples of the engine's groups. Threads finish together if they have several blocks.
 */
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
    /* With integers of 24 and of 16 bits, of the speed of FP32's products (bench/NOTES.md). */
    const fixed_engine *const all[] = {
        RO_NAME(ro_fixed_tiles)(bits), /* AMX: 3.6 at 24 bits by arithmetic; never run */
        RO_NAME(ro_fixed_words)(bits), /* AVX-512 with VNNI: 0.55 and 0.82 */
        RO_NAME(ro_fixed_pairs)(bits), /* AVX2: 0.42 and 0.68 */
        RO_NAME(ro_fixed_dots)(bits),  /* NEON with DotProd: not measured */
        RO_NAME(ro_fixed_double)(),    /* every machine: 0.41 and 0.41 with AVX2 */
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

static ro_status run_plan(ro_ctx *ctx, fixed_plan *p) {
    const double work = (double)p->v.batch * (double)p->v.m * (double)p->v.n * (double)(p->v.k + 1);
    if (work <= 0)
        return RO_OK;
    const int threads = ro_pool_threads(ro_ctx_pool(ctx), work / WORK_US);
    cut(p, threads);
    const int64_t blocks = p->v.batch * p->down * p->across;
    fixed_block s;
    p->workspace_size = place(p, NULL, &s);
    p->workspace = ro_workspace(ctx, (size_t)(p->workspace_size * ro_ctx_threads(ctx)));
    if (!p->workspace)
        return RO_ERR_MEMORY;
    ro_pool_for(ro_ctx_pool(ctx), blocks, threads == 1 ? blocks : 1, run_blocks, p);
    return RO_OK;
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

/* Without a z to keep, the product goes to y directly. */
ro_status RO_NAME(ro_linear_fixed)(ro_ctx *ctx, const ro_linear_job *j, const void *packed) {
    const ro_linear_layer *l = &j->layer;
    fixed_plan p = {.engine = RO_NAME(ro_fixed_engine)(l->fixed_bits, 0),
                    .v = {.batch = 1,
                          .m = l->rows,
                          .n = l->out,
                          .k = l->in,
                          .trans_b = l->transposed != 0,
                          .alpha = 1.0f,
                          .bits = l->fixed_bits},
                    .a = j->x,
                    .b = j->w,
                    .packed = packed,
                    .c = j->z ? j->z : j->y,
                    .layer = j};
    return run_plan(ctx, &p);
}
