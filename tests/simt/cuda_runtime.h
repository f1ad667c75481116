/* The part of CUDA that repops/cuda uses, on a CPU: kernels are compiled as C++, so that all of
 * them run without a GPU. It simulates what programs may rely on, not a device:
 *
 * - threads of a block are fibers; blocks, warps and lanes run in a random order (SIMT_SEED);
 * - __syncthreads, __syncwarp, shuffles and votes need all threads they name, or the run ends;
 * - shared memory starts as NaN for each block, ends at a page that cannot be touched, and so does
 *   every allocation;
 * - a launch without blocks is an error, as on a device; one that no device takes, or with more
 *   than 48 KiB of shared memory that the kernel was not allowed, ends the run, and so do a kernel
 *   that is allowed less than before, between another thread's allowance and launch, and memory
 *   that is still there when its pool is destroyed (SIMT_FAULT=memory@N: the N-th allocation
 *   fails);
 * - a device's memory cannot be touched but by kernels, copies and fills; SIMT_DEVICES devices, and
 *   a launch must be on the calling thread's;
 * - an asynchronous copy leaves NaN where it goes until it lands, at a random point before the
 * wait;
 * - built with -fsanitize=thread, two accesses without a barrier between them are a race, whatever
 *   the order they ran in; with -fsanitize=alignment vectors must be aligned;
 * - SIMT_LAUNCHES names a file that gets a line for every launch in the program, with how often it
 *   was made: a kernel that no test runs is found there.
 */
#ifndef SIMT_CUDA_RUNTIME_H
#define SIMT_CUDA_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <functional>

#define RO_SIMT        1
#define CUDART_VERSION 13000

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

/* ---- types ---- */

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline float2 make_float2(float x, float y) {
    return float2{x, y};
}
static inline float4 make_float4(float x, float y, float z, float w) {
    return float4{x, y, z, w};
}
static inline int4 make_int4(int x, int y, int z, int w) {
    return int4{x, y, z, w};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return uint4{x, y, z, w};
}

/* ---- threads ---- */

struct simt_stream;
namespace simt {
uint3 thread_index();
uint3 block_index();
dim3 block_size();
dim3 grid_size();
void launch(dim3 grid, dim3 block, size_t shared, simt_stream *stream, const void *kernel,
            const std::function<void()> &body);
/* Registers every launch in the program by its type, whether it is executed or not: see
 * SIMT_LAUNCHES. */
long *known_launch(const char *name);
long launched(); /* number of launches so far */
template <class Body> struct launch_of {
    static long *known() {
        return known_launch(__PRETTY_FUNCTION__);
    }
    static inline long *const count = known();
};
template <class Body>
void launch(dim3 grid, dim3 block, size_t shared, simt_stream *stream, const void *kernel,
            const Body &body) {
    ++*launch_of<Body>::count;
    launch(grid, block, shared, stream, kernel, std::function<void()>(body));
}
/* Returns an address that identifies a kernel. */
template <class F> const void *name_of(F *kernel) {
    return reinterpret_cast<const void *>(kernel);
}
void *shared_memory();
void sync_block();
void sync_warp(unsigned mask);
/* Gives `value` to the warp; returns the value of lane `from`. */
uint64_t exchange(unsigned mask, uint64_t value, unsigned from);
unsigned ballot(unsigned mask, int predicate);
/* The matrix unit for all lanes of a warp, see ptx.cuh. */
void multiply_bytes(int (&c)[4], const uint4 &a, unsigned low, unsigned high);
int any_of_block(int predicate);
unsigned lane();
/* The calling thread's asynchronous copies. */
void copy_async(void *to, const void *from, size_t size, size_t from_size);
void commit_copies();
void wait_copies(int groups_left);
} // namespace simt

#define threadIdx (simt::thread_index())
#define blockIdx  (simt::block_index())
#define blockDim  (simt::block_size())
#define gridDim   (simt::grid_size())
#define warpSize  32

#define __syncthreads() simt::sync_block()
static inline int __syncthreads_or(int predicate) {
    return simt::any_of_block(predicate);
}
static inline void __syncwarp(unsigned mask = 0xffffffffu) {
    simt::sync_warp(mask);
}

