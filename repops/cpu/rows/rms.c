/* RMS norm, SPEC.md section 7.3. An item is a row. */
#include "repops/cpu/rows/levels.h"
#include "repops/cpu/rows/stream.h"

static int64_t width(const ro_call *call) {
    return call->output.dim[call->output.ndim - 1];
}

static int64_t rows(const ro_call *call) {
    return ro_shape_numel(&call->output) / width(call);
}

static void rmsnorm_row(const float *x, float rstd, const float *gamma, int64_t cols, float *out) {
    RO_SAME_INDEX
    for (int64_t c = 0; c < cols; c++)
        out[c] = ro_canon((x[c] * rstd) * gamma[c]);
}

static void rmsnorm(const ro_job *job, int64_t first, int64_t last) {
    const float *x = job->in[0], *rstd = job->in[1];
    const int64_t cols = width(job->call);
    for (int64_t r = first; r < last; r++)
        rmsnorm_row(x + r * cols, rstd[r], job->in[2], cols, (float *)job->out + r * cols);
}
RO_KERNEL(rmsnorm, .range = rmsnorm, .items = rows)

/* Computes a row of dx; gx = sgx / n. */
static void rms_dx_row(const float *dy, const float *gamma, const float *x, float rstd, float gx,
                       int64_t cols, float *out) {
    RO_SAME_INDEX
    for (int64_t c = 0; c < cols; c++)
        out[c] = ro_canon(rstd * ro_fma(-(x[c] * rstd), gx, dy[c] * gamma[c]));
}

static void rms_dx(const ro_job *job, int64_t first, int64_t last) {
    const float *dy = job->in[0], *x = job->in[2], *rstd = job->in[3], *sgx = job->in[4];
    const int64_t cols = width(job->call);
    const float n = (float)cols;
    for (int64_t r = first; r < last; r++)
        rms_dx_row(dy + r * cols, job->in[1], x + r * cols, rstd[r], sgx[r] / n, cols,
                   (float *)job->out + r * cols);
}
RO_KERNEL(rms_dx, .range = rms_dx, .items = rows)

/* ---- forward, a row at a time: ro_rms_norm ---- */

static void rms_norm_rows(void *user, int64_t first, int64_t last, int worker) {
    const ro_row_job *j = user;
    const int streams = j->y != j->x && rows_stream(j->y, j->rows, j->cols);
    float buffer[COLUMN_RUN];
    (void)worker;
    for (int64_t r = first; r < last; r++) {
        const float *x = j->x + r * j->cols;
        const terms squares = {.a = x, .b = x};
        const float ss = sum_of_row(&squares, j->cols, add_products, add_product);
        const float rstd = ro_rstd(ss, (float)j->cols, j->eps);
        j->statistic[0][r] = rstd;
        for (int64_t c = 0; c < j->cols; c += COLUMN_RUN) {
            const int64_t count = min_i64(COLUMN_RUN, j->cols - c);
            float *y = j->y + r * j->cols + c;
            fetch_rows(x + j->cols + c, 0, r + 1 < j->rows, count);
            rmsnorm_row(x + c, rstd, j->gamma + c, count, streams ? buffer : y);
            if (streams)
                stream_run(y, buffer, count);
        }
    }
    end_stream();
}

static ro_status rms_norm(ro_ctx *ctx, const ro_row_job *job) {
    ro_pool_for(ro_ctx_pool(ctx), job->rows, 1 + (1 << 14) / job->cols, rms_norm_rows,
                (void *)(uintptr_t)job);
    return RO_OK;
}
RO_FUSED(rms_norm, rms_norm)

/* ---- backward, some rows at a time: ro_rms_norm_backward ---- */

/* The sums of columns. An item is a group of rows, whose sums are a row of `sums`: [groups, cols].
 * `sums` is the gradient of gamma itself if there is one group, and NULL if that is not wanted. */
typedef struct {
    const ro_rms_grad_job *job;
    float *sums;
    int64_t groups;
} rms_grad;

/* Rows that are taken together, so that sums of columns are read and written once for all of
 * them. */
enum { GRAD_ROWS = 4 };

/* rstd and gx = sgx / n of GRAD_ROWS rows. */
typedef struct {
    float rstd[GRAD_ROWS], gx[GRAD_ROWS];
} rms_stats;

/* Computes the statistics of rows; sgx only if dx is wanted. */
static rms_stats stats_of_rows(const ro_rms_grad_job *j, int64_t first, int rows) {
    rms_stats s = {{0}, {0}};
    for (int i = 0; i < rows; i++) {
        const int64_t r = first + i, at = r * j->cols;
        const terms t = {j->dy + at, j->gamma, j->x + at, 0, j->rstd[r]};
        s.rstd[i] = j->rstd[r];
        if (j->dx.data)
            s.gx[i] = sum_of_row(&t, j->cols, add_rms_terms, add_rms_term) / (float)j->cols;
    }
    return s;
}

/* Adds `count` columns of some rows to dgamma and stores dx, whose rows are `step` apart and may
 * overwrite dy or x. */
