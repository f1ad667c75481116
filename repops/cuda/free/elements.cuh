/* Operators that are one formula for each element, SPEC.md sections 6 to 9, 12.3 and 13. */
#ifndef REPOPS_CUDA_FREE_ELEMENTS_CUH
#define REPOPS_CUDA_FREE_ELEMENTS_CUH

#include "repops/cuda/free/free.cuh"
#include "repops/free/activations.h"
#include "repops/free/arithmetic.h"
#include "repops/free/norms.h"
#include "repops/free/probabilities.h"
#include "repops/free/updates.h"
#include "repops/src/rope.h"
#include "repops/operators.h"
#include "repops/src/keys.h"

namespace FREE_SPACE {

/* ---- formulas of elements of the inputs ---- */

template <formula *f> struct of_elements {
    operands o;

    RO_DEVICE approx operator()(int64_t i) const {
        return f(o, i, how());
    }
};

template <formula *f>
static ro_status each(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    operands o = {};
    o.a = f32(in[0]);
    o.b = call->input_count > 1 ? f32(in[1]) : nullptr;
    o.p = ro_op_describe(call->op)->attr_count > 0 ? attr_of(call, 0) : ap_exact(0);
    return elements(d, call, out, of_elements<f>{o});
}
RO_CUDA_FREE(div_const, each<div_const_of>)
RO_CUDA_FREE(scale, each<scale_of>)
RO_CUDA_FREE(sqrt, each<sqrt_of>)
RO_CUDA_FREE(rsqrt, each<rsqrt_of>)
RO_CUDA_FREE(exp, each<exp_of>)
RO_CUDA_FREE(log, each<log_of>)
RO_CUDA_FREE(tanh, each<tanh_of>)
RO_CUDA_FREE(erf, each<erf_of>)
RO_CUDA_FREE(sigmoid, each<sigmoid_of>)
RO_CUDA_FREE(silu, each<silu_of>)
RO_CUDA_FREE(gelu, each<gelu_of>)
RO_CUDA_FREE(gelu_erf, each<gelu_erf_of>)
RO_CUDA_FREE(tanh_grad, each<tanh_grad_of>)
RO_CUDA_FREE(sigmoid_grad, each<sigmoid_grad_of>)
RO_CUDA_FREE(erf_grad, each<erf_grad_of>)
RO_CUDA_FREE(silu_grad, each<silu_grad_of>)
RO_CUDA_FREE(gelu_grad, each<gelu_grad_of>)
RO_CUDA_FREE(gelu_erf_grad, each<gelu_erf_grad_of>)

/* b may be shorter, and repeats. */
template <formula *f>
static ro_status pair(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    const float *a = f32(in[0]), *b = f32(in[1]);
    const ro_divider period(in_numel(call, 1));
    return elements(d, call, out, [=] __device__(int64_t i) {
        operands o = {};
        o.a = a + i;
        o.b = b + period.remainder(i);
        return f(o, 0, how());
    });
}
RO_CUDA_FREE(add, pair<add_of>)
RO_CUDA_FREE(sub, pair<sub_of>)
RO_CUDA_FREE(mul, pair<mul_of>)
RO_CUDA_FREE(div, pair<div_of>)

/* ---- norms ---- */

static ro_status ln_rstd(ro_cuda *d, const ro_call *call, const void *const *in,
                         const values &out) {
    operands o = {};
    o.a = f32(in[0]);
    o.p = ap_exact((real)call->attr[RO_LN_RSTD_N]);
    o.q = attr_of(call, RO_LN_RSTD_EPS);
    return elements(d, call, out, of_elements<ln_rstd_of>{o});
}
RO_CUDA_FREE(ln_rstd, ln_rstd)

static ro_status layernorm(ro_cuda *d, const ro_call *call, const void *const *in,
                           const values &out) {
    const float *x = f32(in[0]), *mean = f32(in[1]), *rstd = f32(in[2]);
    const float *gamma = f32(in[3]), *beta = f32(in[4]);
    const ro_divider cols(width_of(call));
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = cols.quotient(i), first = row * cols.divisor;
        operands o = {};
        o.a = x + first, o.b = gamma, o.c = beta;
        o.p = at(mean, row), o.q = at(rstd, row);
        return layernorm_of(o, i - first, how());
    });
}
RO_CUDA_FREE(layernorm, layernorm)

static ro_status rmsnorm(ro_cuda *d, const ro_call *call, const void *const *in,
                         const values &out) {
    const float *x = f32(in[0]), *rstd = f32(in[1]), *gamma = f32(in[2]);
    const ro_divider cols(width_of(call));
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = cols.quotient(i), first = row * cols.divisor;
        operands o = {};
        o.a = x + first, o.b = gamma, o.q = at(rstd, row);
        return rmsnorm_of(o, i - first, how());
    });
}
RO_CUDA_FREE(rmsnorm, rmsnorm)

