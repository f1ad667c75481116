/* Softmax and its logarithm, SPEC.md section 7.2. An item is a row. */
#include "repops/cpu/rows/levels.h"
#include "repops/cpu/rows/max.h"
#include "repops/cpu/rows/stream.h"

static int64_t width(const ro_call *call) {
    return call->input[0].dim[call->input[0].ndim - 1];
}

static int64_t rows(const ro_call *call) {
    return ro_shape_numel(&call->input[0]) / width(call);
}

static void softmax(const ro_job *job, int64_t first, int64_t last) {
    const float *x = job->in[0], *m = job->in[1], *l = job->in[2];
    const int64_t cols = width(job->call);
    for (int64_t r = first; r < last; r++)
        map(exp_scaled, (constants){.a = m[r], .b = 1.0f / l[r]}, x + r * cols, cols,
            (float *)job->out + r * cols);
}
RO_KERNEL(softmax, .range = softmax, .items = rows)

static void softmax_grad_row(const float *y, const float *dy, float d, int64_t cols, float *out) {
    RO_SAME_INDEX
    for (int64_t i = 0; i < cols; i++)
        out[i] = ro_canon(y[i] * (dy[i] - d));
}

static void softmax_grad(const ro_job *job, int64_t first, int64_t last) {
    const float *y = job->in[0], *dy = job->in[1], *d = job->in[2];
    const int64_t cols = width(job->call);
    for (int64_t r = first; r < last; r++)
        softmax_grad_row(y + r * cols, dy + r * cols, d[r], cols, (float *)job->out + r * cols);
}
RO_KERNEL(softmax_grad, .range = softmax_grad, .items = rows)

static void log_softmax_row(const float *x, float m, float log_l, int64_t cols, float *out) {
    RO_SAME_INDEX
    for (int64_t i = 0; i < cols; i++)
        out[i] = ro_canon((x[i] - m) - log_l);
}

static void log_softmax(const ro_job *job, int64_t first, int64_t last) {
    const float *x = job->in[0], *m = job->in[1], *l = job->in[2];
    const int64_t cols = width(job->call);
    for (int64_t r = first; r < last; r++)
        log_softmax_row(x + r * cols, m[r], ro_log(l[r]), cols, (float *)job->out + r * cols);
}
RO_KERNEL(log_softmax, .range = log_softmax, .items = rows)

RO_INLINE wide log_softmax_slope(wide y, wide dy, constants s) {
    return wide_canon(wide_fma(wide_neg(fast_exp(y)), wide_set1(s.a), dy));
}

static void log_softmax_grad_row(const float *y, const float *dy, float sum, int64_t cols,
                                 float *out) {
    map2(log_softmax_slope, (constants){.a = sum}, y, dy, cols, out, 1);
}

static void log_softmax_grad(const ro_job *job, int64_t first, int64_t last) {
    const float *y = job->in[0], *dy = job->in[1], *s = job->in[2];
    const int64_t cols = width(job->call);
    for (int64_t r = first; r < last; r++)
        log_softmax_grad_row(y + r * cols, dy + r * cols, s[r], cols, (float *)job->out + r * cols);
}
RO_KERNEL(log_softmax_grad, .range = log_softmax_grad, .items = rows)

/* ---- a row at a time, while the next one is prefetched: ro_softmax, ro_log_softmax ---- */

static void scale_exponentials(float *e, float r, int64_t cols) {
    for (int64_t i = 0; i < cols; i++)
        e[i] = ro_canon(e[i] * r);
}

static void softmax_rows(void *user, int64_t first, int64_t last, int worker) {
    const ro_row_job *j = user;
    (void)worker;
    for (int64_t r = first; r < last; r++) {
        const float *x = j->x + r * j->cols, m = max_of(x, j->cols);
        float *y = j->y + r * j->cols;
        const float *next = r + 1 < last ? x + j->cols : NULL;
        const float l = sum_of_exponentials(x, m, j->cols, y, next);
        j->statistic[0][r] = m, j->statistic[1][r] = l;
        scale_exponentials(y, 1.0f / l, j->cols);
    }
}

static ro_status fused_softmax(ro_ctx *ctx, const ro_row_job *job) {
    ro_pool_for(ro_ctx_pool(ctx), job->rows, 1 + (1 << 14) / job->cols, softmax_rows,
                (void *)(uintptr_t)job);
    return RO_OK;
}
RO_FUSED(softmax, fused_softmax)