template <class T> T simt_shuffle(unsigned mask, T value, unsigned from) {
    static_assert(sizeof(T) <= 8, "");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    word = simt::exchange(mask, word, from);
    memcpy(&value, &word, sizeof value);
    return value;
}
template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
    unsigned l = simt::lane();
    return simt_shuffle(mask, value, (l & ~(unsigned)(width - 1)) | ((unsigned)from & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    (void)width;
    return simt_shuffle(mask, value, simt::lane() ^ (unsigned)bits);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    unsigned l = simt::lane(), to = l + by;
    return simt_shuffle(mask, value, (to ^ l) & ~(unsigned)(width - 1) ? l : to);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    unsigned l = simt::lane(), at = l & (unsigned)(width - 1);
    return simt_shuffle(mask, value, at < by ? l : l - by);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return simt::ballot(mask, predicate);
}
static inline int __any_sync(unsigned mask, int predicate) {
    return simt::ballot(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate) {
    return simt::ballot(mask, predicate) == mask;
}

template <class T> T atomicAdd(T *to, T value) {
    static_assert(static_cast<T>(0.5) == 0, "no atomics on floats: their order would count");
    return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicMax(unsigned *to, unsigned value) {
    unsigned old = __atomic_load_n(to, __ATOMIC_RELAXED);
    if (value > old)
        __atomic_store_n(to, value, __ATOMIC_RELAXED);
    return old;
}
static inline void __threadfence() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ---- arithmetic ---- */

static inline float __fmaf_rn(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
static inline float __fadd_rn(float a, float b) {
    return a + b;
}
static inline float __fmul_rn(float a, float b) {
    return a * b;
}
static inline float __fdiv_rn(float a, float b) {
    return a / b;
}
static inline float __fsqrt_rn(float a) {
    return __builtin_sqrtf(a);
}
static inline float __uint_as_float(unsigned bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static inline unsigned __float_as_uint(float x) {
    unsigned bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static inline float __int_as_float(int bits) {
    return __uint_as_float((unsigned)bits);
}
static inline int __float_as_int(float x) {
    return (int)__float_as_uint(x);
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    by &= 31;
    return by ? high << by | low >> (32 - by) : high;
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    by &= 31;
    return by ? low >> by | high << (32 - by) : low;
}
static inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
static inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __ffs(int x) {
    return __builtin_ffs(x);
}
/* Selects bytes like PTX's prmt, without its sign mode. */
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const uint64_t both = (uint64_t)b << 32 | a;
    unsigned out = 0;
    for (int i = 0; i < 4; i++)
        out |= (unsigned)(both >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return out;
}
/* Returns c plus the products of four signed bytes. */
static inline int __dp4a(int a, int b, int c) {
    unsigned sum = (unsigned)c;
    for (int i = 0; i < 4; i++)
        sum += (unsigned)((int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i));
    return (int)sum;
}
template <class T> T __ldg(const T *p) {
    return *p;
}
template <class T> T __ldcs(const T *p) {
    return *p;
}
template <class T> void __stcs(T *p, T value) {
    *p = value;
}

/* ---- the runtime's functions ---- */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorLaunchFailure = 719
};
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};
enum { cudaStreamNonBlocking = 1 };
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4, cudaMemPoolAttrUsedMemHigh = 8 };
typedef struct simt_stream *cudaStream_t;
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1)) /* of the current device */
typedef struct simt_pool *cudaMemPool_t;
enum cudaMemAllocationType { cudaMemAllocationTypePinned = 1 };
enum cudaMemLocationType { cudaMemLocationTypeDevice = 1 };
struct cudaMemPoolProps {
    cudaMemAllocationType allocType;
    struct {
        cudaMemLocationType type;
        int id;
    } location;
};
struct cudaUUID_t {
    char bytes[16];
};
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    int major, minor, multiProcessorCount, l2CacheSize, pageableMemoryAccess, memoryPoolsSupported;
    size_t sharedMemPerBlockOptin, sharedMemPerMultiprocessor, reservedSharedMemPerBlock;
    size_t totalGlobalMem;
};

cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaMemGetInfo(size_t *available, size_t *all);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const cudaMemPoolProps *properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void *value);
cudaError_t cudaMallocFromPoolAsync(void **out, size_t size, cudaMemPool_t pool,
                                    cudaStream_t stream);
cudaError_t cudaFreeAsync(void *block, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream);
enum cudaMemoryType { cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost = 1 };
struct cudaPointerAttributes {
    cudaMemoryType type;
};
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *memory);
cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream);
cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t error);
cudaError_t simt_allow_shared(const void *kernel, int bytes);
template <class F> cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute what, int value) {
    if (what == cudaFuncAttributeMaxDynamicSharedMemorySize)
        return simt_allow_shared(simt::name_of(kernel), value);
    return cudaSuccess;
}

#endif
