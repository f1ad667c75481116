/* Column reductions, SPEC.md section 3.3. An item is one tile of columns of one group of rows. Its
 * accumulators stay in the L1 cache, and compilers vectorise across columns. */
#include "repops/cpu/rows/columns.h"
#include "repops/op_reduce.h"

enum { TILE = COLUMN_TILE };

typedef struct {
    int64_t group, cols;
    int64_t row, rows;  /* first row, and how many */
    int64_t col, count; /* first column, and how many */
} column_tile;

static int64_t tiles(const ro_call *call) {
    const int64_t cols = call->attr[RO_COLUMNS_COLS];
    return ro_blocks_of(ro_shape_numel(&call->input[0]) / cols, RO_COLUMN_GROUP) *
           ceil_div(cols, TILE);
}

static column_tile tile_of(const ro_job *job, int64_t item) {
    const int64_t cols = job->call->attr[RO_COLUMNS_COLS], rows = in_numel(job, 0) / cols;
    const int64_t across = ceil_div(cols, TILE), group = item / across;
    const int64_t row = group * RO_COLUMN_GROUP, col = item % across * TILE;
    return (column_tile){
        group, cols, row, min_i64(RO_COLUMN_GROUP, rows - row), col, min_i64(TILE, cols - col)};
}

static void store_sums(const column_tile *t, const float *restrict acc, float *restrict out) {
    out += t->group * t->cols + t->col;
    for (int64_t c = 0; c < t->count; c++)
        out[c] = ro_canon(acc[c]);
}

static void sum_rows(const ro_job *job, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const column_tile t = tile_of(job, i);
        const float *x = (const float *)job->in[0] + t.row * t.cols + t.col;
        float acc[TILE] = {0};
        add_rows(x, t.cols, t.rows, t.count, acc);
        store_sums(&t, acc, job->out);
    }
}
RO_KERNEL(sum_rows, .range = sum_rows, .items = tiles)

/* ---- gradients of norms' scales ---- */

/* Columns [e, e + count) of a row; `ahead`: distance of the row to prefetch meanwhile, or 0. */
typedef struct {
    int64_t e, count, ahead;
} run;

static run run_of(const column_tile *t, int64_t r, int64_t c) {
    return (run){(t->row + r) * t->cols + t->col + c, min_i64(COLUMN_RUN, t->count - c),
                 r + 2 < t->rows ? 2 * t->cols : 0};
}

static void fetch_run(const run *at, const float *dy, const float *x) {
    if (at->ahead) {
        fetch_rows(dy + at->e + at->ahead, 0, 1, at->count);
        fetch_rows(x + at->e + at->ahead, 0, 1, at->count);
    }
}

static void add_dgamma_row(const float *restrict dy, const float *restrict x, float mean,
                           float rstd, int64_t count, float *restrict acc) {
    for (int64_t c = 0; c < count; c++)
        acc[c] = ro_fma(dy[c], (x[c] - mean) * rstd, acc[c]);
}

static void ln_dgamma(const ro_job *job, int64_t first, int64_t last) {
    const float *dy = job->in[0], *x = job->in[1], *mean = job->in[2], *rstd = job->in[3];
    for (int64_t i = first; i < last; i++) {
        const column_tile t = tile_of(job, i);
        float acc[TILE] = {0};
        for (int64_t r = 0; r < t.rows; r++)
            for (int64_t c = 0; c < t.count; c += COLUMN_RUN) {
                const run at = run_of(&t, r, c);
                fetch_run(&at, dy, x);
                add_dgamma_row(dy + at.e, x + at.e, mean[t.row + r], rstd[t.row + r], at.count,
                               acc + c);
            }
        store_sums(&t, acc, job->out);
    }
}
RO_KERNEL(ln_dgamma, .range = ln_dgamma, .items = tiles)

static void add_rms_dgamma_row(const float *restrict dy, const float *restrict x, float rstd,
                               int64_t count, float *restrict acc) {
    for (int64_t c = 0; c < count; c++)
        acc[c] = ro_fma(dy[c], x[c] * rstd, acc[c]);
}

static void rms_dgamma(const ro_job *job, int64_t first, int64_t last) {
    const float *dy = job->in[0], *x = job->in[1], *rstd = job->in[2];
    for (int64_t i = first; i < last; i++) {
        const column_tile t = tile_of(job, i);
        float acc[TILE] = {0};
        for (int64_t r = 0; r < t.rows; r++)
            for (int64_t c = 0; c < t.count; c += COLUMN_RUN) {
                const run at = run_of(&t, r, c);
                fetch_run(&at, dy, x);
                add_rms_dgamma_row(dy + at.e, x + at.e, rstd[t.row + r], at.count, acc + c);
            }
        store_sums(&t, acc, job->out);
    }
}
RO_KERNEL(rms_dgamma, .range = rms_dgamma, .items = tiles)
