/* Reductions over groups of 64 rows, SPEC.md sections 3.3 and 3.4. */
#ifndef REPOPS_CUDA_COLUMNS_CUH
#define REPOPS_CUDA_COLUMNS_CUH

#include "repops/cuda/rows/rows.cuh"
#include "repops/op_reduce.h"

enum { COLUMN_THREADS = 128, COLUMN_EACH = 16 };

/* The rows of an output element: their first element, and how many there are. */
struct column_group {
    int64_t row, e;
    int rows;
};

/* The output as [outer, groups, inner], an element per thread. */
struct column_view {
    int64_t count, n;
    ro_divider inner, groups;

    __host__ explicit column_view(const ro_axis &a)
        : count(a.outer * ro_blocks_of(a.n, RO_COLUMN_GROUP) * a.inner), n(a.n), inner(a.inner),
          groups(ro_blocks_of(a.n, RO_COLUMN_GROUP)) {}
    RO_DEVICE column_group of(int64_t item) const {
        const int64_t group = inner.quotient(item), outer = groups.quotient(group);
        const int64_t first = (group - outer * groups.divisor) * RO_COLUMN_GROUP;
        const int64_t row = outer * n + first, left = n - first;
        return {row, row * inner.divisor + (item - group * inner.divisor),
                left < RO_COLUMN_GROUP ? (int)left : RO_COLUMN_GROUP};
    }
};

struct column_sum {
    typedef float state;
    static RO_DEVICE state start(int64_t, const column_group &) {
        return 0.0f;
    }
    static RO_DEVICE float close(state sum) {
        return ro_canon(sum);
    }
};

struct row_sum : column_sum {
    const float *x;
    typedef float data;
    RO_DEVICE data read(int64_t, int64_t e) const {
        return x[e];
    }
    static RO_DEVICE float add(float sum, const data &v) {
        return sum + v;
    }
};

/* F has: data and read(row, element); state, start(item, group), add(state, data) and close(state).
 * `each` reads overlap; additions are in order. O is the type that results are stored to. */
template <int each, class F, class O = float *>
__global__ void __launch_bounds__(COLUMN_THREADS)
    reduce_columns_kernel(O out, column_view view, F f) {
    const int64_t item = (int64_t)blockIdx.x * COLUMN_THREADS + threadIdx.x;
    if (item >= view.count)
        return;
    const column_group g = view.of(item);
    typename F::state sum = f.start(item, g);
    for (int from = 0; from < g.rows; from += each) {
        typename F::data v[each] = {};
#pragma unroll
        for (int u = 0; u < each; u++)
            if (from + u < g.rows)
                v[u] = f.read(g.row + from + u, g.e + (from + u) * view.inner.divisor);
#pragma unroll
        for (int u = 0; u < each; u++)
            if (from + u < g.rows)
                sum = f.add(sum, v[u]);
    }
    out[item] = F::close(sum);
}

template <int each = COLUMN_EACH, class F>
static ro_status reduce_columns(ro_cuda *d, const ro_call *call, void *out, const ro_axis &axis,
                                const F &f) {
    const column_view view(axis);
    RO_LAUNCH((reduce_columns_kernel<each, F>), ro_grid(ceil_div(view.count, COLUMN_THREADS)),
              dim3(COLUMN_THREADS), 0, d->stream, static_cast<float *>(out), view, f);
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}

/* Reduces the first input as rows of as many columns as the first attribute says. */
template <int each = COLUMN_EACH, class F>
static ro_status reduce_view(ro_cuda *d, const ro_call *call, void *out, const F &f) {
    const int64_t cols = call->attr[RO_COLUMNS_COLS];
    return reduce_columns<each>(d, call, out, {1, in_numel(call, 0) / cols, cols}, f);
}

#endif
