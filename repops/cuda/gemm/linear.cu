/* ro_linear (repops/fused.h): bias and activation follow when an element is complete, in the block
 * that summed all of its k or in the kernel that adds the sums of units. */
#include "repops/cuda/elements/functions.cuh"
#include "repops/cuda/gemm/gemm_plan.cuh"

/* gemm_out's c is y here. */
struct linear_out : gemm_out {
    static constexpr bool ENDS = true;
    const float *bias; /* NULL: none */
    float *z;          /* NULL: not wanted */
    ro_activation activation;

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

    /* Loads up to four elements of a row that has `count` left; at_once: as one vector. */
    static RO_DEVICE float4 load(const float *from, int64_t count, bool at_once) {
        if (at_once)
            return *reinterpret_cast<const float4 *>(from);
        return make_float4(from[0], count > 1 ? from[1] : 0.0f, count > 2 ? from[2] : 0.0f,
                           count > 3 ? from[3] : 0.0f);
    }

    /* Ends elements n to n + 3 of row m, or the `count` that the row has left. alpha is 1. */
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

template <bool along_k> static ro_status run(ro_cuda *d, const ro_linear_job *j) {
    const ro_linear_layer *l = &j->layer;
    const gemm_problem p = {l->rows, l->out, l->in, 1, RO_DOT_CHUNK, RO_MASK_NONE, nullptr, 0};
    const int64_t line = along_k ? l->in : l->out;
    const strided<true> x = {j->x, l->in, 0, l->rows, false};
    const strided<along_k> w = {j->w, line, 0, l->out,
                                !along_k && gemm_in_fours(j->w, line, 0, l->out)};
    linear_out out = {};
    out.c = j->y, out.row = l->out, out.col = 1, out.alpha = 1.0f;
    out.bias = j->bias, out.z = j->z, out.activation = l->activation;
    out.vectors = gemm_in_fours(j->y, l->out, 0, l->out) && gemm_in_fours(j->z, 0, 0, 0) &&
                  gemm_in_fours(j->bias, 0, 0, 0);
    return gemm_run<strided<true>, strided<along_k>, linear_out, false, true>(d, p, x, w, out,
                                                                              "linear");
}

/* Bias and activation of a product that is complete, in one pass. */
static ro_status end_layer(ro_cuda *d, const ro_linear_job *j) {
    const ro_linear_layer *l = &j->layer;
    if (!j->bias && !j->z && l->activation == RO_ACTIVATION_NONE)
        return RO_OK;
    linear_out out = {};
    out.c = j->y, out.row = l->out, out.bias = j->bias, out.z = j->z;
    out.activation = l->activation;
    const ro_divider columns(l->out);
    return map<float, 1>(
        d, j->y, l->rows * l->out,
        [=] __device__(int64_t i) {
            const int64_t row = columns.quotient(i);
            return out.element(row, i - row * columns.divisor, out.c[i]);
        },
        "linear");
}

/* For few columns: ro_gemm_products transposes the product. */
static ro_status run_narrow(ro_cuda *d, const ro_linear_job *j) {
    const ro_linear_layer *l = &j->layer;
    gemm_products product = {};
    product.p = {l->rows, l->out, l->in, 1, RO_DOT_CHUNK, RO_MASK_NONE, nullptr, 0};
    product.a = {j->x, l->in, 1, 0};
    product.b = {j->w, l->transposed ? 1 : l->out, l->transposed ? l->in : 1, 0};
    product.out = {j->y, l->out, 1, 0, 1.0f, 0.0f, false};
    const ro_status status = ro_gemm_products(d, &product, "linear");
    return status == RO_OK ? end_layer(d, j) : status;
}

static ro_status run_fixed(ro_cuda *d, const ro_linear_job *j) {
    const ro_linear_layer *l = &j->layer;
    ro_matmul v = {};
    v.batch = 1, v.m = l->rows, v.n = l->out, v.k = l->in;
    v.trans_b = l->transposed, v.alpha = 1.0f, v.bits = l->fixed_bits;
    const ro_status status = ro_fixed_product(d, &v, j->x, j->w, j->y);
    return status == RO_OK ? end_layer(d, j) : status;
}

ro_status ro_cuda_linear(ro_cuda *d, const ro_linear_job *job) {
    if (job->layer.fixed_bits)
        return run_fixed(d, job);
    if (job->layer.out <= gemm_flat16::M && job->layer.out < job->layer.rows)
        return run_narrow(d, job);
    return job->layer.transposed ? run<true>(d, job) : run<false>(d, job);
}
