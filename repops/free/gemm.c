/* The blocked product of gemm.h. An item is a block of rows and columns of one product. Its sums
 * are kept tile by tile while k advances in blocks, and are emitted row by row. */
#include "repops/free/gemm_item.h"

enum {
    ITEM_ROWS = 448 / FREE_MR * FREE_MR, /* most rows of an item */
    ITEM_COLS = 512,                     /* most columns of an item */
    PIECE_WORK = 1 << 18                 /* multiply-adds that are worth waking a thread */
};

/* ---- blocks of k ---- */

static int all_finite(const real *x, int64_t count) {
    int bad = 0;
    for (int64_t i = 0; i < count; i++)
        bad |= !(x[i] - x[i] == 0);
    return !bad;
}

/* Returns block i of the operands, terms [k, k + *steps), and how they are packed. */
static free_part part_of(const item *t, int64_t i, int64_t *steps) {
    const free_order *o = &t->p->order;
    const int64_t from = i * o->block, to = min_i64(o->k, from + o->block);
    *steps = to - from;
    return (free_part){.product = t->product,
                       .k = t->p->job->profile->descending ? o->k - to : from,
                       .steps = to - from,
                       .reverse = t->p->job->profile->descending};
}

/* Packs b's columns. Returns whether all of b is finite, or 1 if a has no absent terms, so that it
 * does not matter. */
static int pack_columns(const item *t, int64_t block) {
    const free_gemm *g = t->p->g;
    int64_t steps;
    free_part part = part_of(t, block, &steps);
    int finite = 1;
    real *to = t->b;
    for (int64_t j = 0; j < t->n; j += FREE_NR, to += steps * FREE_NR) {
        part.lane = t->col + j, part.lanes = min_i64(FREE_NR, t->n - j);
        RO_FREE_NAME(ro_free_pack_b)(g, &part, to);
        if (t->col_square)
            RO_FREE_NAME(ro_free_add_squares)(to, steps, FREE_NR, part.lanes, t->col_square + j);
        if (g->absent && !all_finite(to, steps * FREE_NR))
            finite = 0;
    }
    return finite;
}

static void pack_rows(const item *t, int64_t block, int64_t row, int64_t rows, int exact) {
    int64_t steps;
    free_part part = part_of(t, block, &steps);
    real *to = t->a;
    for (int64_t i = row; i < row + rows; i += t->height, to += steps * FREE_PANEL) {
        part.lane = t->row + i, part.lanes = min_i64(t->height, row + rows - i);
        if (exact)
            RO_FREE_NAME(ro_free_pack_exact)(t->p->g, &part, to);
        else
            RO_FREE_NAME(ro_free_pack_a)(t->p->g, &part, to);
        if (t->row_square)
            RO_FREE_NAME(ro_free_add_squares)(to, steps, FREE_PANEL, part.lanes, t->row_square + i);
    }
}

static void merge(real *restrict sum, const real *restrict other, int rows) {
    for (int i = 0; i < rows * FREE_NR; i++)
        sum[i] = sum[i] + other[i];
}

/* Finds the steps [*first, *last) of a block, in packed order, that any row of a tile admits. */
static void limits(const item *t, int64_t block, int64_t row, int64_t rows, int64_t *first,
                   int64_t *last) {
    int64_t steps, from, to;
    const free_part part = part_of(t, block, &steps);
    RO_FREE_NAME(ro_free_admitted)(t->p->g, t->product, t->row + row, rows, &from, &to);
    from = min_i64(steps, max_i64(0, from - part.k));
    to = min_i64(steps, max_i64(0, to - part.k));
    *first = part.reverse ? steps - to : from;
    *last = part.reverse ? steps - from : to;
}

/* One tile's sums over one block of k: its runs are summed first, then merged as the block's step
 * says. */
typedef struct {
    const item *t;
    int rows, contract, exact;
    int64_t steps, first, last; /* steps of the block; the mask admits [first, last) */
    const real *a, *b;
    real *sums;
} tile_block;

static void run_of_tile(const tile_block *x, int64_t from, int64_t to, real *c, free_mode mode) {
    from = max_i64(from, x->first), to = max_i64(from, min_i64(to, x->last));
    const real *a = x->a + from * FREE_PANEL, *b = x->b + from * FREE_NR;
    if (x->exact)
        RO_FREE_NAME(ro_free_tile_exact)(x->rows, to - from, a, b, c, mode);
    else
        RO_FREE_NAME(ro_free_tile)(x->rows, x->contract, to - from, a, b, c, mode);
}

