/* Pooling, SPEC.md section 12.2. An item is a pixel of the output. */
#include "repops/free/sums.h"
#include "repops/src/conv.h"
#include "repops/op_image.h"

static int64_t pixels(const ro_call *call) {
    return ro_shape_numel(&call->output) / call->output.dim[3];
}

/* The terms of a pixel: the index of each in the input, its tap, and what it is divided by. */
typedef struct {
    int64_t n;
    int64_t at[RO_POOL_TAPS];
    int32_t tap[RO_POOL_TAPS];
    float divisor[RO_POOL_TAPS];
} list;

static void add_term(list *l, int64_t at, int64_t tap, int64_t divisor) {
    l->at[l->n] = at;
    l->tap[l->n] = (int32_t)tap;
    l->divisor[l->n++] = (float)divisor;
}

/* Lists the pixels of x under window (h, w) of image n. */
static void find_taps(const ro_pooling *v, int64_t n, int64_t h, int64_t w, list *l) {
    l->n = 0;
    for (int64_t i = 0; i < v->kernel[0]; i++) {
        const int64_t y = h * v->stride[0] - v->pad[0] + i;
        for (int64_t j = 0; y >= 0 && y < v->in[0] && j < v->kernel[1]; j++) {
            const int64_t x = w * v->stride[1] - v->pad[1] + j;
            if (x >= 0 && x < v->in[1])
                add_term(l, ((n * v->in[0] + y) * v->in[1] + x) * v->channels, 0, 1);
        }
    }
}

/* Lists the windows over pixel (h, w) of image n. */
static void find_windows(const ro_pooling *v, int64_t n, int64_t h, int64_t w, list *l) {
    l->n = 0;
    for (int64_t i = 0; i < v->kernel[0]; i++) {
        const int64_t y = h + v->pad[0] - i, oh = y / v->stride[0];
        if (y < 0 || y % v->stride[0] != 0 || oh >= v->out[0])
            continue;
        for (int64_t j = 0; j < v->kernel[1]; j++) {
            const int64_t x = w + v->pad[1] - j, ow = x / v->stride[1];
            if (x >= 0 && x % v->stride[1] == 0 && ow < v->out[1])
                add_term(l, ((n * v->out[0] + oh) * v->out[1] + ow) * v->channels,
                         i * v->kernel[1] + j, ro_pool_count(v, oh, ow));
        }
    }
}

static void add_part(sums *s, const float *restrict x, real divisor) {
    real *restrict sum = sums_next(s);
    for (int64_t c = 0; c < s->columns; c++)
        sum[c] = sum[c] + (real)x[c] / divisor;
    for (int64_t c = 0; s->bounds && c < s->columns; c++)
        s->size[c] += ap_size((real)x[c] / divisor);
}

/* Adds the gradients of windows whose maximum came from this pixel. */
static void add_where(sums *s, const float *restrict x, const int32_t *restrict index,
                      int32_t tap) {
    real *restrict sum = sums_next(s);
    for (int64_t c = 0; c < s->columns; c++)
        sum[c] = sum[c] + (index[c] == tap ? (real)x[c] : 0);
    for (int64_t c = 0; s->bounds && c < s->columns; c++)
        s->size[c] += index[c] == tap ? ap_size((real)x[c]) : 0;
}

static void add_terms(const ro_free_job *job, const list *l, int64_t col, sums *s) {
    for (int64_t k = 0; k < l->n; k++) {
        const int64_t i = sums_term(job->profile, k, l->n), at = l->at[i] + col;
        if (job->call->op == RO_OP_MAX_POOL2D_GRAD)
            add_where(s, free_in(job, 0) + at, (const int32_t *)job->in[1] + at, l->tap[i]);
        else if (job->call->op == RO_OP_AVG_POOL2D_GRAD)
            add_part(s, free_in(job, 0) + at, (real)l->divisor[i]);
        else
            sums_add(s, free_in(job, 0) + at);
    }
}

static void pool(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    const ro_pooling v = ro_pooling_of(job->call);
    const int64_t *d = job->call->output.dim;
    list l;
    sums s;
    writer w;
    writer_open(&w, t, first * v.channels);
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / d[2] / d[1], h = i / d[2] % d[1], x = i % d[2];
        const int forward = job->call->op == RO_OP_AVG_POOL2D;
        (forward ? find_taps : find_windows)(&v, n, h, x, &l);
        const real divisor = forward ? (real)ro_pool_count(&v, h, x) : 1;
        for (int64_t col = 0; col < v.channels; col += SUM_COLUMNS) {
            sums_open(&s, job->profile, l.n, min_i64(SUM_COLUMNS, v.channels - col), w.bounds);
            add_terms(job, &l, col, &s);
            const real *y = sums_close(&s);
            const double error = sum_error(l.n, 1);
            for (int64_t c = 0; c < s.columns; c++)
                write_one(&w,
                          ap_div_exact((approx){y[c], w.bounds ? error * s.size[c] : 0}, divisor));
        }
    }
    writer_flush(&w);
}
RO_FREE_KERNEL(max_pool2d_grad, .range = pool, .items = pixels)
RO_FREE_KERNEL(avg_pool2d, .range = pool, .items = pixels)
RO_FREE_KERNEL(avg_pool2d_grad, .range = pool, .items = pixels)
