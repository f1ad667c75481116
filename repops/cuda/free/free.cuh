/* Free operators on a device, SPEC.md section 14: values, and bounds of their errors, in an order
 * that suits the device. free.cu is compiled for binary64 and for binary32, like the files of
 * repops/free, whose formulas and bounds it uses. Every fused operation is written out: the
 * compiler contracts nothing here either.
 *
 * Sums of one thread have two partial sums; those of a warp are added as a tree; long products are
 * cut into pieces of k (products.cuh). Polynomials are evaluated by Horner's scheme. */
#ifndef REPOPS_CUDA_FREE_CUH
#define REPOPS_CUDA_FREE_CUH

#include "repops/cuda/cuda.cuh"
#include "repops/free/approx.h"

#if defined(RO_IS_f32)
#define FREE_SPACE      free_f32
#define FREE_NAME(name) name##_f32
#else
#define FREE_SPACE      free_f64
#define FREE_NAME(name) name##_f64
#endif

/* The namespace depends on the type, so that the two objects share no names. */
namespace FREE_SPACE {

/* bound: NULL if bounds are not wanted. */
struct values {
    real *value;
    double *bound;

    RO_DEVICE void store(int64_t i, approx a) const {
        value[i] = a.v;
        if (sizeof(real) == sizeof(double) && bound)
            bound[i] = free_bound(ap_error(a));
    }
};

typedef ro_status free_operator(ro_cuda *d, const ro_call *call, const void *const *in,
                                const values &out);

/* Stands below a function that runs operator `name`, which is its name in operators.def. free.cu
 * needs an entry of every operator that is FREE there, or it does not compile. */
#define RO_CUDA_FREE(name, ...) static free_operator *const free_operator_##name = __VA_ARGS__;

RO_DEVICE order how() {
    return order{1, 0};
}

static inline const float *f32(const void *p) {
    return static_cast<const float *>(p);
}

static inline approx attr_of(const ro_call *call, int i) {
    return ap_exact((real)attr_f(call, i));
}

/* Returns the last dimension of the first input. */
static inline int64_t width_of(const ro_call *call) {
    return call->input[0].dim[call->input[0].ndim - 1];
}

/* ---- one thread, one element ---- */

enum { FREE_THREADS = 256 };

template <class F>
__global__ void __launch_bounds__(FREE_THREADS, 1) elements_kernel(values out, int64_t count, F f) {
    const int64_t i = (int64_t)blockIdx.x * FREE_THREADS + threadIdx.x;
    if (i < count)
        out.store(i, f(i));
}

/* Sets element i of the output to f(i), an approx. */
template <class F>
static ro_status elements(ro_cuda *d, const ro_call *call, const values &out, const F &f) {
    const int64_t count = ro_shape_numel(&call->output);
    RO_LAUNCH((elements_kernel<F>), ro_grid(ceil_div(count, FREE_THREADS)), dim3(FREE_THREADS), 0,
              d->stream, out, count, f);
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}

/* ---- sums ---- */

/* A product a * b, whose error bound is 1 + excess times that of the other terms. */
struct product {
    real a, b, excess = 0;

    RO_DEVICE double size() const {
        return ap_size(a * b) * (1 + (double)excess);
    }
};

struct partial {
    real sum = 0;
    double size = 0; /* sum of the terms' magnitudes */

    RO_DEVICE void add(const product &t) {
        sum = free_mul_add(t.a, t.b, sum, 1);
        size += t.a == 0 || t.b == 0 ? 0 : t.size();
    }
    RO_DEVICE void add(const partial &p) {
        sum = sum + p.sum;
        size += p.size;
    }
    /* Returns the sum of n terms that have `roundings` each. */
    RO_DEVICE approx value(int64_t n, double roundings) const {
        return approx{sum, sum_error(n, roundings) * size};
    }
};

/* Returns the sum of the products term(k) for k < n. */
template <class F> RO_DEVICE partial sum_of(int64_t n, const F &term) {
    partial even, odd;
    int64_t k = 0;
#pragma unroll 2
    for (; k + 1 < n; k += 2) {
        const product t = term(k), u = term(k + 1);
        even.add(t);
        odd.add(u);
    }
    if (k < n)
        even.add(term(k));
    even.add(odd);
    return even;
}

} // namespace FREE_SPACE

#endif
