/* Batch norm, SPEC.md section 12.3. For the statistics an item is a tile of columns of a group of
 * rows, for the other operators a row. */
#include "repops/cpu/rows/stream.h"
#include "repops/op_image.h"
#include "repops/op_reduce.h"

enum { TILE = 256 };

/* ---- statistics ---- */

typedef struct {
    int64_t cols, row, rows; /* first row, and how many */
    int64_t col, count;      /* first column, and how many */
    int64_t out;             /* index of the first result */
} bn_tile;

static int64_t tiles(const ro_call *call) {
    const int64_t cols = call->attr[RO_COLUMNS_COLS];
    return ro_blocks_of(ro_shape_numel(&call->input[0]) / cols, RO_COLUMN_GROUP) *
           ceil_div(cols, TILE);
}

static bn_tile tile_of(const ro_job *job, int64_t item) {
    const int64_t cols = job->call->attr[RO_COLUMNS_COLS], rows = in_numel(job, 0) / cols;
    const int64_t group = item / ceil_div(cols, TILE), row = group * RO_COLUMN_GROUP;
    const int64_t col = item % ceil_div(cols, TILE) * TILE;
    return (bn_tile){cols,
                     row,
                     min_i64(RO_COLUMN_GROUP, rows - row),
                     col,
                     min_i64(TILE, cols - col),
                     group * cols + col};
}

static void add_row(const float *restrict x, int64_t count, float *restrict acc) {
    for (int64_t c = 0; c < count; c++)
        acc[c] = acc[c] + x[c];
}

static void bn_mean(const ro_job *job, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const bn_tile t = tile_of(job, i);
        const float *x = (const float *)job->in[0] + t.row * t.cols + t.col, n = (float)t.rows;
        float *restrict out = (float *)job->out + t.out, acc[TILE] = {0};
        for (int64_t r = 0; r < t.rows; r++)
            add_row(x + r * t.cols, t.count, acc);
        for (int64_t c = 0; c < t.count; c++)
            out[c] = ro_canon(acc[c] / n);
    }
}
RO_KERNEL(bn_mean, .range = bn_mean, .items = tiles)

static void add_square(const float *restrict x, const float *restrict mean, int64_t count,
                       float *restrict acc) {
    for (int64_t c = 0; c < count; c++) {
        const float d = x[c] - mean[c];
        acc[c] = ro_fma(d, d, acc[c]);
    }
}

static void bn_sqdev(const ro_job *job, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const bn_tile t = tile_of(job, i);
        const float *x = (const float *)job->in[0] + t.row * t.cols + t.col;
        float *restrict out = (float *)job->out + t.out, acc[TILE] = {0};
        for (int64_t r = 0; r < t.rows; r++)
            add_square(x + r * t.cols, (const float *)job->in[1] + t.out, t.count, acc);
        for (int64_t c = 0; c < t.count; c++)
            out[c] = ro_canon(acc[c]);
    }
}
RO_KERNEL(bn_sqdev, .range = bn_sqdev, .items = tiles)

static void add_product(const float *restrict dy, const float *restrict x,
                        const float *restrict mean, const float *restrict rstd, int64_t count,
                        float *restrict acc) {
    for (int64_t c = 0; c < count; c++)
        acc[c] = ro_fma(dy[c], (x[c] - mean[c]) * rstd[c], acc[c]);
}

static void bn_dgamma(const ro_job *job, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const bn_tile t = tile_of(job, i);
        const float *dy = job->in[0], *x = job->in[1];
        const float *mean = (const float *)job->in[2] + t.col;
        const float *rstd = (const float *)job->in[3] + t.col;
        float *restrict out = (float *)job->out + t.out, acc[TILE] = {0};
        for (int64_t r = t.row; r < t.row + t.rows; r++) {
            const int64_t e = r * t.cols + t.col;
            add_product(dy + e, x + e, mean, rstd, t.count, acc);
        }
        for (int64_t c = 0; c < t.count; c++)
            out[c] = ro_canon(acc[c]);
    }
}
RO_KERNEL(bn_dgamma, .range = bn_dgamma, .items = tiles)

/* ---- merging ---- */

/* The weights of a merge of statistics over a and over b rows. */
typedef struct {
    float weight, product; /* b / (a + b), a b / (a + b) */
} ratio;

static void merge_mean(const float *restrict x, ratio r, int64_t count, float *restrict mean) {
    for (int64_t c = 0; c < count; c++)
        mean[c] = ro_fma(x[c] - mean[c], r.weight, mean[c]);
}

/* Merges sums of squared deviations, which needs the mean before its own merge. */
static void merge_sqdev(const float *restrict x, const float *restrict m2, const float *mean,
                        ratio r, int64_t count, float *restrict sum) {
    for (int64_t c = 0; c < count; c++) {
        const float d = x[c] - mean[c];
        sum[c] = sum[c] + ro_fma(d * d, r.product, m2[c]);
    }
}

/* Returns how many rows entry i stands for. */
static int64_t rows_of(const ro_call *call, int64_t i) {
    return min_i64(call->attr[RO_MERGE_PER],
                   call->attr[RO_MERGE_ROWS] - i * call->attr[RO_MERGE_PER]);
}