RO_INLINE void rms_grad_rows(const ro_rms_grad_job *j, const int rows, const float *rstd,
                             const float *gx, int64_t at, int64_t col, int64_t count, float *dx,
                             int64_t step, float *dgamma) {
    const int64_t cols = j->cols;
    const float *dy = j->dy + at, *x = j->x + at, *gamma = j->gamma + col;
    RO_SAME_INDEX
    for (int64_t c = 0; c < count; c++) {
        float sum = dgamma[c];
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            const float d = dy[i * cols + c], xh = x[i * cols + c] * rstd[i];
            sum = ro_fma(d, xh, sum);
            dx[i * step + c] = ro_canon(rstd[i] * ro_fma(-xh, gx[i], d * gamma[c]));
        }
        dgamma[c] = sum;
    }
}

/* Computes at most COLUMN_RUN columns, from `col` on, of the rows from `first` on. A gradient that
 * is unwanted, or to be added, is first stored in a buffer. */
static void rms_grad_run(const ro_rms_grad_job *j, const rms_stats *s, int64_t first, int rows,
                         int64_t col, float *dgamma) {
    const int64_t cols = j->cols, at = first * cols + col, count = min_i64(COLUMN_RUN, cols - col);
    float apart[GRAD_ROWS * COLUMN_RUN], unwanted[COLUMN_RUN];
    const int there = j->dx.data && !j->dx.add;
    const int64_t step = there ? cols : COLUMN_RUN;
    float *dx = there ? j->dx.data + at : apart;
    if (!dgamma)
        memset(dgamma = unwanted, 0, sizeof unwanted);
    if (rows == GRAD_ROWS)
        rms_grad_rows(j, GRAD_ROWS, s->rstd, s->gx, at, col, count, dx, step, dgamma);
    else
        for (int i = 0; i < rows; i++)
            rms_grad_rows(j, 1, s->rstd + i, s->gx + i, at + i * cols, col, count, dx + i * step,
                          step, dgamma);
    for (int i = 0; i < rows && j->dx.data && j->dx.add; i++)
        add_gradient(apart + i * COLUMN_RUN, count, j->dx.data + at + i * cols);
}

static void rms_grad_strip(const ro_rms_grad_job *j, int64_t first, int rows, float *dgamma) {
    const int64_t cols = j->cols, next = first + rows;
    const int64_t ahead = min_i64(GRAD_ROWS, j->rows - next);
    const rms_stats s = stats_of_rows(j, first, rows);
    for (int64_t c = 0; c < cols; c += COLUMN_RUN) {
        const int64_t count = min_i64(COLUMN_RUN, cols - c);
        fetch_rows(j->dy + next * cols + c, cols, ahead, count);
        fetch_rows(j->x + next * cols + c, cols, ahead, count);
        rms_grad_run(j, &s, first, rows, c, dgamma ? dgamma + c : NULL);
    }
}

static void rms_grad_groups(void *user, int64_t first, int64_t last, int worker) {
    const rms_grad *g = user;
    const ro_rms_grad_job *j = g->job;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        float *dgamma = g->sums ? g->sums + i * j->cols : NULL;
        const int64_t end = min_i64(j->rows, (i + 1) * RO_COLUMN_GROUP);
        if (dgamma)
            memset(dgamma, 0, (size_t)j->cols * sizeof *dgamma);
        for (int64_t r = i * RO_COLUMN_GROUP; r < end; r += GRAD_ROWS)
            rms_grad_strip(j, r, (int)min_i64(GRAD_ROWS, end - r), dgamma);
        if (dgamma)
            canon_row(dgamma, j->cols);
    }
}

/* An item is a tile of columns. */
static void rms_grad_sums(void *user, int64_t first, int64_t last, int worker) {
    const rms_grad *g = user;
    const ro_gradient *to = &g->job->dgamma;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t from = i * COLUMN_TILE, count = min_i64(COLUMN_TILE, g->job->cols - from);
        sum_groups(g->sums + from, g->groups, g->job->cols, count);
        if (to->add)
            add_gradient(g->sums + from, count, to->data + from);
        else
            memcpy(to->data + from, g->sums + from, (size_t)count * sizeof *to->data);
    }
}

static ro_status rms_norm_backward(ro_ctx *ctx, const ro_rms_grad_job *j) {
    rms_grad g = {j, j->dgamma.data, ro_blocks_of(j->rows, RO_COLUMN_GROUP)};
    const int apart = j->dgamma.data && (g.groups > 1 || j->dgamma.add);
    if (apart)
        g.sums = ro_workspace(ctx, (size_t)(g.groups * j->cols) * sizeof *g.sums);
    if (apart && !g.sums)
        return RO_ERR_MEMORY;
    ro_pool_for(ro_ctx_pool(ctx), g.groups, 1 + (1 << 8) / j->cols, rms_grad_groups, &g);
    if (apart)
        ro_pool_for(ro_ctx_pool(ctx), ceil_div(j->cols, COLUMN_TILE), 1 + (1 << 6) / g.groups,
                    rms_grad_sums, &g);
    return RO_OK;
}
RO_FUSED(rms_norm_backward, rms_norm_backward)
