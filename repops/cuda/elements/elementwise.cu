/* Elementwise operators, SPEC.md section 6. */
#include "repops/cuda/elements/functions.cuh"
#include "repops/op_elementwise.h"
#include "repops/op_function.h"

/* ---- functions of one element ---- */

template <class F>
ro_status function(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]);
    return map<float>(d, call, out, [=] __device__(int64_t i) { return F::of(x[i]); });
}
RO_CUDA_KERNEL(exp, function<exp_of>)
RO_CUDA_KERNEL(log, function<log_of>)
RO_CUDA_KERNEL(sqrt, function<sqrt_of>)
RO_CUDA_KERNEL(rsqrt, function<rsqrt_of>)
RO_CUDA_KERNEL(tanh, function<tanh_of>)
RO_CUDA_KERNEL(erf, function<erf_of>)
RO_CUDA_KERNEL(sigmoid, function<sigmoid_of>)
RO_CUDA_KERNEL(silu, function<silu_of>)
RO_CUDA_KERNEL(gelu, function<gelu_of>)
RO_CUDA_KERNEL(gelu_erf, function<gelu_erf_of>)
RO_CUDA_KERNEL(relu, function<relu_of>)
RO_CUDA_KERNEL(abs, function<abs_of>)

template <class F>
ro_status slope(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]), *dy = static_cast<const float *>(in[1]);
    return map<float>(d, call, out,
                      [=] __device__(int64_t i) { return ro_canon(dy[i] * F::of(x[i])); });
}
RO_CUDA_KERNEL(gelu_grad, slope<gelu_slope>)
RO_CUDA_KERNEL(tanh_grad, slope<tanh_slope>)
RO_CUDA_KERNEL(erf_grad, slope<erf_slope>)
RO_CUDA_KERNEL(sigmoid_grad, slope<sigmoid_slope>)
RO_CUDA_KERNEL(silu_grad, slope<silu_slope>)
RO_CUDA_KERNEL(gelu_erf_grad, slope<gelu_erf_slope>)

/* A gradient that passes keeps its bits even if it is a NaN. dy is read whatever x is, at the same
 * time: memory fetches its sectors in any case. */
static ro_status relu_grad(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]);
    const uint32_t *dy = static_cast<const uint32_t *>(in[1]);
    return map<uint32_t>(d, call, out, [=] __device__(int64_t i) {
        uint32_t kept = dy[i];
        asm volatile("" : "+r"(kept)); /* otherwise the compiler would read it later */
        return x[i] > 0 ? kept : x[i] != x[i] ? RO_QNAN_BITS : 0;
    });
}
RO_CUDA_KERNEL(relu_grad, relu_grad)

static ro_status leaky_relu(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]), slope = attr_f(call, RO_LEAKY_SLOPE);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_canon(x[i] * ro_if_ge(0.0f, x[i], slope, 1.0f));
    });
}
RO_CUDA_KERNEL(leaky_relu, leaky_relu)

static ro_status leaky_relu_grad(ro_cuda *d, const ro_call *call, const void *const *in,
                                 void *out) {
    const float *x = static_cast<const float *>(in[0]), *dy = static_cast<const float *>(in[1]);
    const float slope = attr_f(call, RO_LEAKY_SLOPE);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_unless_nan(x[i], ro_canon(dy[i] * ro_if_ge(0.0f, x[i], slope, 1.0f)));
    });
}
RO_CUDA_KERNEL(leaky_relu_grad, leaky_relu_grad)

static ro_status shrink(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]);
    const float lambd = attr_f(call, RO_SOFT_SHRINK_LAMBD);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        const float v = x[i], up = v >= -lambd ? v * 0.0f : v + lambd;
        return ro_canon(lambd >= v ? up : v - lambd);
    });
}
RO_CUDA_KERNEL(soft_shrink, shrink)

static ro_status soft_shrink_grad(ro_cuda *d, const ro_call *call, const void *const *in,
                                  void *out) {
    const float *x = static_cast<const float *>(in[0]);
    const float *dy = static_cast<const float *>(in[1]);
    const float lambd = attr_f(call, RO_SOFT_SHRINK_GRAD_LAMBD);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return lambd >= x[i] && x[i] >= -lambd ? 0.0f : ro_canon(dy[i]);
    });
}
RO_CUDA_KERNEL(soft_shrink_grad, soft_shrink_grad)

/* ---- arithmetic; b may be shorter, and repeats ---- */

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
RO_CUDA_KERNEL(max, arithmetic<larger_of>)
RO_CUDA_KERNEL(min, arithmetic<smaller_of>)
RO_CUDA_KERNEL(add, arithmetic<add_of>)
RO_CUDA_KERNEL(sub, arithmetic<sub_of>)
RO_CUDA_KERNEL(mul, arithmetic<mul_of>)
RO_CUDA_KERNEL(div, arithmetic<div_of>)

static ro_status scale(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]), factor = attr_f(call, RO_SCALE_FACTOR);
    return map<float>(d, call, out, [=] __device__(int64_t i) { return ro_canon(x[i] * factor); });
}
RO_CUDA_KERNEL(scale, scale)

static ro_status div_const(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]),
                divisor = attr_f(call, RO_DIV_CONST_DIVISOR);
    return map<float>(d, call, out, [=] __device__(int64_t i) { return ro_canon(x[i] / divisor); });
}
RO_CUDA_KERNEL(div_const, div_const)

/* ---- comparisons and choices ---- */

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
RO_CUDA_KERNEL(compare, compare)

/* Unsigned numbers wrap. */
static ro_status iadd(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const uint32_t *a = static_cast<const uint32_t *>(in[0]);
    const uint32_t *b = static_cast<const uint32_t *>(in[1]);
    const ro_divider period(in_numel(call, 1));
    return map<uint32_t>(d, call, out,
                         [=] __device__(int64_t i) { return a[i] + b[period.remainder(i)]; });
}
RO_CUDA_KERNEL(iadd, iadd)

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
RO_CUDA_KERNEL(where, where)
