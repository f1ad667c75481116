/* Layer norm, SPEC.md section 7.1. An item of the row operators is a row. */
#include "repops/cpu/rows/columns.h"
#include "repops/cpu/rows/levels.h"
#include "repops/cpu/rows/stream.h"
#include "repops/op_norm.h"

static int64_t width(const ro_call *call) {
    return call->output.dim[call->output.ndim - 1];
}

static int64_t rows(const ro_call *call) {
    return ro_shape_numel(&call->output) / width(call);
}

static void ln_rstd(const ro_job *job, int64_t first, int64_t last) {
    const float *restrict ss = (const float *)job->in[0] + first;
    float *restrict out = (float *)job->out + first;
    const float n = (float)job->call->attr[RO_LN_RSTD_N], eps = attr_f32(job, RO_LN_RSTD_EPS);
    for (int64_t i = 0; i < last - first; i++)
        out[i] = ro_rstd(ss[i], n, eps);
}
RO_KERNEL(ln_rstd, .range = ln_rstd)

static void layernorm_row(const float *x, float mean, float rstd, const float *gamma,
                          const float *beta, int64_t cols, float *out) {
    RO_SAME_INDEX
    for (int64_t c = 0; c < cols; c++)
        out[c] = ro_canon(ro_fma((x[c] - mean) * rstd, gamma[c], beta[c]));
}

static void layernorm(const ro_job *job, int64_t first, int64_t last) {
    const float *x = job->in[0], *mean = job->in[1], *rstd = job->in[2];
    const int64_t cols = width(job->call);
    for (int64_t r = first; r < last; r++)
        layernorm_row(x + r * cols, mean[r], rstd[r], job->in[3], job->in[4], cols,
                      (float *)job->out + r * cols);
}
RO_KERNEL(layernorm, .range = layernorm, .items = rows)

typedef struct {
    float mean, rstd, g, gx; /* g = sg / n, gx = sgx / n: means of the gradient's two sums */
} row_stats;

static void ln_dx_row(const float *dy, const float *gamma, const float *x, row_stats s,
                      int64_t cols, float *out) {
    RO_SAME_INDEX
    for (int64_t c = 0; c < cols; c++) {
        const float g = dy[c] * gamma[c], xh = (x[c] - s.mean) * s.rstd;
        out[c] = ro_canon(s.rstd * ro_fma(-xh, s.gx, g - s.g));
    }
}

static void ln_dx(const ro_job *job, int64_t first, int64_t last) {
    const float *dy = job->in[0], *x = job->in[2], *mean = job->in[3], *rstd = job->in[4];
    const float *sg = job->in[5], *sgx = job->in[6];
    const int64_t cols = width(job->call);
    const float n = (float)cols;
    for (int64_t r = first; r < last; r++) {
        const row_stats s = {mean[r], rstd[r], sg[r] / n, sgx[r] / n};
        ln_dx_row(dy + r * cols, job->in[1], x + r * cols, s, cols, (float *)job->out + r * cols);
    }
}
RO_KERNEL(ln_dx, .range = ln_dx, .items = rows)

/* ---- forward, a row at a time: ro_layer_norm ---- */

static void norm_rows(void *user, int64_t first, int64_t last, int worker) {
    const ro_row_job *j = user;
    const float n = (float)j->cols;
    const int streams = rows_stream(j->y, j->rows, j->cols);
    float buffer[COLUMN_RUN];
    (void)worker;
    for (int64_t r = first; r < last; r++) {
        const float *x = j->x + r * j->cols;
        const float mean =
            ro_canon(sum_of_row(&(terms){.a = x}, j->cols, add_values, add_value) / n);
        const terms from_mean = {.a = x, .mean = mean};
        const float ss = sum_of_row(&from_mean, j->cols, add_squares, add_square);
        const float rstd = ro_rstd(ss, n, j->eps);
        j->statistic[0][r] = mean, j->statistic[1][r] = rstd;
        for (int64_t c = 0; c < j->cols; c += COLUMN_RUN) {
            const int64_t count = min_i64(COLUMN_RUN, j->cols - c);
            fetch_rows(x + j->cols + c, 0, r + 1 < j->rows, count);
            float *y = j->y + r * j->cols + c;
            layernorm_row(x + c, mean, rstd, j->gamma + c, j->beta + c, count,
                          streams ? buffer : y);
            if (streams)
                stream_run(y, buffer, count);
        }
    }
    end_stream();
}

