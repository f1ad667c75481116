/* Reductions and maxima along any axis, and their expansion back, SPEC.md section 3.4. */
#include "repops/cuda/rows/columns.cuh"
#include "repops/op_movement.h"

static ro_axis axis_of(const ro_call *call) {
    return ro_axis_of(&call->input[0], call->attr[RO_ALONG_AXIS]);
}

/* ---- sums and maxima of groups of 64 ---- */

struct axis_max {
    const float *x;
    typedef int32_t state;
    typedef float data;
    static RO_DEVICE state start(int64_t, const column_group &) {
        return RO_KEY_LEAST;
    }
    RO_DEVICE data read(int64_t, int64_t e) const {
        return x[e];
    }
    static RO_DEVICE state add(state m, data x) {
        return ro_larger(m, ro_key(x));
    }
    static RO_DEVICE float close(state m) {
        return ro_of_key(m);
    }
};

/* Along the last axis a group is 64 neighbours. A warp reads the groups of its 32 threads together,
 * and distributes them through shared memory, whose odd row length puts threads on separate
 * banks. */
enum { TURN_WARPS = 4, TURN_ROW = RO_COLUMN_GROUP + 1, TURN_AT_ONCE = 8 };

template <class F>
__global__ void __launch_bounds__(TURN_WARPS * 32)
    axis_last_kernel(float *out, column_view view, F f) {
    RO_SMEM(float, smem);
    const int t = threadIdx.x % 32;
    float *mine = smem + threadIdx.x / 32 * (32 * TURN_ROW);
    const int64_t first = ((int64_t)blockIdx.x * TURN_WARPS + threadIdx.x / 32) * 32;
    for (int from = 0; from < 32; from += TURN_AT_ONCE) {
        float v[TURN_AT_ONCE][2] = {};
#pragma unroll
        for (int u = 0; u < TURN_AT_ONCE; u++)
            if (first + from + u < view.count) {
                const column_group g = view.of(first + from + u);
                if (t < g.rows)
                    v[u][0] = f.x[g.e + t];
                if (t + 32 < g.rows)
                    v[u][1] = f.x[g.e + t + 32];
            }
#pragma unroll
        for (int u = 0; u < TURN_AT_ONCE; u++) {
            mine[(from + u) * TURN_ROW + t] = v[u][0];
            mine[(from + u) * TURN_ROW + t + 32] = v[u][1];
        }
    }
    __syncwarp();
    if (first + t >= view.count)
        return;
    const column_group g = view.of(first + t);
    typename F::state sum = f.start(first + t, g);
    for (int i = 0; i < g.rows; i++)
        sum = f.add(sum, mine[t * TURN_ROW + i]);
    out[first + t] = F::close(sum);
}

template <class F>
ro_status reduce_axis(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_axis axis = axis_of(call);
    const column_view view(axis);
    F f;
    f.x = static_cast<const float *>(in[0]);
    float *to = static_cast<float *>(out);
    if (axis.inner != 1)
        return reduce_columns(d, call, out, axis, f);
    RO_LAUNCH((axis_last_kernel<F>), ro_grid(ceil_div(view.count, TURN_WARPS * 32)),
              dim3(TURN_WARPS * 32), TURN_WARPS * 32 * TURN_ROW * sizeof(float), d->stream, to,
              view, f);
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}
RO_CUDA_KERNEL(sum_axis, reduce_axis<row_sum>)
RO_CUDA_KERNEL(max_axis, reduce_axis<axis_max>)

/* ---- argmax ---- */

/* A block is PLACE_COLUMNS neighbours wide, and the rest of its threads share the axis; along the
 * last axis all of them do. The larger element wins; among equals, the lower place. */
enum { PLACE_THREADS = 256, PLACE_COLUMNS = 32 };

struct best_place {
    int32_t key;
    uint32_t at;
};

RO_DEVICE void keep_better(best_place *best, best_place other) {
    if (other.key > best->key || (other.key == best->key && other.at < best->at))
        *best = other;
}

__global__ void __launch_bounds__(PLACE_THREADS)
    argmax_kernel(int32_t *out, const float *x, int64_t n, int64_t inner, int64_t tiles,
                  int columns) {
    RO_SMEM(best_place, found);
    const int64_t outer = blockIdx.x / tiles;
    const int column = threadIdx.x % columns, part = threadIdx.x / columns;
    const int parts = PLACE_THREADS / columns;
    const int64_t at = (blockIdx.x - outer * tiles) * columns + column;
    const float *line = x + outer * n * inner + at;
    best_place best = {INT32_MIN, UINT32_MAX};
    if (at < inner)
        for (int64_t j = part; j < n; j += parts) {
            const float v = line[j * inner];
            keep_better(&best, {ro_key(v == 0 ? 0.0f : v), (uint32_t)j});
        }
    found[threadIdx.x] = best;
    for (int half = parts / 2; half > 0; half /= 2) {
        __syncthreads();
        if (part < half) {
            keep_better(&best, found[threadIdx.x + half * columns]);
            found[threadIdx.x] = best;
        }
    }
    if (part == 0 && at < inner)
        out[outer * inner + at] = (int32_t)best.at;
}

static ro_status argmax(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_axis a = axis_of(call);
    const int columns = a.inner == 1 ? 1 : PLACE_COLUMNS;
    const int64_t tiles = ceil_div(a.inner, columns);
    RO_LAUNCH(argmax_kernel, ro_grid(a.outer * tiles), dim3(PLACE_THREADS),
              PLACE_THREADS * sizeof(best_place), d->stream, static_cast<int32_t *>(out),
              static_cast<const float *>(in[0]), a.n, a.inner, tiles, columns);
    return ro_cuda_launched(d, "argmax");
}
RO_CUDA_KERNEL(argmax, argmax)

/* ---- expansion ---- */

struct back_view {
    ro_divider inner, count;
    int64_t width;

    __host__ explicit back_view(const ro_call *call)
        : back_view(ro_axis_of(&call->output, call->attr[RO_ALONG_AXIS])) {}
    __host__ explicit back_view(const ro_axis &a) : inner(a.inner), count(a.n), width(a.inner) {}
    /* Returns the element's index in an input of length 1 along the axis. Sets *place to its place
     * there. */
    RO_DEVICE int64_t of(int64_t i, int64_t *place) const {
        const int64_t run = inner.quotient(i), outer = count.quotient(run);
        *place = run - outer * count.divisor;
        return outer * width + (i - run * width);
    }
};

template <class T>
ro_status expand_as(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const T *x = static_cast<const T *>(in[0]);
    const back_view view(call);
    return map<T>(d, call, out, [=] __device__(int64_t i) {
        int64_t place;
        return x[view.of(i, &place)];
    });
}

static ro_status expand(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    switch (ro_dtype_size(call->output.dtype)) {
    case 4: return expand_as<uint32_t>(d, call, in, out);
    case 2: return expand_as<uint16_t>(d, call, in, out);
    default: return expand_as<uint8_t>(d, call, in, out);
    }
}
RO_CUDA_KERNEL(expand, expand)

static ro_status max_grad(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int32_t *at = static_cast<const int32_t *>(in[0]);
    const uint32_t *dy = static_cast<const uint32_t *>(in[1]);
    const back_view view(call);
    return map<uint32_t>(d, call, out, [=] __device__(int64_t i) {
        int64_t place;
        const int64_t e = view.of(i, &place);
        return at[e] == place ? dy[e] : 0u;
    });
}
RO_CUDA_KERNEL(max_grad, max_grad)