static ro_status ln_dx(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    const float *dy = f32(in[0]), *gamma = f32(in[1]), *x = f32(in[2]), *mean = f32(in[3]);
    const float *rstd = f32(in[4]), *sg = f32(in[5]), *sgx = f32(in[6]);
    const ro_divider cols(width_of(call));
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = cols.quotient(i), first = row * cols.divisor;
        const real n = (real)cols.divisor;
        operands o = {};
        o.a = dy + first, o.b = gamma, o.c = x + first;
        o.p = at(mean, row), o.q = at(rstd, row);
        o.r = ap_div_exact(at(sg, row), n), o.s = ap_div_exact(at(sgx, row), n);
        return ln_dx_of(o, i - first, how());
    });
}
RO_CUDA_FREE(ln_dx, ln_dx)

static ro_status rms_dx(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    const float *dy = f32(in[0]), *gamma = f32(in[1]), *x = f32(in[2]);
    const float *rstd = f32(in[3]), *sgx = f32(in[4]);
    const ro_divider cols(width_of(call));
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = cols.quotient(i), first = row * cols.divisor;
        operands o = {};
        o.a = dy + first, o.b = gamma, o.c = x + first;
        o.q = at(rstd, row), o.s = ap_div_exact(at(sgx, row), (real)cols.divisor);
        return rms_dx_of(o, i - first, how());
    });
}
RO_CUDA_FREE(rms_dx, rms_dx)

static ro_status batchnorm(ro_cuda *d, const ro_call *call, const void *const *in,
                           const values &out) {
    operands p = {};
    p.a = f32(in[0]), p.b = f32(in[1]), p.c = f32(in[2]), p.d = f32(in[3]), p.e = f32(in[4]);
    const ro_divider cols(width_of(call));
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t c = cols.remainder(i);
        operands o = p;
        o.a += i - c;
        return batchnorm_of(o, c, how());
    });
}
RO_CUDA_FREE(batchnorm, batchnorm)

static ro_status bn_dx(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    operands p = {};
    p.a = f32(in[0]), p.b = f32(in[1]), p.c = f32(in[2]), p.d = f32(in[3]);
    p.e = f32(in[4]), p.f = f32(in[5]), p.g = f32(in[6]);
    const ro_divider cols(width_of(call));
    p.p = ap_relative(1 / (real)(in_numel(call, 0) / cols.divisor), 1);
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t c = cols.remainder(i);
        operands o = p;
        o.a += i - c, o.b += i - c;
        return bn_dx_of(o, c, how());
    });
}
RO_CUDA_FREE(bn_dx, bn_dx)

static ro_status bn_running(ro_cuda *d, const ro_call *call, const void *const *in,
                            const values &out) {
    operands o = {};
    o.a = f32(in[0]), o.b = f32(in[1]);
    o.p = attr_of(call, RO_BN_RUNNING_MOMENTUM), o.q = attr_of(call, RO_BN_RUNNING_DIVISOR);
    return elements(d, call, out, of_elements<bn_running_of>{o});
}
RO_CUDA_FREE(bn_running, bn_running)

/* ---- softmax and cross-entropy ---- */

template <formula *f>
static ro_status of_scores(ro_cuda *d, const ro_call *call, const void *const *in,
                           const values &out) {
    const float *x = f32(in[0]), *m = f32(in[1]), *l = f32(in[2]);
    const ro_divider cols(width_of(call));
    const bool logarithm = call->op == RO_OP_LOG_SOFTMAX;
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = cols.quotient(i);
        const approx sum = at(l, row);
        operands o = {};
        o.a = x, o.p = at(m, row);
        o.q = logarithm ? log_at(sum, how()) : inverse(sum);
        return f(o, i, how());
    });
}
RO_CUDA_FREE(softmax, of_scores<softmax_of>)
RO_CUDA_FREE(log_softmax, of_scores<log_softmax_of>)

template <formula *f>
static ro_status of_gradients(ro_cuda *d, const ro_call *call, const void *const *in,
                              const values &out) {
    const float *y = f32(in[0]), *dy = f32(in[1]), *sum = f32(in[2]);
    const ro_divider cols(width_of(call));
    return elements(d, call, out, [=] __device__(int64_t i) {
        operands o = {};
        o.a = y, o.b = dy, o.p = at(sum, cols.quotient(i));
        return f(o, i, how());
    });
}
RO_CUDA_FREE(softmax_grad, of_gradients<softmax_grad_of>)
RO_CUDA_FREE(log_softmax_grad, of_gradients<log_softmax_grad_of>)