static ro_status layer_norm(ro_ctx *ctx, const ro_row_job *job) {
    ro_pool_for(ro_ctx_pool(ctx), job->rows, 1 + (1 << 14) / job->cols, norm_rows,
                (void *)(uintptr_t)job);
    return RO_OK;
}
RO_FUSED(layer_norm, layer_norm)

/* ---- backward, a row at a time: ro_layer_norm_backward ---- */

/* The sums of columns. An item is a group of rows, whose sums for gamma and for beta are a row of
 * [groups, cols]; if there is only one group, they are the gradients. */
typedef struct {
    const ro_row_grad_job *job;
    float *gamma, *beta;
    int64_t groups;
} norm_grad;

/* Computes both sums of a row's gradient at once, with fewer vectors of each in registers. */
#if defined(RO_ISA_avx512)
enum { BOTH = AT_ONCE };
#else
enum { BOTH = AT_ONCE / 2 };
#endif

static void sums_of_block(const terms *t, int64_t n, float *sg, float *sgx) {
    const int64_t whole = n / RO_LANES * RO_LANES;
    float x[RO_LANES], y[RO_LANES];
    for (int v = 0; v < VECTORS; v += BOTH) {
        vf lane[BOTH], lane_x[BOTH];
        RO_UNROLL
        for (int k = 0; k < BOTH; k++)
            lane[k] = lane_x[k] = vf_set1(0.0f);
        for (int64_t i = v * VW; i < whole; i += RO_LANES) {
            RO_UNROLL
            for (int k = 0; k < BOTH; k++) {
                lane[k] = add_products(t, i + k * VW, lane[k]);
                lane_x[k] = add_ln_terms(t, i + k * VW, lane_x[k]);
            }
        }
        RO_UNROLL
        for (int k = 0; k < BOTH; k++) {
            vf_store(x + (v + k) * VW, lane[k]);
            vf_store(y + (v + k) * VW, lane_x[k]);
        }
    }
    for (int64_t i = 0; i < n - whole; i++) {
        x[i] = add_product(t, whole + i, x[i]);
        y[i] = add_ln_term(t, whole + i, y[i]);
    }
    *sg = fold(x), *sgx = fold(y);
}

static row_stats stats_of_row(const ro_row_grad_job *j, int64_t r) {
    const int64_t cols = j->cols;
    terms t = {j->dy + r * cols, j->gamma, j->x + r * cols, j->statistic[0][r], j->statistic[1][r]};
    float sg[PARTS], sgx[PARTS];
    int64_t parts = 0;
    sg[0] = sgx[0] = 0; /* for compilers, which do not see that there is at least one part */
    for (int64_t left = cols; left > 0; left -= RO_REDUCE_BLOCK, parts++) {
        sums_of_block(&t, min_i64(RO_REDUCE_BLOCK, left), &sg[parts], &sgx[parts]);
        t.a += RO_REDUCE_BLOCK, t.b += RO_REDUCE_BLOCK, t.c += RO_REDUCE_BLOCK;
    }
    const float n = (float)cols;
    return (row_stats){t.mean, t.rstd, sum_of_parts(sg, parts) / n, sum_of_parts(sgx, parts) / n};
}

/* Rows that are taken together, so that sums of columns are read and written once for all of
 * them. */
enum { GRAD_ROWS = 4 };

/* Computes some columns of some rows; dx may overwrite dy or x. */
RO_INLINE void norm_grad_rows(const ro_row_grad_job *j, const int rows, const row_stats *s,
                              int64_t at, int64_t col, int64_t count, float *dgamma, float *dbeta) {
    const int64_t cols = j->cols;
    const float *dy = j->dy + at, *x = j->x + at, *gamma = j->gamma + col;
    float *dx = j->dx + at;
    RO_SAME_INDEX
    for (int64_t c = 0; c < count; c++) {
        float sum_x = dgamma[c], sum = dbeta[c];
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            const float d = dy[i * cols + c], g = d * gamma[c];
            const float xh = (x[i * cols + c] - s[i].mean) * s[i].rstd;
            sum_x = ro_fma(d, xh, sum_x);
            sum = sum + d;
            dx[i * cols + c] = ro_canon(s[i].rstd * ro_fma(-xh, s[i].gx, g - s[i].g));
        }
        dgamma[c] = sum_x, dbeta[c] = sum;
    }
}

