/* Taking and putting along an axis, sorting and running totals: SPEC.md sections 5 and 6.1. A
 * thread has one line: correct at any length, and fast with many lines. */
#include "repops/cuda/elements/functions.cuh"
#include "repops/op_along.h"
#include "repops/op_movement.h"
#include "repops/src/along.h"
#include "repops/src/half.h"

static ro_axis axis_of(const ro_call *call, int input) {
    return ro_axis_of(&call->input[input], call->attr[RO_ALONG_AXIS]);
}

/* ---- take_along ---- */

template <class T>
static ro_status take_as(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_axis x = axis_of(call, 0);
    const int64_t n = axis_of(call, 1).n;
    const T *from = static_cast<const T *>(in[0]), fill = (T)ro_nan_of(call->output.dtype);
    const int32_t *ids = static_cast<const int32_t *>(in[1]);
    return map<T>(d, call, out, [=] __device__(int64_t e) {
        const int64_t id = ids[e], o = e / x.inner / n;
        return id >= 0 && id < x.n ? from[(o * x.n + id) * x.inner + e % x.inner] : fill;
    });
}

static ro_status take_along(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    switch (ro_dtype_size(call->output.dtype)) {
    case 4: return take_as<uint32_t>(d, call, in, out);
    case 2: return take_as<uint16_t>(d, call, in, out);
    default: return take_as<uint8_t>(d, call, in, out);
    }
}
RO_CUDA_KERNEL(take_along, take_along)

/* ---- lines ---- */

enum { LINE_THREADS = 128 };

/* Calls f with the offset at which a line begins. */
template <class F> __global__ void line_kernel(int64_t lines, ro_axis x, F f) {
    const int64_t i = (int64_t)blockIdx.x * LINE_THREADS + threadIdx.x;
    if (i < lines)
        f(i / x.inner * x.n * x.inner + i % x.inner, i);
}

template <class F> static ro_status each_line(ro_cuda *d, const ro_call *call, const F &f) {
    const ro_axis x = axis_of(call, 0);
    const int64_t lines = x.n > 0 ? ro_shape_numel(&call->input[0]) / x.n : 0;
    if (lines > 0)
        RO_LAUNCH((line_kernel<F>), ro_grid(ceil_div(lines, LINE_THREADS)), dim3(LINE_THREADS), 0,
                  d->stream, lines, x, f);
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}

struct put_line {
    const uint32_t *x, *rows;
    const int32_t *ids;
    uint32_t *out;
    int64_t n, inner, count;
    int kind, dtype;

    RO_DEVICE void operator()(int64_t start, int64_t i) const {
        const int64_t first = i / inner * count * inner + i % inner;
        for (int64_t k = 0; k < n; k++)
            out[start + k * inner] = x[start + k * inner];
        for (int64_t k = 0; k < count; k++) {
            const int64_t id = ids[first + k * inner];
            if (id >= 0 && id < n)
                out[start + id * inner] =
                    ro_put(dtype, kind, out[start + id * inner], rows[first + k * inner]);
        }
    }
};

static ro_status put_along(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_axis x = axis_of(call, 0);
    return each_line(
        d, call,
        put_line{static_cast<const uint32_t *>(in[0]), static_cast<const uint32_t *>(in[2]),
                 static_cast<const int32_t *>(in[1]), static_cast<uint32_t *>(out), x.n, x.inner,
                 axis_of(call, 2).n, (int)call->attr[RO_PUT_ALONG_KIND], call->output.dtype});
}
RO_CUDA_KERNEL(put_along, put_along)

/* Sorts by a heap in the output, which needs no other memory. */
struct sort_line {
    const uint32_t *x;
    int32_t *out;
    int64_t n, inner;
    int dtype, descending;

    RO_DEVICE bool is_behind(int64_t start, int32_t a, int32_t b) const {
        const uint32_t p = ro_sort_key(dtype, descending, x[start + a * inner]);
        const uint32_t q = ro_sort_key(dtype, descending, x[start + b * inner]);
        return p > q || (p == q && a > b);
    }

    RO_DEVICE void sink(int64_t start, int64_t at, int64_t count, int32_t place) const {
        int32_t *heap = out + start;
        for (int64_t below = 2 * at + 1; below < count; below = 2 * at + 1) {
            if (below + 1 < count &&
                is_behind(start, heap[(below + 1) * inner], heap[below * inner]))
                below++;
            if (!is_behind(start, heap[below * inner], place))
                break;
            heap[at * inner] = heap[below * inner];
            at = below;
        }
        heap[at * inner] = place;
    }

    RO_DEVICE void operator()(int64_t start, int64_t) const {
        int32_t *heap = out + start;
        for (int64_t i = 0; i < n; i++)
            heap[i * inner] = (int32_t)i;
        for (int64_t i = n / 2 - 1; i >= 0; i--)
            sink(start, i, n, heap[i * inner]);
        for (int64_t i = n - 1; i > 0; i--) {
            const int32_t last = heap[i * inner];
            heap[i * inner] = heap[0];
            sink(start, 0, i, last);
        }
    }
};

static ro_status argsort(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_axis x = axis_of(call, 0);
    return each_line(d, call,
                     sort_line{static_cast<const uint32_t *>(in[0]), static_cast<int32_t *>(out),
                               x.n, x.inner, call->input[0].dtype,
                               (int)call->attr[RO_ARGSORT_DESCENDING]});
}
RO_CUDA_KERNEL(argsort, argsort)

struct run_line {
    const uint32_t *x;
    uint32_t *out;
    int64_t n, inner;
    int dtype, kind;

    RO_DEVICE void floats(int64_t start) const {
        double total = ro_run_start(kind), chunk = total;
        for (int64_t k = 0; k < n; k++) {
            if (k % RO_RUN_CHUNK == 0 && k > 0) {
                total = ro_join(kind, total, chunk);
                chunk = ro_run_start(kind);
            }
            chunk = ro_join(kind, chunk, (double)ro_from_bits(x[start + k * inner]));
            out[start + k * inner] = ro_to_bits(ro_rounded64(ro_join(kind, total, chunk)));
        }
    }

    RO_DEVICE void operator()(int64_t start, int64_t) const {
        uint32_t total = kind == RO_RUNNING_PRODUCT;
        if (dtype == RO_F32)
            return floats(start);
        for (int64_t k = 0; k < n; k++)
            out[start + k * inner] = total = ro_run_number(kind, total, x[start + k * inner]);
    }
};

static ro_status running(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_axis x = axis_of(call, 0);
    return each_line(d, call,
                     run_line{static_cast<const uint32_t *>(in[0]), static_cast<uint32_t *>(out),
                              x.n, x.inner, call->input[0].dtype,
                              (int)call->attr[RO_RUNNING_KIND]});
}
RO_CUDA_KERNEL(running, running)

static ro_status isum(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_axis x = axis_of(call, 0);
    const uint32_t *from = static_cast<const uint32_t *>(in[0]);
    return map<uint32_t>(d, call, out, [=] __device__(int64_t e) {
        uint32_t sum = 0;
        for (int64_t k = 0; k < x.n; k++)
            sum += from[(e / x.inner * x.n + k) * x.inner + e % x.inner];
        return sum;
    });
}
RO_CUDA_KERNEL(isum, isum)