static void sum_runs(const tile_block *x, const free_order *o, real *first_slot) {
    const int64_t runs = ceil_div(x->steps, o->run);
    for (int64_t i = 0; i < runs; i++) {
        const free_step s = RO_FREE_NAME(ro_free_run_step)(o, i, runs);
        real *stack = x->t->stack, *c = s.slot ? stack + s.slot * FREE_TILE : first_slot;
        run_of_tile(x, i * o->run, min_i64(x->steps, (i + 1) * o->run), c, s.mode);
        for (int slot = s.slot; slot > s.slot - s.merges; slot--)
            merge(slot > 1 ? stack + (slot - 1) * FREE_TILE : first_slot, stack + slot * FREE_TILE,
                  x->rows);
    }
}

static void run_tile_block(const tile_block *x, const free_step *s) {
    const free_order *o = &x->t->p->order;
    const int64_t slot_size = x->t->p->slot_size;
    real *c = x->sums + s->slot * slot_size;
    if (x->steps <= o->run) {
        run_of_tile(x, 0, x->steps, c, s->mode);
    } else if (s->mode == FREE_SET) {
        sum_runs(x, o, c);
    } else {
        sum_runs(x, o, x->t->stack);
        merge(c, x->t->stack, x->rows);
    }
    for (int i = 0; i < s->merges; i++, c -= slot_size)
        merge(c - slot_size, c, x->rows);
}

/* Multiplies some rows of an item. `e`: where their results go, or NULL if further blocks of k
 * follow. */
static void multiply_rows(const item *t, int64_t block, int64_t row, int64_t rows, int exact,
                          const ends *e) {
    const free_step s = RO_FREE_NAME(ro_free_block_step)(&t->p->order, block);
    const free_gemm *g = t->p->g;
    tile_block x = {.t = t, .exact = exact, .contract = t->p->job->profile->contract, .b = t->b};
    part_of(t, block, &x.steps);
    for (int64_t j = 0; j < t->n; j += FREE_NR, x.b += x.steps * FREE_NR) {
        x.a = t->a;
        for (int64_t i = row; i < row + rows; i += t->height, x.a += x.steps * FREE_PANEL) {
            x.rows = (int)min_i64(t->height, row + rows - i);
            x.first = 0, x.last = x.steps;
            if (g->mask != RO_MASK_NONE)
                limits(t, block, i, x.rows, &x.first, &x.last);
            x.sums = sums_of(t, i, j);
            run_tile_block(&x, &s);
            if (e && e->direct) {
                const free_results r = RO_FREE_NAME(ro_free_results_of)(t, e, i, x.rows, j);
                RO_FREE_NAME(ro_free_emit_tile)(t->emitter, &r);
            }
        }
    }
}

static void take_roots(double *square, int64_t n) {
    for (int64_t j = 0; square && j < n; j++)
        square[j] = __builtin_sqrt(square[j]);
}

static void run_item(const item *t) {
    const free_order *o = &t->p->order;
    const int64_t step = BLOCK_ROWS / FREE_MR * t->height;
    ends e;
    for (int64_t block = 0; block < o->blocks; block++) {
        const int exact = !pack_columns(t, block), last = block == o->blocks - 1;
        if (last)
            take_roots(t->col_square, t->n);
        for (int64_t row = 0; row < t->m; row += step) {
            const int64_t rows = min_i64(step, t->m - row);
            pack_rows(t, block, row, rows, exact);
            if (last)
                RO_FREE_NAME(ro_free_find_ends)(t, row, rows, &e);
            multiply_rows(t, block, row, rows, exact, last ? &e : NULL);
            if (last)
                RO_FREE_NAME(ro_free_emit_rows)(t, &e, rows);
        }
    }
    for (int64_t row = 0; o->blocks == 0 && row < t->m; row += step) {
        const int64_t rows = min_i64(step, t->m - row);
        RO_FREE_NAME(ro_free_find_ends)(t, row, rows, &e);
        RO_FREE_NAME(ro_free_emit_rows)(t, &e, rows);
    }
}

/* ---- items ---- */

static void clear(void *x, int64_t size) {
    memset(x, 0, (size_t)size);
}