static void write_log_softmax(const float *x, float m, float log_l, int64_t cols, int streams,
                              float *y) {
    float buffer[COLUMN_RUN];
    for (int64_t c = 0; c < cols && streams; c += COLUMN_RUN) {
        const int64_t count = min_i64(COLUMN_RUN, cols - c);
        log_softmax_row(x + c, m, log_l, count, buffer);
        stream_run(y + c, buffer, count);
    }
    if (!streams)
        log_softmax_row(x, m, log_l, cols, y);
}

static void log_softmax_rows(void *user, int64_t first, int64_t last, int worker) {
    const ro_row_job *j = user;
    const int streams = rows_stream(j->y, j->rows, j->cols);
    (void)worker;
    for (int64_t r = first; r < last; r++) {
        const float *x = j->x + r * j->cols, m = max_of(x, j->cols);
        const float *next = r + 1 < last ? x + j->cols : NULL;
        const float l = sum_of_exponentials(x, m, j->cols, NULL, next);
        j->statistic[0][r] = m, j->statistic[1][r] = l;
        write_log_softmax(x, m, ro_log(l), j->cols, streams, j->y + r * j->cols);
    }
    end_stream();
}

static ro_status fused_log_softmax(ro_ctx *ctx, const ro_row_job *job) {
    ro_pool_for(ro_ctx_pool(ctx), job->rows, 1 + (1 << 14) / job->cols, log_softmax_rows,
                (void *)(uintptr_t)job);
    return RO_OK;
}
RO_FUSED(log_softmax, fused_log_softmax)

/* ---- backward, a row at a time: ro_softmax_backward, ro_log_softmax_backward ---- */

/* Prefetches into L1, since the next row is read immediately. */
RO_INLINE void bring_near(const float *x, int64_t count) {
    for (int64_t i = 0; i < count; i += 16)
        __builtin_prefetch(x + i);
}

RO_INLINE void grad_rows(const ro_row_grad_job *j, int64_t first, int64_t last, int logarithm) {
    const int64_t cols = j->cols;
    const int streams = rows_stream(j->dx, j->rows, cols);
    float buffer[COLUMN_RUN];
    for (int64_t r = first; r < last; r++) {
        const float *y = j->x + r * cols, *dy = j->dy + r * cols;
        const float sum =
            logarithm ? sum_of_row(&(terms){.a = dy}, cols, add_values, add_value)
                      : sum_of_row(&(terms){.a = dy, .b = y}, cols, add_products, add_product);
        for (int64_t c = 0; c < cols; c += COLUMN_RUN) {
            const int64_t count = min_i64(COLUMN_RUN, cols - c);
            bring_near(y + cols + c, r + 1 < last ? count : 0);
            bring_near(dy + cols + c, r + 1 < last ? count : 0);
            float *dx = j->dx + r * cols + c;
            (logarithm ? log_softmax_grad_row : softmax_grad_row)(y + c, dy + c, sum, count,
                                                                  streams ? buffer : dx);
            if (streams)
                stream_run(dx, buffer, count);
        }
    }
    end_stream();
}

static void softmax_grad_rows(void *user, int64_t first, int64_t last, int worker) {
    (void)worker;
    grad_rows(user, first, last, 0);
}

static void log_softmax_grad_rows(void *user, int64_t first, int64_t last, int worker) {
    (void)worker;
    grad_rows(user, first, last, 1);
}

static ro_status softmax_backward(ro_ctx *ctx, const ro_row_grad_job *job) {
    ro_pool_for(ro_ctx_pool(ctx), job->rows, 1 + (1 << 14) / job->cols, softmax_grad_rows,
                (void *)(uintptr_t)job);
    return RO_OK;
}
RO_FUSED(softmax_backward, softmax_backward)

static ro_status log_softmax_backward(ro_ctx *ctx, const ro_row_grad_job *job) {
    ro_pool_for(ro_ctx_pool(ctx), job->rows, 1 + (1 << 14) / job->cols, log_softmax_grad_rows,
                (void *)(uintptr_t)job);
    return RO_OK;
}
RO_FUSED(log_softmax_backward, log_softmax_backward)
