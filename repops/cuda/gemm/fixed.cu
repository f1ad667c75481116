/* matmul_fixed, SPEC.md section 3.5: packs both operands, then multiplies. */
#include "repops/cuda/gemm/fixed.cuh"

/* Blocks of four warps, of which a multiprocessor's registers hold two or three; every card has the
 * shared memory for one. Of nine tiles that were measured on an H100 these are the fastest. */
template <int digits>
using fixed_block = fixed_tile<digits, 2, 4, 2, 2, digits == 3 ? 2 : 4, digits == 3 ? 2 : 3>;

/* Where the packed operands of a call lie in one piece of memory. */
struct fixed_memory {
    fixed_packed a, b;
    size_t bytes;
};

static fixed_packed packed_of(const ro_matmul &v, int64_t lines) {
    fixed_packed x = {};
    x.groups = ceil_div(lines, FIXED_LINES);
    x.block = x.groups * (v.bits == RO_FIXED_24 ? fixed_group<3> : fixed_group<2>);
    x.blocks = (int)ceil_div(v.k, FIXED_STEPS), x.chunks = (int)ceil_div(v.k, RO_DOT_CHUNK);
    return x;
}

/* Takes memory for x from `at` on. */
static void place(fixed_packed *x, const ro_matmul &v, char *memory, size_t *at) {
    x->data = reinterpret_cast<uint4 *>(memory + *at);
    *at += (size_t)(v.batch * x->blocks * x->block) * sizeof(uint4);
}

static fixed_memory memory_of(const ro_matmul &v, char *memory) {
    fixed_memory w = {packed_of(v, v.m), packed_of(v, v.n), 0};
    place(&w.a, v, memory, &w.bytes);
    place(&w.b, v, memory, &w.bytes);
    return w;
}

template <int digits>
static ro_status pack(ro_cuda *d, const ro_matmul &v, const fixed_lines &x,
                      const fixed_packed &to) {
    const int64_t warps = v.batch * to.groups * to.chunks;
    if (warps == 0)
        return RO_OK;
    RO_LAUNCH((fixed_pack_kernel<digits>), ro_grid(ceil_div(warps, FIXED_PACK_THREADS / 32)),
              dim3(FIXED_PACK_THREADS), 0, d->stream, x, to, warps);
    return ro_cuda_launched(d, "matmul_fixed");
}

template <int digits>
static ro_status multiply(ro_cuda *d, const ro_matmul &v, const fixed_memory &w, float *out) {
    typedef fixed_block<digits> Tile;
    gemm_shape s = {};
    s.m = v.m, s.n = v.n, s.k = v.k, s.batch = (int)v.batch;
    s.tiles_m = (int)ceil_div(v.m, Tile::M), s.tiles_n = (int)ceil_div(v.n, Tile::N);
    const int64_t blocks = ceil_div(v.m, Tile::M) * ceil_div(v.n, Tile::N) * v.batch;
    if (blocks > INT32_MAX)
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: matmul_fixed of more than 2^31 blocks");
    const ro_status status = ro_cuda_allow(d, fixed_kernel<Tile>, "matmul_fixed");
    if (status != RO_OK)
        return status;
    const gemm_out to = {out, v.n, 1, v.m * v.n, v.alpha, 0.0f, false};
    RO_LAUNCH((fixed_kernel<Tile>), ro_grid(blocks), dim3(Tile::THREADS), Tile::BYTES, d->stream, s,
              w.a, w.b, to);
    return ro_cuda_launched(d, "matmul_fixed");
}

template <int digits>
static ro_status run_packed(ro_cuda *d, const ro_matmul &v, const fixed_lines &a,
                            const fixed_lines &b, const fixed_memory &w, float *out) {
    ro_status status = pack<digits>(d, v, a, w.a);
    if (status == RO_OK)
        status = pack<digits>(d, v, b, w.b);
    return status == RO_OK ? multiply<digits>(d, v, w, out) : status;
}

static bool in_fours(const fixed_lines &x) {
    return x.step == 1 && ((uintptr_t)x.data % 16 | (uint64_t)(x.line | x.next | x.steps) % 4) == 0;
}

ro_status ro_fixed_product(ro_cuda *d, const ro_matmul *product, const float *x, const float *y,
                           float *out) {
    const ro_matmul &v = *product;
    if (v.batch > INT32_MAX || v.k > INT32_MAX)
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED,
                            "cuda: matmul_fixed of 2^31 products or steps of k or more");
    fixed_lines a = {x, v.trans_a ? 1 : v.k, v.trans_a ? v.m : 1, v.m * v.k, v.m, v.k, false};
    fixed_lines b = {y, v.trans_b ? v.k : 1, v.trans_b ? 1 : v.n, v.k * v.n, v.n, v.k, false};
    a.fours = in_fours(a), b.fours = in_fours(b);
    void *memory;
    ro_status status = ro_cuda_alloc(d, memory_of(v, nullptr).bytes, &memory);
    if (status != RO_OK)
        return status;
    const fixed_memory w = memory_of(v, static_cast<char *>(memory));
    status = v.bits == RO_FIXED_24 ? run_packed<3>(d, v, a, b, w, out)
                                   : run_packed<2>(d, v, a, b, w, out);
    ro_cuda_free(d, memory);
    return status;
}

static ro_status matmul_fixed(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_matmul v = ro_matmul_of(call);
    return ro_fixed_product(d, &v, static_cast<const float *>(in[0]),
                            static_cast<const float *>(in[1]), static_cast<float *>(out));
}

void ro_cuda_add_fixed(ro_cuda_operator **table) {
    table[RO_OP_MATMUL_FIXED] = matmul_fixed;
}
