/* Softmax and its losses, SPEC.md section 7.2. */
#include "repops/cuda/rows/rows.cuh"
#include "repops/op_softmax.h"

static const float *floats(const void *p) {
    return static_cast<const float *>(p);
}

static int64_t width(const ro_call *call) {
    return call->input[0].dim[call->input[0].ndim - 1];
}

/* ---- softmax and its logarithm ---- */

struct softmax_of {
    const float *x, *m, *l;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t, int64_t e) const {
        ro_pack<N> v = ro_load<N>(x + e);
        const float most = m[row], r = 1.0f / l[row];
#pragma unroll
        for (int k = 0; k < N; k++)
            v.at[k] = ro_canon(ro_exp(v.at[k] - most) * r);
        return v;
    }
};

struct log_softmax_of {
    const float *x, *m, *l;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t, int64_t e) const {
        ro_pack<N> v = ro_load<N>(x + e);
        const float most = m[row], log_l = ro_log(l[row]);
#pragma unroll
        for (int k = 0; k < N; k++)
            v.at[k] = ro_canon((v.at[k] - most) - log_l);
        return v;
    }
};

struct softmax_grad_of {
    const float *y, *dy, *d;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t, int64_t e) const {
        ro_pack<N> v = ro_load<N>(y + e);
        const ro_pack<N> w = ro_load<N>(dy + e);
        const float sum = d[row];
#pragma unroll
        for (int k = 0; k < N; k++)
            v.at[k] = ro_canon(v.at[k] * (w.at[k] - sum));
        return v;
    }
};

struct log_softmax_grad_of {
    const float *y, *dy, *s;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t, int64_t e) const {
        ro_pack<N> v = ro_load<N>(y + e);
        const ro_pack<N> w = ro_load<N>(dy + e);
        const float sum = s[row];
#pragma unroll
        for (int k = 0; k < N; k++)
            v.at[k] = ro_canon(ro_fma(-ro_exp(v.at[k]), sum, w.at[k]));
        return v;
    }
};

template <class F>
ro_status from_one(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const F f = {floats(in[0]), floats(in[1]), floats(in[2])};
    return map_rows(d, call, out, in_numel(call, 0), width(call),
                    ro_packable(width(call), floats(in[0])), f);
}
RO_CUDA_KERNEL(softmax, from_one<softmax_of>)
RO_CUDA_KERNEL(log_softmax, from_one<log_softmax_of>)

template <class F>
ro_status from_two(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const F f = {floats(in[0]), floats(in[1]), floats(in[2])};
    return map_rows(d, call, out, in_numel(call, 0), width(call),
                    ro_packable(width(call), floats(in[0]), floats(in[1])), f);
}
RO_CUDA_KERNEL(softmax_grad, from_two<softmax_grad_of>)
RO_CUDA_KERNEL(log_softmax_grad, from_two<log_softmax_grad_of>)

/* ---- cross-entropy ---- */

/* Returns the ignored label, or INT64_MIN, which is no label, for operators that ignore none. */
static int64_t ignored(const ro_call *call) {
    return ro_op_describe(call->op)->attr_count ? call->attr[RO_LABELS_IGNORE] : INT64_MIN;
}

static ro_status xent(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = floats(in[0]), *m = floats(in[1]), *l = floats(in[2]);
    const int32_t *ids = static_cast<const int32_t *>(in[3]);
    const int64_t cols = width(call), ignore = ignored(call);
    return map<float>(d, call, out, [=] __device__(int64_t r) {
        const int32_t id = ids[r];
        if (id == ignore)
            return 0.0f;
        if (id < 0 || id >= cols)
            return ro_from_bits(RO_QNAN_BITS);
        return ro_canon(ro_log(l[r]) - (x[r * cols + id] - m[r]));
    });
}
RO_CUDA_KERNEL(xent, xent)
RO_CUDA_KERNEL(xent_ignore, xent)

struct xent_grad_of {
    const float *x, *m, *l;
    const int32_t *ids;
    const float *dloss;
    int64_t ignore;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t c, int64_t e) const {
        ro_pack<N> v = ro_load<N>(x + e);
        const float most = m[row], r = 1.0f / l[row], g = dloss[row];
        const int32_t id = ids[row];
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float p = ro_exp(v.at[k] - most) * r;
            const float dx = ro_canon((c + k == id ? p - 1.0f : p) * g);
            v.at[k] = id == ignore ? 0.0f : dx;
        }
        return v;
    }
};

static ro_status xent_grad(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const xent_grad_of f = {floats(in[0]), floats(in[1]),
                            floats(in[2]), static_cast<const int32_t *>(in[3]),
                            floats(in[4]), ignored(call)};
    return map_rows(d, call, out, in_numel(call, 0), width(call), ro_packable(width(call), f.x), f);
}
RO_CUDA_KERNEL(xent_grad, xent_grad)
RO_CUDA_KERNEL(xent_ignore_grad, xent_grad)

static ro_status kept(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int32_t *ids = static_cast<const int32_t *>(in[0]),
                  ignore = (int32_t)call->attr[RO_KEPT_IGNORE];
    return map<float>(d, call, out,
                      [=] __device__(int64_t i) { return ids[i] == ignore ? 0.0f : 1.0f; });
}
RO_CUDA_KERNEL(kept, kept)
