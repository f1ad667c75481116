/* Layer norm and RMS norm, SPEC.md sections 7.1 and 7.3. */
#include "repops/cuda/rows/rows.cuh"
#include "repops/op_norm.h"

static const float *floats(const void *p) {
    return static_cast<const float *>(p);
}

static int64_t width(const ro_call *call) {
    return call->output.dim[call->output.ndim - 1];
}

static ro_status ln_rstd(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *ss = floats(in[0]), n = (float)call->attr[RO_LN_RSTD_N],
                eps = attr_f(call, RO_LN_RSTD_EPS);
    return map<float>(d, call, out, [=] __device__(int64_t i) { return ro_rstd(ss[i], n, eps); });
}
RO_CUDA_KERNEL(ln_rstd, ln_rstd)

struct layernorm_of {
    const float *x, *mean, *rstd, *gamma, *beta;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t c, int64_t e) const {
        ro_pack<N> v = ro_load<N>(x + e);
        const ro_pack<N> g = ro_load<N>(gamma + c), b = ro_load<N>(beta + c);
        const float m = mean[row], r = rstd[row];
#pragma unroll
        for (int k = 0; k < N; k++)
            v.at[k] = ro_canon(ro_fma((v.at[k] - m) * r, g.at[k], b.at[k]));
        return v;
    }
};

struct rmsnorm_of {
    const float *x, *rstd, *gamma;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t c, int64_t e) const {
        ro_pack<N> v = ro_load<N>(x + e);
        const ro_pack<N> g = ro_load<N>(gamma + c);
        const float r = rstd[row];
#pragma unroll
        for (int k = 0; k < N; k++)
            v.at[k] = ro_canon((v.at[k] * r) * g.at[k]);
        return v;
    }
};

/* Computes dx of layer norm if `centred`, which has a mean, or of RMS norm. */
template <bool centred> struct dx_of {
    const float *dy, *gamma, *x, *mean, *rstd, *sg, *sgx;
    float n;

    template <int N> RO_DEVICE ro_pack<N> of(int64_t row, int64_t c, int64_t e) const {
        ro_pack<N> v = ro_load<N>(dy + e);
        const ro_pack<N> w = ro_load<N>(gamma + c), u = ro_load<N>(x + e);
        const float r = rstd[row], gx = sgx[row] / n;
        const float m = centred ? mean[row] : 0.0f, s = centred ? sg[row] / n : 0.0f;
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float g = v.at[k] * w.at[k], xh = (centred ? u.at[k] - m : u.at[k]) * r;
            v.at[k] = ro_canon(r * ro_fma(-xh, gx, centred ? g - s : g));
        }
        return v;
    }
};

static ro_status layernorm(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const layernorm_of f = {floats(in[0]), floats(in[1]), floats(in[2]), floats(in[3]),
                            floats(in[4])};
    return map_rows(d, call, out, in_numel(call, 0), width(call),
                    ro_packable(width(call), f.x, f.gamma, f.beta), f);
}
RO_CUDA_KERNEL(layernorm, layernorm)

static ro_status rmsnorm(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const rmsnorm_of f = {floats(in[0]), floats(in[1]), floats(in[2])};
    return map_rows(d, call, out, in_numel(call, 0), width(call),
                    ro_packable(width(call), f.x, f.gamma), f);
}
RO_CUDA_KERNEL(rmsnorm, rmsnorm)

template <bool centred>
static ro_status norm_dx(ro_cuda *d, const ro_call *call, void *out, const dx_of<centred> &f) {
    return map_rows(d, call, out, in_numel(call, 0), width(call),
                    ro_packable(width(call), f.dy, f.gamma, f.x), f);
}

static ro_status ln_dx(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const dx_of<true> f = {floats(in[0]), floats(in[1]), floats(in[2]), floats(in[3]),
                           floats(in[4]), floats(in[5]), floats(in[6]), (float)width(call)};
    return norm_dx(d, call, out, f);
}
RO_CUDA_KERNEL(ln_dx, ln_dx)

static ro_status rms_dx(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const dx_of<false> f = {floats(in[0]), floats(in[1]), floats(in[2]), nullptr,
                            floats(in[3]), nullptr,       floats(in[4]), (float)width(call)};
    return norm_dx(d, call, out, f);
}
RO_CUDA_KERNEL(rms_dx, rms_dx)