static void norm_grad_strip(const ro_row_grad_job *j, int64_t r, int rows, int64_t ahead,
                            float *dgamma, float *dbeta) {
    const int64_t cols = j->cols;
    row_stats s[GRAD_ROWS];
    for (int i = 0; i < rows; i++)
        s[i] = stats_of_row(j, r + i);
    for (int64_t c = 0; c < cols; c += COLUMN_RUN) {
        const int64_t count = min_i64(COLUMN_RUN, cols - c), at = r * cols + c;
        fetch_rows(j->dy + at + rows * cols, cols, ahead, count);
        fetch_rows(j->x + at + rows * cols, cols, ahead, count);
        if (rows == GRAD_ROWS)
            norm_grad_rows(j, GRAD_ROWS, s, at, c, count, dgamma + c, dbeta + c);
        else
            for (int i = 0; i < rows; i++)
                norm_grad_rows(j, 1, s + i, at + i * cols, c, count, dgamma + c, dbeta + c);
    }
}

static void norm_grad_group(const norm_grad *n, int64_t group) {
    const ro_row_grad_job *j = n->job;
    const int64_t cols = j->cols, first = group * RO_COLUMN_GROUP;
    const int64_t last = min_i64(j->rows, first + RO_COLUMN_GROUP);
    float *dgamma = n->gamma + group * cols, *dbeta = n->beta + group * cols;
    memset(dgamma, 0, (size_t)cols * sizeof *dgamma);
    memset(dbeta, 0, (size_t)cols * sizeof *dbeta);
    for (int64_t r = first; r < last; r += GRAD_ROWS) {
        const int rows = (int)min_i64(GRAD_ROWS, last - r);
        norm_grad_strip(j, r, rows, min_i64(GRAD_ROWS, j->rows - r - rows), dgamma, dbeta);
    }
    canon_row(dgamma, cols);
    canon_row(dbeta, cols);
}

static void norm_grad_groups(void *user, int64_t first, int64_t last, int worker) {
    (void)worker;
    for (int64_t i = first; i < last; i++)
        norm_grad_group(user, i);
}

/* An item is a tile of columns. */
static void norm_grad_sums(void *user, int64_t first, int64_t last, int worker) {
    const norm_grad *n = user;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t from = i * COLUMN_TILE, cols = n->job->cols;
        const int64_t count = min_i64(COLUMN_TILE, cols - from);
        sum_groups(n->gamma + from, n->groups, cols, count);
        sum_groups(n->beta + from, n->groups, cols, count);
        memcpy(n->job->dgamma + from, n->gamma + from, (size_t)count * sizeof(float));
        memcpy(n->job->dbeta + from, n->beta + from, (size_t)count * sizeof(float));
    }
}

static ro_status layer_norm_backward(ro_ctx *ctx, const ro_row_grad_job *j) {
    norm_grad n = {j, j->dgamma, j->dbeta, ro_blocks_of(j->rows, RO_COLUMN_GROUP)};
    if (n.groups > 1) {
        const int64_t size = n.groups * j->cols;
        n.gamma = ro_workspace(ctx, (size_t)(2 * size) * sizeof(float));
        if (!n.gamma)
            return RO_ERR_MEMORY;
        n.beta = n.gamma + size;
    }
    ro_pool_for(ro_ctx_pool(ctx), n.groups, 1 + (1 << 8) / j->cols, norm_grad_groups, &n);
    if (n.groups > 1)
        ro_pool_for(ro_ctx_pool(ctx), ceil_div(j->cols, COLUMN_TILE), 1 + (1 << 6) / n.groups,
                    norm_grad_sums, &n);
    return RO_OK;
}
RO_FUSED(layer_norm_backward, layer_norm_backward)
