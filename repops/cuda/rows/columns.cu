/* Column reductions, SPEC.md section 3.3: one thread for each column of each group of rows. */
#include "repops/cuda/rows/columns.cuh"

/* ---- terms: read(row, element), then add ---- */

template <bool centred> struct dgamma : column_sum {
    const float *dy, *x, *mean, *rstd;
    struct data {
        float dy, x, mean, rstd;
    };
    RO_DEVICE data read(int64_t row, int64_t e) const {
        return {dy[e], x[e], centred ? mean[row] : 0.0f, rstd[row]};
    }
    static RO_DEVICE float add(float sum, const data &v) {
        const float xh = (centred ? v.x - v.mean : v.x) * v.rstd;
        return ro_fma(v.dy, xh, sum);
    }
};

static const float *floats(const void *p) {
    return static_cast<const float *>(p);
}

static ro_status sum_rows(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return reduce_view(d, call, out, row_sum{{}, floats(in[0])});
}
RO_CUDA_KERNEL(sum_rows, sum_rows)

static ro_status ln_dgamma(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return reduce_view(
        d, call, out, dgamma<true>{{}, floats(in[0]), floats(in[1]), floats(in[2]), floats(in[3])});
}
RO_CUDA_KERNEL(ln_dgamma, ln_dgamma)

static ro_status rms_dgamma(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return reduce_view(d, call, out,
                       dgamma<false>{{}, floats(in[0]), floats(in[1]), nullptr, floats(in[2])});
}
RO_CUDA_KERNEL(rms_dgamma, rms_dgamma)
