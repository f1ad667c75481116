/* Inline PTX of sm_90a: barriers in shared memory that count arrivals and bytes, bulk copies, and
 * products of matrices of bytes by a group of four warps, which are asynchronous. Kernels that have
 * it are code of that architecture alone; tests/ptx runs them, tests/simt does not. */
#ifndef REPOPS_CUDA_WGMMA_PTX_CUH
#define REPOPS_CUDA_WGMMA_PTX_CUH

#include "repops/cuda/cuda.cuh"

/* Addresses in shared memory are words here. */
RO_DEVICE uint32_t ro_shared_address(const void *at) {
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* ---- barriers: 8 bytes of shared memory ---- */

/* A phase ends when `arrivals` have come, and the bytes that were expected. */
RO_DEVICE void ro_barrier_init(uint32_t at, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}
/* After the last ro_barrier_init, before copies and other threads use the barriers. */
RO_DEVICE void ro_barriers_made() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
RO_DEVICE void ro_barrier_arrive(uint32_t at) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}
/* Arrives, and has the phase wait for so many bytes of copies. */
RO_DEVICE void ro_barrier_expect(uint32_t at, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
}
/* Until the phase of this parity has ended: 0 is the first phase; 1 passes before that one ends. */
RO_DEVICE void ro_barrier_wait(uint32_t at, uint32_t parity) {
    uint32_t done;
    do
        asm volatile("{\n\t.reg .pred %%ended;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 %%ended, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, %%ended;\n\t}"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
    while (!done);
}

/* Copies from global to shared memory, and tells the barrier when they are there. All three are
 * multiples of 16. */
RO_DEVICE void ro_bulk_copy(uint32_t to, const void *from, int bytes, uint32_t barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* ---- groups of four warps ---- */

/* Registers of a thread: what some give back, others may take. */
template <int count> RO_DEVICE void ro_fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count> RO_DEVICE void ro_more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

/* Between other uses of a product's registers and the product. */
RO_DEVICE void ro_products_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/* Until all products of the group of warps have ended: before, sums are nothing. */
RO_DEVICE void ro_products_end() {
    asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::
                     : "memory");
}

/* What was in the sums is not wanted: until something is, they need no registers. */
template <int count> RO_DEVICE void ro_forget(int (&sums)[count]) {
#pragma unroll
    for (int i = 0; i < count; i++)
        asm volatile("" : "=r"(sums[i]));
}

/* x, of which the compiler knows nothing: what follows from it need not be kept in registers. */
RO_DEVICE unsigned ro_anew(unsigned x) {
    asm volatile("" : "+r"(x));
    return x;
}

/* The compiler may not move uses of the sums over this. */
template <int count> RO_DEVICE void ro_hold(int (&sums)[count]) {
#pragma unroll
    for (int i = 0; i < count; i++)
        asm volatile("" : "+r"(sums[i])::"memory");
}

/* A matrix of bytes in shared memory, as a product reads it (PTX ISA, "Matrix descriptor format"
 * of wgmma): rows of 64 bytes of k, swizzled, eight of them after eight. The first of its swizzled
 * patterns of 512 bytes lies at a multiple of 512. */
enum { WGMMA_ROW = 64, WGMMA_EIGHT = 8 * WGMMA_ROW, WGMMA_PATTERN = 512 };

RO_DEVICE uint64_t wgmma_descriptor(uint32_t at) {
    const uint64_t swizzle_64 = 2;
    return swizzle_64 << 62 | (uint64_t)(WGMMA_EIGHT >> 4) << 32 | UINT64_C(1) << 16 |
           (at & 0x3ffff) >> 4;
}
/* Where byte k of a row lies in such a matrix: the vector's number, bits 4 and 5, is changed by
 * bits 7 and 8, which are those of the row's number in its pattern. */
RO_DEVICE int wgmma_place(int row, int k) {
    const int at = row * WGMMA_ROW + k;
    return at ^ (at >> 3 & 0x30);
}

#define WGMMA_8(x, i)                                                                              \
    "+r"(x[i]), "+r"(x[i + 1]), "+r"(x[i + 2]), "+r"(x[i + 3]), "+r"(x[i + 4]), "+r"(x[i + 5]),    \
        "+r"(x[i + 6]), "+r"(x[i + 7])
#define WGMMA_32(x) WGMMA_8(x, 0), WGMMA_8(x, 8), WGMMA_8(x, 16), WGMMA_8(x, 24)
#define WGMMA_NAMES_32                                                                             \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "   \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_NAMES_48                                                                             \
    WGMMA_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "      \
                   "%46, %47"

/* Adds the product of 64 x 32 bytes (a) and 32 x N bytes (b, by columns) to the group's sums, or
 * puts it in their place if `adds` is 0; a thread has N / 2 of them. With g = lane / 4 and q = lane
 * % 4, sums 4 j and 4 j + 1 are of row 16 warp + g and columns 8 j + 2 q and the next one, sums
 * 4 j + 2 and 4 j + 3 of the eighth row from there. */
RO_DEVICE void wgmma_multiply(int (&sums)[32], uint64_t a, uint64_t b, int adds) {
    asm volatile("{\n\t.reg .pred %%adds;\n\tsetp.ne.s32 %%adds, %34, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" WGMMA_NAMES_32
                 "}, %32, %33, %%adds;\n\t}"
                 : WGMMA_32(sums)
                 : "l"(a), "l"(b), "r"(adds));
}
RO_DEVICE void wgmma_multiply(int (&sums)[48], uint64_t a, uint64_t b, int adds) {
    asm volatile("{\n\t.reg .pred %%adds;\n\tsetp.ne.s32 %%adds, %50, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n96k32.s32.s8.s8 {" WGMMA_NAMES_48
                 "}, %48, %49, %%adds;\n\t}"
                 : WGMMA_32(sums), WGMMA_8(sums, 32), WGMMA_8(sums, 40)
                 : "l"(a), "l"(b), "r"(adds));
}

/* a b + c, of which the compiler would make shifts and additions. */
RO_DEVICE int64_t ro_multiply_wide(int a, int b, int64_t c) {
    int64_t sum;
    asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(sum) : "r"(a), "r"(b), "l"(c));
    return sum;
}

#endif