static void run_items(void *user, int64_t first, int64_t last, int worker) {
    const product *p = user;
    const free_gemm *g = p->g;
    item t = {.p = p, .emitter = &p->job->emitter[worker]};
    t.a = (real *)(void *)(p->workspace + worker * p->size);
    t.b = t.a + p->a_size;
    t.stack = t.b + p->b_size;
    t.sums = t.stack + FREE_STACK * FREE_TILE;
    double *norms = (double *)(void *)(t.sums + p->order.slots * p->slot_size);
    for (int64_t i = first; i < last; i++) {
        t.product = i / p->across / p->down;
        t.row = i / p->across % p->down * p->rows, t.col = i % p->across * p->cols;
        t.m = min_i64(p->rows, g->m - t.row), t.n = min_i64(p->cols, g->n - t.col);
        t.height = free_height(t.m);
        if (p->order.blocks == 0)
            clear(t.sums, p->slot_size * (int64_t)sizeof(real));
        if (ro_emit_wants_bounds(t.emitter)) {
            t.row_square = norms, t.col_square = norms + p->rows;
            clear(norms, (p->rows + p->cols) * (int64_t)sizeof *norms);
        }
        run_item(&t);
    }
}

static int64_t round_to(int64_t x, int64_t unit) {
    return ceil_div(x, unit) * unit;
}

/* Cuts each product into about `pieces` items, as square as tiles allow, and none too large. */
static void cut(product *p, int64_t pieces) {
    const int64_t m = p->g->m, n = p->g->n;
    int64_t down = ceil_div(m, ITEM_ROWS), across = ceil_div(n, ITEM_COLS);
    while (down * across < pieces && (m > down * FREE_MR || n > across * FREE_NR)) {
        if (m / down >= n / across ? m > down * FREE_MR : n <= across * FREE_NR)
            down++;
        else
            across++;
    }
    p->rows = ceil_div(m, down);
    p->cols = round_to(ceil_div(n, across), FREE_NR);
    p->down = ceil_div(m, p->rows);
    p->across = ceil_div(n, p->cols);
}

static int allocate(product *p) {
    const int64_t threads = ro_ctx_threads(p->job->ctx), k = min_i64(p->order.block, p->g->k);
    const int64_t panels = p->rows + 1; /* one more: the last item's panels may be lower */
    const int64_t most = min_i64(BLOCK_ROWS / FREE_MR, ceil_div(panels, FREE_MR) + 1);
    p->a_size = round_to(most * FREE_PANEL * k, 16);
    p->b_size = round_to(p->cols * k, 16);
    p->slot_size = (ceil_div(p->rows, FREE_MR) + 1) * (p->cols / FREE_NR) * FREE_TILE;
    const int64_t reals =
        p->a_size + p->b_size + FREE_STACK * FREE_TILE + p->order.slots * p->slot_size;
    p->size = round_to(round_to(reals * (int64_t)sizeof(real), 64) +
                           (p->rows + p->cols) * (int64_t)sizeof(double),
                       64);
    p->workspace = ro_workspace(p->job->ctx, (size_t)(threads * p->size));
    return p->workspace != NULL;
}

ro_status RO_FREE_NAME(ro_free_multiply)(const ro_free_job *job, const free_gemm *g) {
    product p = {.job = job, .g = g, .order = RO_FREE_NAME(ro_free_order)(job->profile, g->k)};
    if (g->products == 0 || g->m == 0 || g->n == 0)
        return RO_OK;
    const int threads = ro_ctx_threads(job->ctx);
    const double one = (double)g->m * (double)g->n * (double)max_i64(1, g->k);
    const double work = one * (double)g->products;
    const int64_t wanted =
        threads == 1 ? 1
                     : min_i64(4 * threads, work < 1e18 ? 1 + (int64_t)(work / PIECE_WORK) : 1e9);
    cut(&p, ceil_div(wanted, g->products));
    if (!allocate(&p))
        return RO_ERR_MEMORY;
    const int64_t items = g->products * p.down * p.across;
    const double item_work = work / (double)items;
    const int64_t grain = item_work < PIECE_WORK ? (int64_t)(PIECE_WORK / item_work) + 1 : 1;
    ro_pool_for(ro_ctx_pool(job->ctx), items, min_i64(items, grain), run_items, &p);
    return RO_OK;
}