/* Returns the ignored label, or INT64_MIN, which is no label, for operators that ignore none. */
static int64_t ignored(const ro_call *call) {
    return ro_op_describe(call->op)->attr_count ? call->attr[RO_LABELS_IGNORE] : INT64_MIN;
}

static ro_status xent(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    const float *x = f32(in[0]), *m = f32(in[1]), *l = f32(in[2]);
    const int32_t *ids = static_cast<const int32_t *>(in[3]);
    const int64_t cols = width_of(call), ignore = ignored(call);
    return elements(d, call, out, [=] __device__(int64_t r) {
        const int64_t id = ids[r];
        if (id == ignore)
            return ap_exact(0);
        if (id < 0 || id >= cols)
            return ap_exact(REAL_NAN);
        return xent_of(at(x, r * cols + id), at(m, r), at(l, r), how());
    });
}
RO_CUDA_FREE(xent, xent)
RO_CUDA_FREE(xent_ignore, xent)

static ro_status xent_grad(ro_cuda *d, const ro_call *call, const void *const *in,
                           const values &out) {
    const float *x = f32(in[0]), *m = f32(in[1]), *l = f32(in[2]), *dloss = f32(in[4]);
    const int32_t *ids = static_cast<const int32_t *>(in[3]);
    const ro_divider cols(width_of(call));
    const int64_t ignore = ignored(call);
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = cols.quotient(i), id = ids[row];
        operands o = {};
        o.a = x, o.p = at(m, row), o.q = inverse(at(l, row)), o.r = at(dloss, row);
        if (id == ignore)
            return ap_exact(0);
        return i - row * cols.divisor == id ? xent_grad_hit(o, i, how())
                                            : xent_grad_of(o, i, how());
    });
}
RO_CUDA_FREE(xent_grad, xent_grad)
RO_CUDA_FREE(xent_ignore_grad, xent_grad)

/* ---- attention ---- */

RO_DEVICE bool is_minus_infinity(float x) {
    return ro_to_bits(x) == RO_MINUS_INFINITY_BITS;
}

/* Scores have the shape [..., T, S]. */
struct scores {
    ro_divider keys, queries;
    int causal;
    int64_t window;       /* most keys of a query */
    const int32_t *first; /* the key at which the first query stands; NULL: 0 */

    explicit scores(const ro_call *call, const void *place = nullptr)
        : keys(width_of(call)), queries(call->input[0].dim[call->input[0].ndim - 2]),
          causal(place || call->attr[RO_MASKED_CAUSAL] != 0),
          window(call->attr[place ? RO_PLACED_WINDOW : RO_MASKED_WINDOW]),
          first(static_cast<const int32_t *>(place)) {}
    RO_DEVICE int64_t place_of(int64_t row) const {
        return queries.remainder(row) + (first ? *first : 0);
    }
    RO_DEVICE bool admits(int64_t row, int64_t key) const {
        const int64_t back = causal ? place_of(row) - key : 0;
        return back >= 0 && (window == 0 || back < window);
    }
};

/* Serves attn_exp_at, too. */
static ro_status attn_exp(ro_cuda *d, const ro_call *call, const void *const *in,
                          const values &out) {
    const float *s = f32(in[0]), *mc = f32(in[1]);
    const scores view(call, ro_is_placed(call) ? in[2] : nullptr);
    const int64_t blocks = ceil_div(view.keys.divisor, RO_ATTN_BLOCK);
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = view.keys.quotient(i), key = i - row * view.keys.divisor;
        const float most = mc[row * blocks + key / RO_ATTN_BLOCK];
        operands o = {};
        o.a = s, o.p = ap_exact((real)most);
        if (!view.admits(row, key) || is_minus_infinity(most))
            return ap_exact(0);
        return attn_exp_of(o, i, how());
    });
}
RO_CUDA_FREE(attn_exp, attn_exp)
RO_CUDA_FREE(attn_exp_at, attn_exp)

static ro_status attn_prob(ro_cuda *d, const ro_call *call, const void *const *in,
                           const values &out) {
    const float *s = f32(in[0]), *m = f32(in[1]), *l = f32(in[2]);
    const scores view(call);
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = view.keys.quotient(i), key = i - row * view.keys.divisor;
        operands o = {};
        o.a = s, o.p = at(m, row), o.q = inverse(at(l, row));
        if (!view.admits(row, key) || is_minus_infinity(m[row]))
            return ap_exact(0);
        return softmax_of(o, i, how());
    });
}
RO_CUDA_FREE(attn_prob, attn_prob)

static ro_status attn_dscore(ro_cuda *d, const ro_call *call, const void *const *in,
                             const values &out) {
    const float *p = f32(in[0]), *dp = f32(in[1]), *delta = f32(in[2]);
    const scores view(call);
    return elements(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = view.keys.quotient(i), key = i - row * view.keys.divisor;
        operands o = {};
        o.a = p, o.b = dp, o.p = at(delta, row);
        if (!view.admits(row, key))
            return ap_exact(0);
        return softmax_grad_of(o, i, how());
    });
}
RO_CUDA_FREE(attn_dscore, attn_dscore)

