/* Shared by the files of this folder. They compile as CUDA, and as C++ against tests/simt, where
 * every kernel runs without a GPU: launches go through RO_LAUNCH, shared memory through RO_SMEM,
 * inline PTX through ptx.cuh.
 *
 * SPEC.md's bits come from math.h and explicit __fmaf_rn; the compiler contracts nothing
 * (-fmad=false), and neither libdevice nor approximations are used (tests/lint/ptx.sh). */
#ifndef REPOPS_CUDA_CUH
#define REPOPS_CUDA_CUH

#include <cuda_runtime.h>

#include "repops/src/call.h"
#include "repops/src/device.h"
#include "repops/src/math.h"

#if defined(RO_SIMT)
#define RO_LAUNCH(kernel, grid, block, smem, stream, ...)                                          \
    simt::launch(grid, block, smem, stream, simt::name_of(kernel), [=] { kernel(__VA_ARGS__); })
#define RO_SMEM(type, name) type *name = static_cast<type *>(simt::shared_memory())
#else
#define RO_LAUNCH(kernel, grid, block, smem, stream, ...)                                          \
    kernel<<<grid, block, smem, stream>>>(__VA_ARGS__)
#define RO_SMEM(type, name)                                                                        \
    extern __shared__ __align__(16) unsigned char ro_smem[];                                       \
    type *name = reinterpret_cast<type *>(ro_smem)
#endif

#define RO_DEVICE    __device__ __forceinline__
#define RO_ALL_LANES 0xffffffffu

struct ro_cuda : ro_device {
    int index;
    int multiprocessors;
    int shared_memory;  /* most bytes of one block */
    int shared_of_all;  /* bytes of a multiprocessor, for all its blocks */
    int shared_reserve; /* bytes of it that the system reserves for each block */
    bool reads_pageable;
    bool has_wgmma; /* the device has wgmma, and this library code for it */
    cudaStream_t stream;
    bool own_stream;
    cudaMemPool_t pool; /* nullptr: the caller's memory is used, by these functions */
    void *(*lend)(void *user, size_t size, void *stream);
    void (*give_back)(void *user, void *block, void *stream);
    void *user;
    /* Kernels for which ro_cuda_allow has been called. */
    enum { ALLOWED_MOST = 256 };
    const void *allowed[ALLOWED_MOST];
    int allowed_count;
    ro_guard guard; /* size 0: nothing is checked */
    bool plain;     /* as ro_ctx_plain sets it */
};

/* Runs one operator, whose output is not empty. */
typedef ro_status ro_cuda_operator(ro_cuda *d, const ro_call *call, const void *const *in,
                                   void *out);

/* Stands below a function that runs operator `name`, which is its name in operators.def. device.cu
 * needs an entry of every operator, or linking fails. */
#define RO_CUDA_KERNEL(name, ...)                                                                  \
    extern ro_cuda_operator *const ro_cuda_kernel_##name;                                          \
    ro_cuda_operator *const ro_cuda_kernel_##name = __VA_ARGS__;

/* ---- errors and memory, device.cu ---- */

