/* Runs products by exact sums of integers: packs both operands, then multiplies. */
#ifndef REPOPS_CUDA_FIXED_RUN_CUH
#define REPOPS_CUDA_FIXED_RUN_CUH

#include "repops/cuda/gemm/fixed.cuh"

/* Blocks of four warps. A multiprocessor's registers hold two or three of them; every card has the
 * shared memory for one. Of nine tiles that were measured on an H100, these are the fastest. */
template <int digits>
using fixed_block = fixed_tile<digits, 2, 4, 2, 2, digits == 3 ? 2 : 4, digits == 3 ? 2 : 3>;

/* Blocks that split numbers into digits themselves keep the next numbers in registers, so that a
 * multiprocessor holds two of them instead of three. */
template <int digits, class A> struct fixed_block_for { typedef fixed_block<digits> type; };
template <int digits, class Lines> struct fixed_block_for<digits, fixed_unpacked<Lines>> {
    typedef fixed_tile<digits, 2, 4, 2, 2, digits == 3 ? 2 : 4, 2> type;
};

/* `batch` products of m x k and k x n numbers. */
struct fixed_problem {
    int64_t m, n, k, batch;
    int bits;
    const char *what; /* the operator */
};

/* Operands that are packed already; NULL for one that is not. */
struct fixed_kept {
    const void *a, *b;
};

/* Where the packed operands of a call are: in one piece of memory, except those that are kept. */
struct fixed_memory {
    fixed_packed a, b;
    size_t bytes;
};

static inline fixed_packed fixed_packed_of(const fixed_problem &p, int64_t lines) {
    fixed_packed x = {};
    x.groups = ceil_div(lines, FIXED_LINES);
    x.block = x.groups * (p.bits == RO_FIXED_24 ? fixed_group<3> : fixed_group<2>);
    x.blocks = (int)ceil_div(p.k, FIXED_STEPS), x.chunks = (int)ceil_div(p.k, RO_DOT_CHUNK);
    return x;
}

static inline size_t fixed_bytes(const fixed_packed &x, const fixed_problem &p) {
    return (size_t)(p.batch * x.blocks * x.block) * sizeof(uint4);
}

/* Places x at *at and advances *at, unless x is kept. */
static inline void fixed_place(fixed_packed *x, const fixed_problem &p, char *memory, size_t *at,
                               const void *kept = nullptr) {
    x->data = reinterpret_cast<uint4 *>(kept ? (uintptr_t)kept : (uintptr_t)memory + *at);
    *at += kept ? 0 : fixed_bytes(*x, p);
}

static inline fixed_memory fixed_memory_of(const fixed_problem &p, char *memory,
                                           const fixed_kept &kept = {}) {
    fixed_memory w = {fixed_packed_of(p, p.m), fixed_packed_of(p, p.n), 0};
    fixed_place(&w.a, p, memory, &w.bytes, kept.a);
    fixed_place(&w.b, p, memory, &w.bytes, kept.b);
    return w;
}

template <int digits, class Lines>
static ro_status fixed_pack(ro_cuda *d, const fixed_problem &p, const Lines &x,
                            const fixed_packed &to) {
    const int64_t warps = p.batch * to.groups * to.chunks;
    if (warps == 0)
        return RO_OK;
    RO_LAUNCH((fixed_pack_kernel<digits, Lines>), ro_grid(ceil_div(warps, FIXED_PACK_THREADS / 32)),
              dim3(FIXED_PACK_THREADS), 0, d->stream, x, to, warps);
    return ro_cuda_launched(d, p.what);
}

template <class Lines>
static ro_status fixed_pack_of(ro_cuda *d, const fixed_problem &p, const Lines &x,
                               const fixed_packed &to) {
    return p.bits == RO_FIXED_24   ? fixed_pack<3>(d, p, x, to)
           : p.bits == RO_FIXED_16 ? fixed_pack<2>(d, p, x, to)
                                   : fixed_pack<1>(d, p, x, to);
}

template <int digits, class A, class Out>
static ro_status fixed_multiply(ro_cuda *d, const fixed_problem &p, const A &a,
                                const fixed_packed &b, const Out &out) {
    typedef typename fixed_block_for<digits, A>::type Tile;
    gemm_shape s = {};
    s.m = p.m, s.n = p.n, s.k = p.k, s.batch = (int)p.batch;
    s.tiles_m = (int)ceil_div(p.m, Tile::M), s.tiles_n = (int)ceil_div(p.n, Tile::N);
    const int64_t blocks = ceil_div(p.m, Tile::M) * ceil_div(p.n, Tile::N) * p.batch;
    if (blocks > INT32_MAX)
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: %s of more than 2^31 blocks", p.what);
    const ro_status status = ro_cuda_allow(d, fixed_kernel<Tile, A, Out>, p.what);
    if (status != RO_OK)
        return status;
    RO_LAUNCH((fixed_kernel<Tile, A, Out>), ro_grid(blocks), dim3(Tile::THREADS), Tile::BYTES,
              d->stream, s, a, b, out);
    return ro_cuda_launched(d, p.what);
}

/* Multiplies packed operands; the rows of the result have one common stride. */
ro_status ro_fixed_multiply(ro_cuda *d, const fixed_problem &p, const fixed_memory &w,
                            const gemm_out &out);

static inline ro_status fixed_multiply_to(ro_cuda *d, const fixed_problem &p, const fixed_memory &w,
                                          const gemm_out &out) {
    return ro_fixed_multiply(d, p, w, out);
}

template <class Out>
static ro_status fixed_multiply_to(ro_cuda *d, const fixed_problem &p, const fixed_memory &w,
                                   const Out &out) {
    return p.bits == RO_FIXED_24   ? fixed_multiply<3>(d, p, w.a, w.b, out)
           : p.bits == RO_FIXED_16 ? fixed_multiply<2>(d, p, w.a, w.b, out)
                                   : fixed_multiply<1>(d, p, w.a, w.b, out);
}

static inline ro_status fixed_fits(ro_cuda *d, const fixed_problem &p) {
    return p.batch <= INT32_MAX && p.k <= INT32_MAX
               ? RO_OK
               : ro_cuda_fail(d, RO_ERR_UNSUPPORTED,
                              "cuda: %s of 2^31 products or steps of k or more", p.what);
}

/* Packs the operands that are not kept, and multiplies. a is not read if kept.a is set, nor b if
 * kept.b is. */
template <class A, class B, class Out>
static ro_status fixed_run(ro_cuda *d, const fixed_problem &p, const A &a, const B &b,
                           const fixed_kept &kept, const Out &out) {
    void *memory = nullptr;
    const size_t size = fixed_memory_of(p, nullptr, kept).bytes;
    ro_status status = fixed_fits(d, p);
    if (status == RO_OK && size > 0)
        status = ro_cuda_alloc(d, size, &memory);
    if (status != RO_OK)
        return status;
    const fixed_memory w = fixed_memory_of(p, static_cast<char *>(memory), kept);
    if (!kept.a)
        status = fixed_pack_of(d, p, a, w.a);
    if (status == RO_OK && !kept.b)
        status = fixed_pack_of(d, p, b, w.b);
    if (status == RO_OK)
        status = fixed_multiply_to(d, p, w, out);
    ro_cuda_free(d, memory);
    return status;
}

#endif
