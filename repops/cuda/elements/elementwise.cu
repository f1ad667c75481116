/* Elementwise operators, SPEC.md section 6. */
#include "repops/cuda/elements/functions.cuh"
#include "repops/op_elementwise.h"

/* ---- functions of one element ---- */

template <class F>
ro_status function(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]);
    return map<float>(d, call, out, [=] __device__(int64_t i) { return F::of(x[i]); });
}

template <class F>
ro_status slope(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]), *dy = static_cast<const float *>(in[1]);
    return map<float>(d, call, out,
                      [=] __device__(int64_t i) { return ro_canon(dy[i] * F::of(x[i])); });
}

/* dy keeps its bits even if it is a NaN. It is read whatever x is, as its sectors are read in any
 * case: at once, not when x is there. */
static ro_status relu_grad(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]);
    const uint32_t *dy = static_cast<const uint32_t *>(in[1]);
    return map<uint32_t>(d, call, out, [=] __device__(int64_t i) {
        uint32_t kept = dy[i];
        asm volatile("" : "+r"(kept)); /* or the compiler would put it off */
        return x[i] > 0 ? kept : x[i] != x[i] ? RO_QNAN_BITS : 0;
    });
}

static ro_status leaky_relu(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]), slope = attr_f(call, RO_LEAKY_SLOPE);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_canon(x[i] * ro_if_ge(0.0f, x[i], slope, 1.0f));
    });
}

static ro_status leaky_relu_grad(ro_cuda *d, const ro_call *call, const void *const *in,
                                 void *out) {
    const float *x = static_cast<const float *>(in[0]), *dy = static_cast<const float *>(in[1]);
    const float slope = attr_f(call, RO_LEAKY_SLOPE);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_unless_nan(x[i], ro_canon(dy[i] * ro_if_ge(0.0f, x[i], slope, 1.0f)));
    });
}

/* ---- arithmetic; b repeats ---- */

struct add_of {
    static RO_DEVICE float of(float a, float b) {
        return a + b;
    }
};
struct sub_of {
    static RO_DEVICE float of(float a, float b) {
        return a - b;
    }
};
struct mul_of {
    static RO_DEVICE float of(float a, float b) {
        return a * b;
    }
};
struct div_of {
    static RO_DEVICE float of(float a, float b) {
        return a / b;
    }
};

struct larger_of {
    static RO_DEVICE float of(float a, float b) {
        return ro_max(a, b);
    }
};
struct smaller_of {
    static RO_DEVICE float of(float a, float b) {
        return ro_min(a, b);
    }
};

template <class F>
ro_status arithmetic(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *a = static_cast<const float *>(in[0]), *b = static_cast<const float *>(in[1]);
    const ro_divider period(in_numel(call, 1));
    if (in_numel(call, 0) == in_numel(call, 1))
        return map<float>(d, call, out,
                          [=] __device__(int64_t i) { return ro_canon(F::of(a[i], b[i])); });
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_canon(F::of(a[i], b[period.remainder(i)]));
    });
}

static ro_status scale(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]), factor = attr_f(call, RO_SCALE_FACTOR);
    return map<float>(d, call, out, [=] __device__(int64_t i) { return ro_canon(x[i] * factor); });
}

static ro_status div_const(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]),
                divisor = attr_f(call, RO_DIV_CONST_DIVISOR);
    return map<float>(d, call, out, [=] __device__(int64_t i) { return ro_canon(x[i] / divisor); });
}

/* ---- choices ---- */

template <class T>
static ro_status compare_as(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const T *a = static_cast<const T *>(in[0]), *b = static_cast<const T *>(in[1]);
    const ro_divider period(in_numel(call, 1));
    const int64_t kind = call->attr[RO_COMPARE_KIND];
    return map<int32_t>(d, call, out, [=] __device__(int64_t i) {
        const T x = a[i], y = b[period.remainder(i)];
        return (int32_t)RO_HOLDS(kind, x, y);
    });
}

static ro_status compare(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return call->input[0].dtype == RO_F32 ? compare_as<float>(d, call, in, out)
                                          : compare_as<int32_t>(d, call, in, out);
}

/* Unsigned numbers wrap. */
static ro_status iadd(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const uint32_t *a = static_cast<const uint32_t *>(in[0]);
    const uint32_t *b = static_cast<const uint32_t *>(in[1]);
    const ro_divider period(in_numel(call, 1));
    return map<uint32_t>(d, call, out,
                         [=] __device__(int64_t i) { return a[i] + b[period.remainder(i)]; });
}

template <class T>
static ro_status where_as(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int32_t *c = static_cast<const int32_t *>(in[0]);
    const T *a = static_cast<const T *>(in[1]), *b = static_cast<const T *>(in[2]);
    return map<T>(d, call, out, [=] __device__(int64_t i) { return c[i] ? a[i] : b[i]; });
}

static ro_status where(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    switch (ro_dtype_size(call->output.dtype)) {
    case 4: return where_as<uint32_t>(d, call, in, out);
    case 2: return where_as<uint16_t>(d, call, in, out);
    default: return where_as<uint8_t>(d, call, in, out);
    }
}

void ro_cuda_add_elementwise(ro_cuda_operator **table) {
    table[RO_OP_EXP] = function<exp_of>;
    table[RO_OP_LOG] = function<log_of>;
    table[RO_OP_SQRT] = function<sqrt_of>;
    table[RO_OP_RSQRT] = function<rsqrt_of>;
    table[RO_OP_TANH] = function<tanh_of>;
    table[RO_OP_ERF] = function<erf_of>;
    table[RO_OP_SIGMOID] = function<sigmoid_of>;
    table[RO_OP_SILU] = function<silu_of>;
    table[RO_OP_GELU] = function<gelu_of>;
    table[RO_OP_GELU_ERF] = function<gelu_erf_of>;
    table[RO_OP_RELU] = function<relu_of>;
    table[RO_OP_GELU_GRAD] = slope<gelu_slope>;
    table[RO_OP_TANH_GRAD] = slope<tanh_slope>;
    table[RO_OP_ERF_GRAD] = slope<erf_slope>;
    table[RO_OP_SIGMOID_GRAD] = slope<sigmoid_slope>;
    table[RO_OP_SILU_GRAD] = slope<silu_slope>;
    table[RO_OP_GELU_ERF_GRAD] = slope<gelu_erf_slope>;
    table[RO_OP_RELU_GRAD] = relu_grad;
    table[RO_OP_MAX] = arithmetic<larger_of>;
    table[RO_OP_MIN] = arithmetic<smaller_of>;
    table[RO_OP_ABS] = function<abs_of>;
    table[RO_OP_COMPARE] = compare;
    table[RO_OP_WHERE] = where;
    table[RO_OP_IADD] = iadd;
    table[RO_OP_LEAKY_RELU] = leaky_relu;
    table[RO_OP_LEAKY_RELU_GRAD] = leaky_relu_grad;
    table[RO_OP_ADD] = arithmetic<add_of>;
    table[RO_OP_SUB] = arithmetic<sub_of>;
    table[RO_OP_MUL] = arithmetic<mul_of>;
    table[RO_OP_DIV] = arithmetic<div_of>;
    table[RO_OP_SCALE] = scale;
    table[RO_OP_DIV_CONST] = div_const;
}
