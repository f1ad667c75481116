/* Taking and putting along an axis, sorting and running totals: SPEC.md sections 5 and 6.1. */
#include "repops/cpu/isa.h"
#include "repops/op_along.h"
#include "repops/op_movement.h"
#include "repops/src/along.h"
#include "repops/src/half.h"

static ro_axis axis_of(const ro_call *call, int input) {
    return ro_axis_of(&call->input[input], call->attr[RO_ALONG_AXIS]);
}

/* ---- take_along ---- */

#define TAKE(type)                                                                                 \
    {                                                                                              \
        const type *from = job->in[0], fill = (type)ro_nan_of(job->call->output.dtype);            \
        type *out = job->out;                                                                      \
        for (int64_t e = first; e < last; e++) {                                                   \
            const int64_t id = ids[e], o = e / x.inner / n;                                        \
            out[e] = id >= 0 && id < x.n ? from[(o * x.n + id) * x.inner + e % x.inner] : fill;    \
        }                                                                                          \
    }

static void take_along(const ro_job *job, int64_t first, int64_t last) {
    const ro_axis x = axis_of(job->call, 0);
    const int64_t n = axis_of(job->call, 1).n;
    const int32_t *ids = job->in[1];
    switch (ro_dtype_size(job->call->output.dtype)) {
    case 4: TAKE(uint32_t) break;
    case 2: TAKE(uint16_t) break;
    default: TAKE(uint8_t) break;
    }
}
RO_KERNEL(take_along, .range = take_along)

static int64_t lines(const ro_call *call) {
    const ro_axis x = axis_of(call, 0);
    return x.n > 0 ? ro_shape_numel(&call->input[0]) / x.n : 0;
}

/* ---- put_along: an item is a line; neighbouring lines are written together ---- */

/* Writes lines [i, to) of index o of the outer dimensions. */
static void put_lines(const ro_job *job, int64_t o, int64_t i, int64_t to) {
    const ro_axis x = axis_of(job->call, 0);
    const int kind = (int)job->call->attr[RO_PUT_ALONG_KIND], dtype = job->call->output.dtype;
    const int64_t count = axis_of(job->call, 2).n;
    const int32_t *ids = (const int32_t *)job->in[1] + o * count * x.inner;
    const uint32_t *from = (const uint32_t *)job->in[2] + o * count * x.inner;
    const uint32_t *was = (const uint32_t *)job->in[0] + o * x.n * x.inner;
    uint32_t *out = (uint32_t *)job->out + o * x.n * x.inner;
    for (int64_t j = 0; j < x.n; j++)
        memcpy(out + j * x.inner + i, was + j * x.inner + i, (size_t)(to - i) * sizeof *out);
    for (int64_t k = 0; k < count; k++)
        for (int64_t p = k * x.inner + i; p < k * x.inner + to; p++) {
            if (ids[p] < 0 || ids[p] >= x.n)
                continue;
            uint32_t *at = out + ids[p] * x.inner + p % x.inner;
            *at = ro_put(dtype, kind, *at, from[p]);
        }
}

static void put_along(const ro_job *job, int64_t first, int64_t last) {
    const int64_t inner = axis_of(job->call, 0).inner;
    for (int64_t i = first; i < last;) {
        const int64_t o = i / inner, to = min_i64(last - o * inner, inner);
        put_lines(job, o, i - o * inner, to);
        i = o * inner + to;
    }
}
RO_KERNEL(put_along, .range = put_along, .items = lines)

/* ---- argsort: an item is a line. The heap is in the output, and needs no other memory ---- */

typedef struct {
    const uint32_t *x; /* the line's elements, `stride` apart */
    int32_t *place;    /* the heap of places, `stride` apart, too */
    int64_t stride;
    int dtype, descending;
} sorted_line;

/* Returns whether the element at place `a` comes after the one at place `b` in the order. */
RO_INLINE int is_behind(const sorted_line *l, int32_t a, int32_t b) {
    const uint32_t p = ro_sort_key(l->dtype, l->descending, l->x[a * l->stride]);
    const uint32_t q = ro_sort_key(l->dtype, l->descending, l->x[b * l->stride]);
    return p > q || (p == q && a > b);
}