/* ---- updates of parameters ---- */

/* Numbers that all elements of a step share, in device memory; NULL stands for 0. */
struct shared_numbers {
    const float *p, *q, *r, *s;
};

template <formula *f>
static ro_status update(ro_cuda *d, const ro_call *call, const values &out, const operands &given,
                        const shared_numbers &n) {
    return elements(d, call, out, [=] __device__(int64_t i) {
        operands o = given;
        o.p = n.p ? at(n.p, 0) : o.p;
        o.q = n.q ? at(n.q, 0) : o.q;
        o.r = n.r ? ap_negative(at(n.r, 0)) : o.r;
        o.s = n.s ? ap_negative(at(n.s, 0)) : o.s;
        return f(o, i, how());
    });
}

static operands inputs(const void *const *in, int count) {
    operands o = {};
    o.a = f32(in[0]), o.b = f32(in[1]);
    o.c = count > 2 ? f32(in[2]) : nullptr;
    return o;
}

template <formula *f>
static ro_status moment(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    operands o = inputs(in, 2);
    o.q = attr_of(call, RO_MOMENT_BETA), o.r = ap_sub(ap_exact(1), o.q);
    return update<f>(d, call, out, o, {f32(in[2]), nullptr, nullptr, nullptr});
}
RO_CUDA_FREE(adamw_m, moment<adamw_m_of>)
RO_CUDA_FREE(adamw_v, moment<adamw_v_of>)

static ro_status adamw_w(ro_cuda *d, const ro_call *call, const void *const *in,
                         const values &out) {
    operands o = inputs(in, 3);
    o.s = attr_of(call, RO_ADAMW_W_EPS), o.t = attr_of(call, RO_ADAMW_W_DECAY);
    return update<adamw_w_of>(d, call, out, o, {f32(in[3]), f32(in[4]), f32(in[5]), nullptr});
}
RO_CUDA_FREE(adamw_w, adamw_w)

static ro_status sgd_w(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    return update<sgd_w_of>(d, call, out, inputs(in, 2), {nullptr, nullptr, nullptr, f32(in[2])});
}
RO_CUDA_FREE(sgd_w, sgd_w)

template <formula *f, bool nesterov>
static ro_status sgd(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    operands o = inputs(in, 3);
    o.q = attr_of(call, RO_SGD_MOMENTUM), o.r = attr_of(call, RO_SGD_DECAY);
    return update<f>(d, call, out, o,
                     {f32(in[3]), nullptr, nullptr, nesterov ? f32(in[4]) : nullptr});
}
RO_CUDA_FREE(sgd_m, sgd<sgd_m_of, false>)
RO_CUDA_FREE(sgd_nesterov, sgd<sgd_nesterov_of, true>)

/* ---- rotary positions: cosines and sines are those of SPEC 13; only the turn is free ---- */

static ro_status rope(ro_cuda *d, const ro_call *call, const void *const *in, const values &out) {
    const ro_rotation v = ro_rotation_of(call);
    const ro_divider width(2 * v.half), positions(v.positions), shared(v.apart);
    const bool neighbours = call->attr[RO_ROPE_PAIRS] != 0, lines = v.lines > 1;
    const bool back = call->attr[RO_ROPE_INVERSE] != 0;
    const int64_t half = v.half, apart = neighbours ? 1 : half;
    const float *x = f32(in[0]);
    const int32_t *position = static_cast<const int32_t *>(in[1]);
    const uint32_t *words = static_cast<const uint32_t *>(in[2]);
    return elements(d, call, out, [=] __device__(int64_t e) {
        const int64_t row = width.quotient(e), j = e - row * width.divisor;
        const bool second = neighbours ? j & 1 : j >= half;
        const int64_t i = neighbours ? j / 2 : second ? j - half : j;
        const int64_t line = lines ? shared.quotient(row) * positions.divisor : 0;
        const uint64_t f = ro_rope_words(words[2 * i], words[2 * i + 1]);
        const uint32_t angle = ro_rope_turn(f, position[line + positions.remainder(row)]);
        const float sine = ro_sin_turn(angle);
        const approx other = at(x, second ? e - apart : e + apart);
        const approx turned = ap_mul(other, ap_exact((real)(back ? -sine : sine)));
        return ap_mul_add(at(x, e), ap_exact((real)ro_cos_turn(angle)),
                          second ? turned : ap_negative(turned), how());
    });
}
RO_CUDA_FREE(rope, rope)

} // namespace FREE_SPACE

#endif
