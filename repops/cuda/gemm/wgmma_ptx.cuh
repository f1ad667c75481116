/* Inline PTX of sm_90a: barriers in shared memory that count arrivals and bytes, bulk copies, and
 * asynchronous products of matrices of bytes by a group of four warps. Kernels that use them are
 * compiled for that architecture alone; tests/ptx runs them, tests/simt does not. */
#ifndef REPOPS_CUDA_WGMMA_PTX_CUH
#define REPOPS_CUDA_WGMMA_PTX_CUH

#include "repops/cuda/cuda.cuh"

/* Returns an address in shared memory, as 32 bits. */
RO_DEVICE uint32_t ro_shared_address(const void *at) {
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* ---- barriers: 8 bytes of shared memory ---- */

/* Initialises a barrier. A phase ends after `arrivals` arrivals and all expected bytes. */
RO_DEVICE void ro_barrier_init(uint32_t at, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}
/* Must follow the last ro_barrier_init, before copies and other threads use the barriers. */
RO_DEVICE void ro_barriers_made() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
RO_DEVICE void ro_barrier_arrive(uint32_t at) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}
/* Arrives, and makes the phase wait for so many bytes of copies. */
RO_DEVICE void ro_barrier_expect(uint32_t at, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
}
/* Waits until the phase of this parity has ended. 0 is the first phase; 1 passes before its end. */
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

/* Copies from global to shared memory, and notifies the barrier. Addresses and size are multiples
 * of 16. */
RO_DEVICE void ro_bulk_copy(uint32_t to, const void *from, int bytes, uint32_t barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* ---- groups of four warps ---- */

/* Change the registers of a thread: other warps can take what some give back. */
template <int count> RO_DEVICE void ro_fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count> RO_DEVICE void ro_more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

/* Must come between other uses of a product's registers and the product. */
RO_DEVICE void ro_products_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/* Waits until all products of the group of warps have ended: before, their sums are undefined. */
RO_DEVICE void ro_products_end() {
    asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::
                     : "memory");
}

/* Tells the compiler that the sums' values are not needed: they occupy no registers until set. */
template <int count> RO_DEVICE void ro_forget(int (&sums)[count]) {
#pragma unroll
    for (int i = 0; i < count; i++)
        asm volatile("" : "=r"(sums[i]));
}

/* Returns x, hidden from the compiler: what is computed from it need not be kept in registers. */
RO_DEVICE unsigned ro_anew(unsigned x) {
    asm volatile("" : "+r"(x));
    return x;
}

/* Keeps the compiler from moving uses of the sums across this point. */
template <int count> RO_DEVICE void ro_hold(int (&sums)[count]) {
#pragma unroll
    for (int i = 0; i < count; i++)
        asm volatile("" : "+r"(sums[i])::"memory");
}

/* Describes a matrix of bytes in shared memory to a product (PTX ISA, "Matrix descriptor format" of
 * wgmma): rows of 64 bytes of k, swizzled, in groups of eight. Its swizzle patterns have 512 bytes;
 * the first one starts at a multiple of 512. */
enum { WGMMA_ROW = 64, WGMMA_EIGHT = 8 * WGMMA_ROW, WGMMA_PATTERN = 512 };

RO_DEVICE uint64_t wgmma_descriptor(uint32_t at) {
    const uint64_t swizzle_64 = 2;
    return swizzle_64 << 62 | (uint64_t)(WGMMA_EIGHT >> 4) << 32 | UINT64_C(1) << 16 |
           (at & 0x3ffff) >> 4;
}
/* Returns the offset of byte k of a row in such a matrix: bits 4 and 5, the vector's number, are
 * xored with bits 7 and 8, from the row's number in its pattern. */
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
 * replaces them if `adds` is 0; a thread has N / 2 of them. With g = lane / 4 and q = lane % 4,
 * sums 4 j and 4 j + 1 are those of row 16 warp + g and columns 8 j + 2 q and the next one; sums 4
 * j + 2 and 4 j + 3 are those of the eighth row below. */
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

/* Returns a b + c. The compiler would use shifts and additions instead. */
RO_DEVICE int64_t ro_multiply_wide(int a, int b, int64_t c) {
    int64_t sum;
    asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(sum) : "r"(a), "r"(b), "l"(c));
    return sum;
}

#endif
