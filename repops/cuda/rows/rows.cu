/* Row reductions, SPEC.md section 3.2: one warp for each block of a row. */
#include "repops/cuda/rows/rows.cuh"
#include "repops/op_reduce.h"

/* ---- terms; `open` moves the pointers to the block ---- */

struct sums {
    typedef float lane;
    static constexpr bool FOURS = true;
    static RO_DEVICE lane start() {
        return 0.0f;
    }
    template <int N> RO_DEVICE float close(const lane sum[4]) const {
        return ro_fold<N>(sum);
    }
};

struct sum_terms : sums {
    static constexpr int EACH = 8;
    const float *x;
    template <int N> struct data { ro_pack<N> x; };

    sum_terms(const float *of) : x(of) {}
    RO_DEVICE void open(const row_block &b) {
        x += b.e;
    }
    template <int N> RO_DEVICE data<N> read(int i) const {
        return {ro_load<N>(x + i)};
    }
    template <int N> RO_DEVICE float add(float sum, const data<N> &v, int k) const {
        return sum + v.x.at[k];
    }
};

/* b repeats, if at all, where blocks begin. */
struct dot_terms : sums {
    static constexpr int EACH = 4;
    const float *a, *b;
    ro_divider period;
    template <int N> struct data { ro_pack<N> a, b; };

    dot_terms(const float *first, const float *second, int64_t count)
        : a(first), b(second), period(count) {}
    RO_DEVICE void open(const row_block &r) {
        a += r.e, b += period.remainder(r.e);
    }
    template <int N> RO_DEVICE data<N> read(int i) const {
        return {ro_load<N>(a + i), ro_load<N>(b + i)};
    }
    template <int N> RO_DEVICE float add(float sum, const data<N> &v, int k) const {
        return ro_fma(v.a.at[k], v.b.at[k], sum);
    }
};

/* b may repeat anywhere. */
struct dot_wrapped_terms : dot_terms {
    static constexpr bool FOURS = false;
    int64_t e;

    using dot_terms::dot_terms;
    RO_DEVICE void open(const row_block &r) {
        e = r.e;
    }
    template <int N> RO_DEVICE data<N> read(int i) const {
        return {ro_load<N>(a + e + i), ro_load<N>(b + period.remainder(e + i))};
    }
};

struct sqdev_terms : sum_terms {
    const float *mean;
    float m;

    sqdev_terms(const float *of, const float *means) : sum_terms(of), mean(means) {}
    RO_DEVICE void open(const row_block &b) {
        x += b.e, m = mean[b.row];
    }
    template <int N> RO_DEVICE float add(float sum, const data<N> &v, int k) const {
        const float d = v.x.at[k] - m;
        return ro_fma(d, d, sum);
    }
};

struct expsum_terms : sqdev_terms {
    using sqdev_terms::sqdev_terms;
    template <int N> RO_DEVICE float add(float sum, const data<N> &v, int k) const {
        return sum + ro_exp(v.x.at[k] - m);
    }
};

/* Terms of layer norm if `centred`, which has a mean, or of RMS norm. */
template <bool centred> struct gx_terms : sums {
    static constexpr int EACH = 2;
    const float *dy, *gamma, *x, *mean, *rstd;
    float m, r;
    template <int N> struct data { ro_pack<N> dy, gamma, x; };

    gx_terms(const void *const *in)
        : dy(static_cast<const float *>(in[0])), gamma(static_cast<const float *>(in[1])),
          x(static_cast<const float *>(in[2])), mean(static_cast<const float *>(in[3])),
          rstd(static_cast<const float *>(in[centred ? 4 : 3])) {}
    RO_DEVICE void open(const row_block &b) {
        dy += b.e, gamma += b.at, x += b.e, r = rstd[b.row];
        if (centred)
            m = mean[b.row];
    }
    template <int N> RO_DEVICE data<N> read(int i) const {
        return {ro_load<N>(dy + i), ro_load<N>(gamma + i), ro_load<N>(x + i)};
    }
    template <int N> RO_DEVICE float add(float sum, const data<N> &v, int k) const {
        const float xh = (centred ? v.x.at[k] - m : v.x.at[k]) * r;
        return ro_fma(v.dy.at[k] * v.gamma.at[k], xh, sum);
    }
};

/* ---- operators ---- */

static row_view view_of(const ro_call *call) {
    return {ro_shape_numel(&call->output), call->attr[RO_ROWS_COLS], call->attr[RO_ROWS_BLOCK], 0};
}

static const float *floats(const void *p) {
    return static_cast<const float *>(p);
}

static ro_status reduce_sum(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return reduce_rows(d, call, out, view_of(call),
                       ro_packable(call->attr[RO_REDUCE_SUM_COLS], floats(in[0])),
                       sum_terms(floats(in[0])));
}
RO_CUDA_KERNEL(reduce_sum, reduce_sum)

static ro_status reduce_max(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return reduce_rows(d, call, out, view_of(call),
                       ro_packable(call->attr[RO_REDUCE_MAX_COLS], floats(in[0])),
                       max_terms{floats(in[0])});
}
RO_CUDA_KERNEL(reduce_max, reduce_max)

static ro_status reduce_dot(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int64_t cols = call->attr[RO_REDUCE_DOT_COLS], period = in_numel(call, 1);
    const row_view view = view_of(call);
    const float *a = floats(in[0]), *b = floats(in[1]);
    if (cols > 0 && period % cols != 0)
        return reduce_rows(d, call, out, view, false, dot_wrapped_terms(a, b, period));
    return reduce_rows(d, call, out, view, ro_packable(cols, a, b), dot_terms(a, b, period));
}
RO_CUDA_KERNEL(reduce_dot, reduce_dot)

template <class F>
ro_status reduce_with_row(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return reduce_rows(d, call, out, view_of(call),
                       ro_packable(call->attr[RO_ROWS_COLS], floats(in[0])),
                       F(floats(in[0]), floats(in[1])));
}
RO_CUDA_KERNEL(reduce_sqdev, reduce_with_row<sqdev_terms>)
RO_CUDA_KERNEL(reduce_expsum, reduce_with_row<expsum_terms>)

template <bool centred>
ro_status reduce_gx(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const bool packed =
        ro_packable(call->attr[RO_ROWS_COLS], floats(in[0]), floats(in[1]), floats(in[2]));
    return reduce_rows(d, call, out, view_of(call), packed, gx_terms<centred>(in));
}
RO_CUDA_KERNEL(reduce_ln_gx, reduce_gx<true>)
RO_CUDA_KERNEL(reduce_rms_gx, reduce_gx<false>)
