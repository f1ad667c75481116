/* Applies bias and activation of a linear layer in the kernel of its product. */
#ifndef REPOPS_CUDA_LINEAR_CUH
#define REPOPS_CUDA_LINEAR_CUH

#include "repops/cuda/elements/functions.cuh"
#include "repops/cuda/gemm/gemm_plan.cuh"

/* gemm_out's c is y here. */
struct linear_out : gemm_out {
    static constexpr bool ENDS = true;
    const float *bias; /* NULL: no bias */
    float *z;          /* NULL: not wanted */
    ro_activation activation;

    static linear_out of(const ro_linear_job *j) {
        const ro_linear_layer *l = &j->layer;
        linear_out out = {};
        out.c = j->y, out.row = l->out, out.col = 1, out.alpha = 1.0f;
        out.bias = j->bias, out.z = j->z, out.activation = l->activation;
        out.vectors = gemm_in_fours(j->y, l->out, 0, l->out) && gemm_in_fours(j->z, 0, 0, 0) &&
                      gemm_in_fours(j->bias, 0, 0, 0);
        return out;
    }

    template <class F> static RO_DEVICE float4 each(float4 z) {
        return make_float4(F::of(z.x), F::of(z.y), F::of(z.z), F::of(z.w));
    }
    RO_DEVICE float4 activated(float4 z) const {
        switch (activation) {
        case RO_ACTIVATION_RELU: return each<relu_of>(z);
        case RO_ACTIVATION_GELU: return each<gelu_of>(z);
        case RO_ACTIVATION_GELU_ERF: return each<gelu_erf_of>(z);
        case RO_ACTIVATION_SILU: return each<silu_of>(z);
        case RO_ACTIVATION_NONE: break;
        }
        return z;
    }

    /* Loads up to four elements of a row that has `count` left; at_once: as one aligned vector. */
    static RO_DEVICE float4 load(const float *from, int64_t count, bool at_once) {
        if (at_once)
            return *reinterpret_cast<const float4 *>(from);
        return make_float4(from[0], count > 1 ? from[1] : 0.0f, count > 2 ? from[2] : 0.0f,
                           count > 3 ? from[3] : 0.0f);
    }

    /* Ends elements n to n + 3 of row m, or the `count` that the row has left. alpha must be 1. */
    RO_DEVICE void end(int64_t m, int64_t n, int64_t count, float4 total) const {
        const int64_t at = m * row + n;
        float4 x = total;
        if (bias) {
            const float4 b = load(bias + n, count, vectors);
            x = make_float4(x.x + b.x, x.y + b.y, x.z + b.z, x.w + b.w);
        }
        x = make_float4(ro_canon(x.x), ro_canon(x.y), ro_canon(x.z), ro_canon(x.w));
        if (z)
            gemm_store_left(z + at, x, count, vectors);
        gemm_store_left(c + at, activated(x), count, vectors);
    }
    RO_DEVICE float element(int64_t m, int64_t n, float total) const {
        const float x = ro_canon(bias ? total + bias[n] : total);
        if (z)
            z[m * row + n] = x;
        return activated(make_float4(x, x, x, x)).x;
    }
    RO_DEVICE void end_one(int64_t m, int64_t n, float total) const {
        c[m * row + n] = element(m, n, total);
    }
};

/* Applies bias and activation to a product in y; in linear_end.cu. */
ro_status ro_linear_end(ro_cuda *d, const ro_linear_job *job);
/* ro_linear with fixed_bits; in fixed.cu. */
ro_status ro_fixed_linear(ro_cuda *d, const ro_linear_job *job);

#endif
