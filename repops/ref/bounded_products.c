/* Products with bounds: the product of two f32 numbers is exact in binary64. SPEC.md sections 3.1,
 * 8 and 12.1. */
#include "repops/ref/bounded.h"
#include "repops/src/conv.h"
#include "repops/src/half.h"
#include "repops/op_product.h"
#include "repops/src/matmul.h"

static void add_product(bounded_sum *s, const ro_access *in, int64_t a, int64_t b) {
    add_term(s, (real)loadf(in, 0, a) * (real)loadf(in, 1, b));
}

static void matmul_step(const ro_call *call, int64_t e, int64_t step, bounded_sum *s,
                        const ro_access *in) {
    const ro_matmul v = ro_matmul_of(call);
    const int64_t n = e % v.n, m = e / v.n % v.m, batch = e / v.n / v.m;
    int64_t from, to;
    ro_ref_matmul_range(&v, m, step, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const ro_ref_factors at = ro_ref_matmul_factors(&v, batch, m, n, k);
        const float b = ro_number_of(call->input[1].dtype, load(in, 1, at.b));
        add_term(s, (real)loadf(in, 0, at.a) * (real)b);
    }
}

/* The products are exact, so they have no rounding; alpha has one. */
static approx matmul(const ro_call *call, const bounded_sum *s) {
    const approx sum = sum_of(s, -1), alpha = ap_exact((real)attrf(call, RO_MATMUL_ALPHA));
    return ap_either_sign(ap_mul(sum, alpha), sum, alpha);
}
RO_BOUNDED(matmul, .step = matmul_step, .finish = matmul)

static approx attn_av(const ro_call *call, int64_t e, const ro_access *in) {
    const ro_shape *s = &call->input[0];
    const int64_t keys = last_dim(s), size = last_dim(&call->output);
    const int64_t blocks = (keys + RO_ATTN_BLOCK - 1) / RO_ATTN_BLOCK, row = e / size / blocks;
    const int64_t first = row / s->dim[s->ndim - 2] * keys;
    bounded_sum sum = {0, 0, 0};
    int64_t from, to;
    ro_ref_attn_keys(call, row, e / size % blocks, in, &from, &to);
    for (int64_t j = from; j < to; j++)
        add_product(&sum, in, row * keys + j, (first + j) * size + e % size);
    return sum_of(&sum, 0);
}
RO_BOUNDED(attn_av, .element = attn_av)
RO_BOUNDED(attn_av_at, .element = attn_av)

static void conv_step(const ro_call *call, int64_t e, int64_t step, bounded_sum *s,
                      const ro_access *in) {
    const ro_conv v = ro_conv_of(call);
    int64_t from, to;
    ro_ref_step_range(step, ro_ref_conv_terms(call, &v), &from, &to);
    for (int64_t k = from; k < to; k++) {
        const ro_ref_factors at = ro_ref_conv_factors(call, &v, e, k);
        if (at.present)
            add_product(s, in, at.a, at.b);
    }
}
RO_BOUNDED(conv2d, .step = conv_step, .finish = ro_bounded_plain_sum)
RO_BOUNDED(conv2d_dx, .step = conv_step, .finish = ro_bounded_plain_sum)
RO_BOUNDED(conv2d_dw, .step = conv_step, .finish = ro_bounded_plain_sum)
