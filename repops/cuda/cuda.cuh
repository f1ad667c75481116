/* Shared by the files of this folder. They compile as CUDA, and as C++ against tests/simt, where
 * every kernel runs without a GPU: launches go through RO_LAUNCH, shared memory through RO_SMEM,
 * inline PTX through ptx.cuh.
 *
 * The bits are SPEC.md's: math.h and written __fmaf_rn; the compiler contracts nothing
 * (-fmad=false) and neither libdevice nor an approximation is used (tests/lint/ptx.sh). */
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
    int shared_memory;  /* most bytes of a block */
    int shared_of_all;  /* of a multiprocessor, for all its blocks */
    int shared_reserve; /* that the system takes of it for each block */
    bool reads_pageable;
    bool has_wgmma; /* and this library has code for it */
    cudaStream_t stream;
    bool own_stream;
    cudaMemPool_t pool; /* nullptr: memory is the caller's, by these */
    void *(*lend)(void *user, size_t size, void *stream);
    void (*give_back)(void *user, void *block, void *stream);
    void *user;
    /* Kernels that have been allowed what the device has: ro_cuda_allow. */
    enum { ALLOWED_MOST = 256 };
    const void *allowed[ALLOWED_MOST];
    int allowed_count;
    ro_guard guard; /* size 0: nothing is checked */
    bool plain;     /* as ro_ctx_plain says */
};

/* Runs one operator. The output has elements. */
typedef ro_status ro_cuda_operator(ro_cuda *d, const ro_call *call, const void *const *in,
                                   void *out);

/* Below a function: it runs operator `name`, by its name in operators.def. device.cu has a row of
 * every operator: without one the library does not link. */
#define RO_CUDA_KERNEL(name, ...)                                                                  \
    extern ro_cuda_operator *const ro_cuda_kernel_##name;                                          \
    ro_cuda_operator *const ro_cuda_kernel_##name = __VA_ARGS__;

/* ---- errors and memory, device.cu ---- */

ro_status ro_cuda_fail(ro_cuda *d, ro_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* RO_OK, or the sentence for an error of the runtime while doing `what`. */
ro_status ro_cuda_check(ro_cuda *d, cudaError_t error, const char *what);
/* After launches. */
ro_status ro_cuda_launched(ro_cuda *d, const char *what);
/* Temporary memory: freed in order with the work that uses it. */
ro_status ro_cuda_alloc(ro_cuda *d, size_t size, void **out);
void ro_cuda_free(ro_cuda *d, void *block);

/* Allows a kernel all the shared memory that the device has for a block, and gives it what a
 * multiprocessor has of it, so that as many blocks fit as were planned: otherwise the driver
 * decides how much is cache. Never less than all: contexts of other threads launch the same kernel,
 * and what is allowed is the device's. Once for each kernel in a context: two calls of
 * the runtime before a launch would take as long as it. No kernel has shared memory but what
 * launches ask for. */
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

/* ---- functions that are no operators ---- */

ro_status ro_cuda_sgemm(ro_cuda *d, const ro_products *products);
ro_status ro_cuda_linear(ro_cuda *d, const ro_linear_job *job);
size_t ro_fixed_packed_size(ro_cuda *d, const ro_linear_layer *layer, ro_packed_operand side);
ro_status ro_fixed_linear_pack(ro_cuda *d, const ro_pack_job *job);
ro_status ro_fixed_linear_of_packed(ro_cuda *d, const ro_linear_job *job,
                                    const ro_linear_operands *in);
/* Whether this library has code for a card with wgmma of that compute capability
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

/* ---- small things ---- */

static inline int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* An address that the compiler must not split into several with offsets of their own: one with
 * constants takes fewer registers and instructions. */
template <class T> RO_DEVICE T *ro_as_it_is(T *at) {
#if !defined(RO_SIMT)
    asm volatile("" : "+l"(at));
#endif
    return at;
}

/* A grid of so many blocks, or, where devices offer none as large, an empty one, which the launch
 * refuses. */
static inline dim3 ro_grid(int64_t blocks, unsigned down = 1) {
    return dim3(blocks <= INT32_MAX ? (unsigned)blocks : 0, down);
}

/* Division of numbers from 0 to 2^41 - 1 by a constant that the host knows, 1 to 2^41: by a
 * multiplication (Granlund & Montgomery, 1994), of 32 bits where both fit 31. A division of 64 bits
 * would be a call, and calls keep registers in memory. */
struct ro_divider {
    uint32_t multiplier, shift;
    uint64_t wide; /* multiplier for 41 bits */
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
    /* Where both are known to fit 31 bits. */
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

/* ---- one thread, one element ---- */

enum { MAP_THREADS = 256, MAP_EACH = 4 };

/* All elements of a thread are computed before the first is stored: loads overlap, and the output
 * may be an input that f(i) reads at i only. */
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

/* out[i] = f(i) for i < count. `each`: elements of a thread; 1 where f has loops or divisions of
 * its own, which keep registers for as many calls. */
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
