/* Inline PTX, with twins for tests/simt. Asynchronous copies go from global to shared memory; on
 * architectures before sm_80 they are ordinary ones, done when the call returns. */
#ifndef REPOPS_CUDA_PTX_CUH
#define REPOPS_CUDA_PTX_CUH

#include "repops/cuda/cuda.cuh"

/* `bytes` is 4, 8 or 16, both addresses its multiples; if `wanted` is false, zeros arrive and
 * `from` is not read. */
template <int bytes> RO_DEVICE void ro_copy_async(void *to, const void *from, bool wanted) {
#if defined(RO_SIMT)
    simt::copy_async(to, from, bytes, wanted ? bytes : 0);
#elif __CUDA_ARCH__ >= 800
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    const int size = wanted ? bytes : 0;
    if constexpr (bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(size)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from),
                     "n"(bytes), "r"(size)
                     : "memory");
#else
    if constexpr (bytes == 16)
        *static_cast<uint4 *>(to) =
            wanted ? *static_cast<const uint4 *>(from) : make_uint4(0, 0, 0, 0);
    else
        for (int i = 0; i < bytes / 4; i++)
            static_cast<uint32_t *>(to)[i] = wanted ? static_cast<const uint32_t *>(from)[i] : 0;
#endif
}

/* Closes a group of this thread's copies. */
RO_DEVICE void ro_copy_commit() {
#if defined(RO_SIMT)
    simt::commit_copies();
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Until at most `left` of this thread's groups, the latest ones, are on their way. Other threads
 * see the copies after a barrier. */
template <int left> RO_DEVICE void ro_copy_wait() {
#if defined(RO_SIMT)
    simt::wait_copies(left);
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
}

/* One store of four neighbours in global memory, `to` a multiple of 16: what is written as a store
 * of a float4 the compiler may take apart. */
RO_DEVICE void ro_store_fours(float *to, float4 v) {
#if defined(RO_SIMT)
    *reinterpret_cast<float4 *>(to) = v;
#else
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
#endif
}

/* x + y by the unit that multiplies, which additions, shifts and logic leave idle; `one` is 1,
 * which the compiler must not know, or it would merge additions by pairs in the other unit. */
RO_DEVICE uint32_t ro_add_as_product(uint32_t one, uint32_t x, uint32_t y) {
#if defined(RO_SIMT)
    return x * one + y;
#else
    uint32_t sum;
    asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(x), "r"(one), "r"(y));
    return sum;
#endif
}

/* The block's number, read anew: what follows from it need not be kept in registers until then. */
RO_DEVICE unsigned ro_block_anew() {
#if defined(RO_SIMT)
    return blockIdx.x;
#else
    unsigned at;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(at));
    return at;
#endif
}

#endif
