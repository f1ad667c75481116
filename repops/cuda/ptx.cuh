/* Inline PTX, with equivalents for tests/simt. Asynchronous copies go from global to shared memory;
 * before sm_80 they are ordinary ones, done when the call returns. */
#ifndef REPOPS_CUDA_PTX_CUH
#define REPOPS_CUDA_PTX_CUH

#include "repops/cuda/cuda.cuh"

/* `bytes` is 4, 8 or 16, and both addresses are multiples of it. If `wanted` is false, zeros are
 * stored and `from` is not read. */
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

/* Waits until at most the latest `left` groups of this thread's copies are incomplete. Other
 * threads see the copies after a barrier. */
template <int left> RO_DEVICE void ro_copy_wait() {
#if defined(RO_SIMT)
    simt::wait_copies(left);
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
}

/* Stores four neighbours in global memory at once; `to` is a multiple of 16. The compiler may split
 * an ordinary store of a float4. */
RO_DEVICE void ro_store_fours(float *to, float4 v) {
#if defined(RO_SIMT)
    *reinterpret_cast<float4 *>(to) = v;
#else
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
#endif
}

/* Adds the product of 16 x 32 and 32 x 8 signed bytes to 16 x 8 integers, by a whole warp. With
 * g = lane / 4 and q = 4 (lane % 4), a lane has steps q..q+3 and 16+q..19+q of row g (a.x, a.y), of
 * row g + 8 (a.z, a.w) and of column g (low, high), and sums of row g (c[0], c[1]) and g + 8 (c[2],
 * c[3]) in columns q / 2 and q / 2 + 1. */
RO_DEVICE void ro_multiply_bytes(int (&c)[4], const uint4 &a, unsigned low, unsigned high) {
#if defined(RO_SIMT)
    simt::multiply_bytes(c, a, low, high);
#elif __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a.x), "r"(a.z), "r"(a.y), "r"(a.w), "r"(low), "r"(high));
#else
    const auto quarter = [](int &x, int &y, unsigned of_a, unsigned of_b) {
        asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+r"(x), "+r"(y)
            : "r"(of_a), "r"(of_b));
    };
    quarter(c[0], c[1], a.x, low);
    quarter(c[2], c[3], a.z, low);
    quarter(c[0], c[1], a.y, high);
    quarter(c[2], c[3], a.w, high);
#endif
}

/* Returns x + y from the multiplication unit, which additions, shifts and logic leave idle. `one`
 * is 1, unknown to the compiler, which would else merge pairs of additions in the other unit. */
RO_DEVICE uint32_t ro_add_as_product(uint32_t one, uint32_t x, uint32_t y) {
#if defined(RO_SIMT)
    return x * one + y;
#else
    uint32_t sum;
    asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(x), "r"(one), "r"(y));
    return sum;
#endif
}

/* Returns the block's number, read again: what follows from it needs no registers until then. */
RO_DEVICE unsigned ro_block_anew() {
#if defined(RO_SIMT)
    return blockIdx.x;
#else
    unsigned at;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(at));
    return at;
#endif
}

/* Returns the thread's number, read again likewise. */
RO_DEVICE unsigned ro_thread_anew() {
#if defined(RO_SIMT)
    return threadIdx.x;
#else
    unsigned at;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(at));
    return at;
#endif
}

#endif