static void merge_tile(const ro_job *job, const bn_tile *t, float *mean, float *m2) {
    const float *x = (const float *)job->in[0] + t->col;
    const float *y = m2 ? (const float *)job->in[1] + t->col : NULL;
    int64_t n = rows_of(job->call, t->row);
    memcpy(mean, x + t->row * t->cols, (size_t)t->count * sizeof(float));
    if (m2)
        memcpy(m2, y + t->row * t->cols, (size_t)t->count * sizeof(float));
    for (int64_t i = t->row + 1; i < t->row + t->rows; i++) {
        const int64_t more = rows_of(job->call, i);
        const float a = (float)n, b = (float)more, all = (float)(n + more);
        const ratio r = {b / all, a * b / all};
        if (m2)
            merge_sqdev(x + i * t->cols, y + i * t->cols, mean, r, t->count, m2);
        merge_mean(x + i * t->cols, r, t->count, mean);
        n += more;
    }
}

static void bn_merge(const ro_job *job, int64_t first, int64_t last) {
    float mean[TILE], m2[TILE];
    const int sqdev = job->call->op == RO_OP_BN_MERGE_SQDEV;
    for (int64_t i = first; i < last; i++) {
        const bn_tile t = tile_of(job, i);
        float *restrict out = (float *)job->out + t.out;
        merge_tile(job, &t, mean, sqdev ? m2 : NULL);
        for (int64_t c = 0; c < t.count; c++)
            out[c] = ro_canon(sqdev ? m2[c] : mean[c]);
    }
}
RO_KERNEL(bn_merge_mean, .range = bn_merge, .items = tiles)
RO_KERNEL(bn_merge_sqdev, .range = bn_merge, .items = tiles)

/* ---- rows ---- */

static int64_t width(const ro_call *call) {
    return call->output.dim[call->output.ndim - 1];
}

static int64_t rows(const ro_call *call) {
    return ro_shape_numel(&call->output) / width(call);
}

static void norm_row(const float *restrict x, const float *restrict mean,
                     const float *restrict rstd, const float *restrict gamma,
                     const float *restrict beta, int64_t cols, float *restrict out) {
    for (int64_t c = 0; c < cols; c++)
        out[c] = ro_canon(ro_fma((x[c] - mean[c]) * rstd[c], gamma[c], beta[c]));
}

static void batchnorm(const ro_job *job, int64_t first, int64_t last) {
    const float *mean = job->in[1], *rstd = job->in[2], *gamma = job->in[3], *beta = job->in[4];
    const int64_t cols = width(job->call);
    const int streams = rows_stream(job->out, rows(job->call), cols);
    float buffer[TILE];
    for (int64_t r = first; r < last; r++) {
        const float *x = (const float *)job->in[0] + r * cols;
        float *out = (float *)job->out + r * cols;
        for (int64_t c = 0; c < cols && streams; c += TILE) {
            const int64_t count = min_i64(TILE, cols - c);
            norm_row(x + c, mean + c, rstd + c, gamma + c, beta + c, count, buffer);
            stream_run(out + c, buffer, count);
        }
        if (!streams)
            norm_row(x, mean, rstd, gamma, beta, cols, out);
    }
    if (streams)
        end_stream();
}
RO_KERNEL(batchnorm, .range = batchnorm, .items = rows)

/* Values that the rows of a tile of columns share. */
typedef struct {
    float mean[TILE], rstd[TILE], scale[TILE], dbeta[TILE], dgamma[TILE];
} shared;

static void share(const ro_job *job, int64_t col, int64_t count, shared *s) {
    const float *mean = job->in[2], *rstd = job->in[3], *gamma = job->in[4];
    const float *dbeta = job->in[5], *dgamma = job->in[6];
    const float n = (float)rows(job->call);
    for (int64_t c = 0; c < count; c++) {
        s->mean[c] = mean[col + c];
        s->rstd[c] = rstd[col + c];
        s->scale[c] = gamma[col + c] * rstd[col + c];
        s->dbeta[c] = dbeta[col + c] / n;
        s->dgamma[c] = dgamma[col + c] / n;
    }
}

static void dx_row(const float *restrict dy, const float *restrict x, const shared *restrict s,
                   int64_t count, float *restrict out) {
    for (int64_t c = 0; c < count; c++) {
        const float xh = (x[c] - s->mean[c]) * s->rstd[c];
        out[c] = ro_canon(s->scale[c] * ro_fma(-xh, s->dgamma[c], dy[c] - s->dbeta[c]));
    }
}

static void bn_dx(const ro_job *job, int64_t first, int64_t last) {
    const int64_t cols = width(job->call);
    const int streams = rows_stream(job->out, rows(job->call), cols);
    float buffer[TILE];
    shared s;
    for (int64_t col = 0; col < cols; col += TILE) {
        const int64_t count = min_i64(TILE, cols - col);
        share(job, col, count, &s);
        for (int64_t r = first; r < last; r++) {
            const int64_t e = r * cols + col;
            float *out = (float *)job->out + e;
            dx_row((const float *)job->in[0] + e, (const float *)job->in[1] + e, &s, count,
                   streams ? buffer : out);
            if (streams)
                stream_run(out, buffer, count);
        }
    }
    if (streams)
        end_stream();
}
RO_KERNEL(bn_dx, .range = bn_dx, .items = rows)

static void bn_running(const ro_job *job, int64_t first, int64_t last) {
    const float *restrict x = job->in[0], *restrict y = job->in[1];
    const float momentum = attr_f32(job, RO_BN_RUNNING_MOMENTUM),
                divisor = attr_f32(job, RO_BN_RUNNING_DIVISOR);
    float *restrict out = job->out;
    for (int64_t i = first; i < last; i++)
        out[i] = ro_canon(ro_fma(momentum, y[i] / divisor - x[i], x[i]));
}
RO_KERNEL(bn_running, .range = bn_running)