/* Sifts `place` down from `at` to its position in a heap of `count` places. */
static void sink(const sorted_line *l, int64_t at, int64_t count, int32_t place) {
    for (int64_t below = 2 * at + 1; below < count; below = 2 * at + 1) {
        if (below + 1 < count &&
            is_behind(l, l->place[(below + 1) * l->stride], l->place[below * l->stride]))
            below++;
        if (!is_behind(l, l->place[below * l->stride], place))
            break;
        l->place[at * l->stride] = l->place[below * l->stride];
        at = below;
    }
    l->place[at * l->stride] = place;
}

static void sort_line(const sorted_line *l, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        l->place[i * l->stride] = (int32_t)i;
    for (int64_t i = count / 2 - 1; i >= 0; i--)
        sink(l, i, count, l->place[i * l->stride]);
    for (int64_t i = count - 1; i > 0; i--) {
        const int32_t last = l->place[i * l->stride];
        l->place[i * l->stride] = l->place[0];
        sink(l, 0, i, last);
    }
}

static void argsort(const ro_job *job, int64_t first, int64_t last) {
    const ro_axis x = axis_of(job->call, 0);
    for (int64_t i = first; i < last; i++) {
        const int64_t start = i / x.inner * x.n * x.inner + i % x.inner;
        const sorted_line l = {.x = (const uint32_t *)job->in[0] + start,
                               .place = (int32_t *)job->out + start,
                               .stride = x.inner,
                               .dtype = job->call->input[0].dtype,
                               .descending = (int)job->call->attr[RO_ARGSORT_DESCENDING]};
        sort_line(&l, x.n);
    }
}
RO_KERNEL(argsort, .range = argsort, .items = lines)

/* ---- running: an item is a line ---- */

static void run_floats(int kind, const float *x, int64_t count, int64_t stride, float *out) {
    double total = ro_run_start(kind);
    for (int64_t from = 0; from < count; from += RO_RUN_CHUNK) {
        double chunk = ro_run_start(kind);
        for (int64_t k = from; k < min_i64(from + RO_RUN_CHUNK, count); k++) {
            chunk = ro_join(kind, chunk, (double)x[k * stride]);
            out[k * stride] = ro_rounded64(ro_join(kind, total, chunk));
        }
        total = ro_join(kind, total, chunk);
    }
}

static void run_integers(int kind, const uint32_t *x, int64_t count, int64_t stride,
                         uint32_t *out) {
    uint32_t total = kind == RO_RUNNING_PRODUCT;
    for (int64_t k = 0; k < count; k++)
        out[k * stride] = total = ro_run_number(kind, total, x[k * stride]);
}

static void running(const ro_job *job, int64_t first, int64_t last) {
    const ro_axis x = axis_of(job->call, 0);
    const int kind = (int)job->call->attr[RO_RUNNING_KIND];
    for (int64_t i = first; i < last; i++) {
        const int64_t start = i / x.inner * x.n * x.inner + i % x.inner;
        if (job->call->input[0].dtype == RO_F32)
            run_floats(kind, (const float *)job->in[0] + start, x.n, x.inner,
                       (float *)job->out + start);
        else
            run_integers(kind, (const uint32_t *)job->in[0] + start, x.n, x.inner,
                         (uint32_t *)job->out + start);
    }
}
RO_KERNEL(running, .range = running, .items = lines)

/* ---- isum: sums of neighbouring columns are added row by row ---- */

static void sum_beside(const uint32_t *x, int64_t rows, int64_t inner, int64_t count,
                       uint32_t *out) {
    memset(out, 0, (size_t)count * sizeof *out);
    for (int64_t k = 0; k < rows; k++)
        for (int64_t i = 0; i < count; i++)
            out[i] += x[k * inner + i];
}

static uint32_t sum_line(const uint32_t *x, int64_t count) {
    uint32_t sum = 0;
    for (int64_t k = 0; k < count; k++)
        sum += x[k];
    return sum;
}

static void isum(const ro_job *job, int64_t first, int64_t last) {
    const ro_axis x = axis_of(job->call, 0);
    const uint32_t *from = job->in[0];
    uint32_t *out = job->out;
    for (int64_t e = first; e < last;) {
        const int64_t o = e / x.inner, i = e % x.inner, to = min_i64(last, (o + 1) * x.inner);
        if (x.inner == 1)
            out[e] = sum_line(from + o * x.n, x.n);
        else
            sum_beside(from + o * x.n * x.inner + i, x.n, x.inner, to - e, out + e);
        e = to;
    }
}
RO_KERNEL(isum, .range = isum)