ro_status ro_cuda_fail(ro_cuda *d, ro_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns RO_OK, or fails with a sentence for an error of the runtime that occurred in `what`. */
ro_status ro_cuda_check(ro_cuda *d, cudaError_t error, const char *what);
/* Checks for errors after launches. */
ro_status ro_cuda_launched(ro_cuda *d, const char *what);
/* Allocate and free temporary memory, in stream order. */
ro_status ro_cuda_alloc(ro_cuda *d, size_t size, void **out);
void ro_cuda_free(ro_cuda *d, void *block);

/* Allows a kernel all the shared memory that the device has for a block, and sets the carveout so
 * that as many blocks fit as were planned; otherwise the driver decides how much becomes cache. It
 * is never less than all, because contexts of other threads launch the same kernel, and the limit
 * holds for the whole device. A context does this once per kernel, as two runtime calls take as
 * long as a launch. Kernels have only the dynamic shared memory that launches ask for. */
template <class K> static ro_status ro_cuda_allow(ro_cuda *d, K *kernel, const char *what) {
    const cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize;
    const cudaFuncAttribute carveout = cudaFuncAttributePreferredSharedMemoryCarveout;
    const void *name = reinterpret_cast<const void *>(kernel);
    for (int i = 0; i < d->allowed_count; i++)
        if (d->allowed[i] == name)
            return RO_OK;
    ro_status status = ro_cuda_check(d, cudaFuncSetAttribute(kernel, most, d->shared_memory), what);
    if (status == RO_OK)
        status = ro_cuda_check(d, cudaFuncSetAttribute(kernel, carveout, 100), what);
    if (status == RO_OK && d->allowed_count < ro_cuda::ALLOWED_MOST)
        d->allowed[d->allowed_count++] = name;
    return status;
}

/* ---- functions other than operators ---- */

ro_status ro_cuda_sgemm(ro_cuda *d, const ro_products *products);
ro_status ro_cuda_linear(ro_cuda *d, const ro_linear_job *job);
size_t ro_fixed_packed_size(ro_cuda *d, const ro_linear_layer *layer, ro_packed_operand side);
ro_status ro_fixed_linear_pack(ro_cuda *d, const ro_pack_job *job);
ro_status ro_fixed_linear_of_packed(ro_cuda *d, const ro_linear_job *job,
                                    const ro_linear_operands *in);
/* Returns whether this library has code for a card with wgmma of that compute capability
 * (gemm/wgmma.cu). */
bool ro_wgmma_built(int major, int minor);
ro_status ro_cuda_attention_forward(ro_cuda *d, const ro_attention_job *job);
ro_status ro_cuda_attention_backward(ro_cuda *d, const ro_attention_grad_job *job);
ro_status ro_cuda_cross_entropy(ro_cuda *d, const ro_cross_entropy_job *job);
ro_status ro_cuda_adamw(ro_cuda *d, int64_t count, const ro_adamw_job *job);
ro_status ro_cuda_adamw_bf16(ro_cuda *d, const ro_adamw_bf16_job *job);
ro_status ro_cuda_sgd(ro_cuda *d, const ro_sgd_job *job);
ro_status ro_cuda_layer_norm(ro_cuda *d, const ro_row_job *job);
ro_status ro_cuda_layer_norm_backward(ro_cuda *d, const ro_row_grad_job *job);
ro_status ro_cuda_softmax(ro_cuda *d, const ro_row_job *job);
ro_status ro_cuda_softmax_backward(ro_cuda *d, const ro_row_grad_job *job);
ro_status ro_cuda_log_softmax(ro_cuda *d, const ro_row_job *job);
ro_status ro_cuda_log_softmax_backward(ro_cuda *d, const ro_row_grad_job *job);
ro_status ro_cuda_embedding_backward(ro_cuda *d, const ro_embedding_job *job);
ro_status ro_cuda_rotary(ro_cuda *d, const ro_rotary_job *job);
ro_status ro_cuda_tree_roots(ro_cuda *d, int64_t count, const void *const *data, const size_t *size,
                             uint8_t *root);
/* Free operators (free/free.cuh). */
ro_status ro_cuda_free_f32(ro_cuda *d, const ro_free_values *values);
ro_status ro_cuda_free_f64(ro_cuda *d, const ro_free_values *values);

/* ---- helpers ---- */

static inline int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Keeps the compiler from splitting an address into several with offsets of their own: one address
 * with constant offsets takes fewer registers and instructions. */
template <class T> RO_DEVICE T *ro_as_it_is(T *at) {
#if !defined(RO_SIMT)
    asm volatile("" : "+l"(at));
#endif
    return at;
}

/* Returns a grid of so many blocks, or an empty one, which the launch refuses, if no device offers
 * a grid as large. */
static inline dim3 ro_grid(int64_t blocks, unsigned down = 1) {
    return dim3(blocks <= INT32_MAX ? (unsigned)blocks : 0, down);
}

/* Divides numbers from 0 to 2^41 - 1 by a constant that the host knows, 1 to 2^41, by a
 * multiplication (Granlund & Montgomery, 1994): in 32 bits if both fit 31. A 64-bit division would
 * be a call, around which registers are kept in memory. */
struct ro_divider {
    uint32_t multiplier, shift;
    uint64_t wide; /* multiplier for numbers of 41 bits */
    int64_t divisor;

    __host__ explicit ro_divider(int64_t d)
        : multiplier(0), shift(0), wide(0), divisor(d > 0 ? d : 1) {
        const uint64_t by = (uint64_t)divisor;
        while ((UINT64_C(1) << shift) < by)
            shift++;
        wide = (uint64_t)(((unsigned __int128)1 << (41 + shift)) / by) + 1;
        if (divisor <= INT32_MAX)
            multiplier = (uint32_t)((UINT64_C(1) << 32) * ((UINT64_C(1) << shift) - by) / by + 1);
    }
    RO_DEVICE int64_t quotient(int64_t n) const {
        if (n > INT32_MAX || divisor > INT32_MAX)
            return (int64_t)(__umul64hi((uint64_t)n << 23, wide) >> shift);
        return short_quotient((int)n);
    }
    /* For numbers that are known to fit 31 bits. */
    RO_DEVICE int short_quotient(int n) const {
        const uint32_t x = (uint32_t)n;
        return (int)((__umulhi(x, multiplier) + x) >> shift);
    }
    RO_DEVICE int64_t remainder(int64_t n) const {
        return n - quotient(n) * divisor;
    }
};

static inline float attr_f(const ro_call *call, int i) {
    return ro_from_bits((uint32_t)call->attr[i]);
}

static inline int64_t in_numel(const ro_call *call, int i) {
    return ro_shape_numel(&call->input[i]);
}

/* ---- maps: one thread per element ---- */

enum { MAP_THREADS = 256, MAP_EACH = 4 };

/* A thread computes all its elements before it stores the first: loads overlap, and the output may
 * be an input, which f(i) reads at i only. */
template <class T, int each, class F>
__global__ void __launch_bounds__(MAP_THREADS) map_kernel(T *out, int64_t count, F f) {
    const int64_t first = (int64_t)blockIdx.x * (MAP_THREADS * each) + threadIdx.x;
    T value[each];
#pragma unroll
    for (int u = 0; u < each; u++)
        if (first + u * MAP_THREADS < count)
            value[u] = f(first + u * MAP_THREADS);
#pragma unroll
    for (int u = 0; u < each; u++)
        if (first + u * MAP_THREADS < count)
            out[first + u * MAP_THREADS] = value[u];
}

/* out[i] = f(i) for i < count. `each`: elements of a thread; use 1 if f has loops or divisions,
 * which need registers for each element. */
template <class T, int each = MAP_EACH, class F>
static ro_status map(ro_cuda *d, void *out, int64_t count, const F &f, const char *what) {
    const int64_t blocks = ceil_div(count, MAP_THREADS * each);
    if (count == 0)
        return RO_OK;
    RO_LAUNCH((map_kernel<T, each, F>), ro_grid(blocks), dim3(MAP_THREADS), 0, d->stream,
              static_cast<T *>(out), count, f);
    return ro_cuda_launched(d, what);
}

/* out[i] = f(i) for all elements of an operator's output. */
template <class T, int each = MAP_EACH, class F>
static ro_status map(ro_cuda *d, const ro_call *call, void *out, const F &f) {
    return map<T, each>(d, out, ro_shape_numel(&call->output), f, ro_op_describe(call->op)->name);
}

#endif
