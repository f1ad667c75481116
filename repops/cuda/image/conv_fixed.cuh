/* Runs fixed convolutions. Windows are read in place, or packed in slabs, so that the digits of all
 * windows are never in memory at once. A slab is some lines, or some chunks of all lines. */
#ifndef REPOPS_CUDA_CONV_FIXED_CUH
#define REPOPS_CUDA_CONV_FIXED_CUH

#include "repops/cuda/gemm/fixed_guard.cuh"
#include "repops/cuda/image/conv.cuh"

/* Bytes of a slab's packed windows, unless the smallest slab takes more. The bits do not depend on
 * it: the simulator's library has small slabs. */
#if !defined(RO_CONV_SLAB)
#define RO_CONV_SLAB (64 << 20)
#endif

/* Most blocks across that read the same windows in place; with more, digits are packed once for all
 * of them. In place, a number of a window is read (4 bytes) once for its exponent and once by each
 * block; packing reads it twice and writes digits, which each block reads. */
enum { IN_PLACE_16 = 3, IN_PLACE_24 = 8 };

/* The output dx, from row `first` of each phase on. */
struct conv_fixed_dx_out : conv_dx_out {
    int64_t first;

    RO_DEVICE int64_t rows(const gemm_shape &s, int64_t product) const {
        return conv_dx_out::rows(s, product) - first;
    }
    RO_DEVICE float *line(int64_t product, int64_t m) const {
        return conv_dx_out::line(product, first + m);
    }
};

/* The output dw. goes_on: totals start from those of earlier slabs, which are in the output. */
struct conv_fixed_dw_out : gemm_out {
    bool goes_on;
};

static inline gemm_out rows_from(gemm_out out, int64_t first) {
    out.c += first * out.row;
    return out;
}

static inline conv_fixed_dx_out rows_from(conv_fixed_dx_out out, int64_t first) {
    out.first = first;
    return out;
}

/* Returns the bytes of `lines` packed lines with so many steps of k. */
static inline int64_t packed_bytes(const fixed_problem &p, int64_t lines, int64_t steps) {
    const int64_t group = p.bits == RO_FIXED_24 ? fixed_group<3> : fixed_group<2>;
    return p.batch * ceil_div(lines, FIXED_LINES) * ceil_div(steps, FIXED_STEPS) * group *
           (int64_t)sizeof(uint4);
}

/* Returns the rows of a slab: whole tiles, filling the card a whole number of times if so many
 * fit. */
template <int digits> static int64_t slab_rows(const ro_cuda *d, const fixed_problem &p) {
    typedef fixed_block<digits> Tile;
    const int64_t bytes = packed_bytes(p, Tile::M, p.k), tiles = RO_CONV_SLAB / (bytes ? bytes : 1);
    const int64_t across = ceil_div(p.n, Tile::N) * p.batch;
    const int64_t wave = (int64_t)d->multiprocessors * Tile::BLOCKS / (across ? across : 1);
    const int64_t whole = wave > 0 && tiles > wave ? tiles - tiles % wave : tiles;
    return (whole > 0 ? whole : 1) * Tile::M;
}

/* Returns the steps of a slab: whole chunks. */
static inline int64_t slab_steps(const fixed_problem &p, bool in_place) {
    const int64_t bytes =
        (in_place ? 0 : packed_bytes(p, p.m, RO_DOT_CHUNK)) + packed_bytes(p, p.n, RO_DOT_CHUNK);
    const int64_t chunks = RO_CONV_SLAB / (bytes ? bytes : 1);
    return (chunks > 0 ? chunks : 1) * RO_DOT_CHUNK;
}

static inline ro_status slabs_fit(ro_cuda *d, const fixed_problem &p) {
    if (p.batch <= INT32_MAX && p.k <= INT32_MAX)
        return RO_OK;
    return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: %s of 2^31 products or steps of k or more",
                        p.what);
}

/* Returns whether windows are read in place. The simulator's library does both, so cases cover
 * both. */
static inline bool stays_in_place(const fixed_problem &p) {
#if defined(RO_CONV_EITHER)
    return (p.m + p.n + p.k) % 2 == 0;
#else
    return p.bits == RO_FIXED_24 ? ceil_div(p.n, fixed_block<3>::N) <= IN_PLACE_24
                                 : ceil_div(p.n, fixed_block<2>::N) <= IN_PLACE_16;
#endif
}

/* ---- checked: a slab is packed, and what does not fit is computed again ---- */

template <int digits, class A, class B, class Out>
static ro_status check_slab_of(ro_cuda *d, const fixed_problem &p, const A &a, const B &b,
                               const fixed_memory &w, const Out &out, int64_t first_row) {
    mma_way<digits, A, B, Out> way(p, a, b, w, out);
    way.first_row = first_row;
    if constexpr (std::is_base_of_v<gemm_out, Out>)
        fixed_seen(&way, out);
    return ro_fixed_guarded(d, &way);
}

template <class A, class B, class Out>
static ro_status check_slab(ro_cuda *d, const fixed_problem &p, const A &a, const B &b,
                            const fixed_memory &w, const Out &out, int64_t first_row) {
    return p.bits == RO_FIXED_24   ? check_slab_of<3>(d, p, a, b, w, out, first_row)
           : p.bits == RO_FIXED_16 ? check_slab_of<2>(d, p, a, b, w, out, first_row)
                                   : check_slab_of<1>(d, p, a, b, w, out, first_row);
}

/* ---- windows where they lie ---- */

/* Memory for packed b, and for the exponents of windows that are not packed. */
struct windows_memory {
    fixed_packed b;
    fixed_exponents exponents;
    size_t bytes;
};

static inline windows_memory windows_memory_of(const fixed_problem &p, char *memory) {
    windows_memory w = {fixed_packed_of(p, p.n), {}, 0};
    fixed_place(&w.b, p, memory, &w.bytes);
    w.exponents = {reinterpret_cast<int *>(memory + w.bytes), ceil_div(p.m, FIXED_LINES),
                   (int)ceil_div(p.k, RO_DOT_CHUNK)};
    w.bytes +=
        (size_t)(p.batch * w.exponents.chunks * w.exponents.groups) * FIXED_LINES * sizeof(int);
    return w;
}

template <int digits, class A>
static ro_status find_exponents(ro_cuda *d, const fixed_problem &p, const A &a,
                                const fixed_exponents &to) {
    const int64_t warps = p.batch * to.groups * to.chunks;
    if (warps == 0)
        return RO_OK;
    RO_LAUNCH((fixed_exponents_kernel<digits, A>),
              ro_grid(ceil_div(warps, FIXED_PACK_THREADS / 32)), dim3(FIXED_PACK_THREADS), 0,
              d->stream, a, to, warps);
    return ro_cuda_launched(d, p.what);
}

/* Multiplies windows in place; b is packed. */
template <int digits, class A, class Out>
static ro_status multiply_where(ro_cuda *d, const fixed_problem &p, const A &a,
                                const windows_memory &w, const Out &out) {
    const fixed_unpacked<A> windows = {a, w.exponents, (int)ceil_div(p.k, FIXED_STEPS)};
    const ro_status status = find_exponents<digits>(d, p, a, w.exponents);
    return status == RO_OK ? fixed_multiply<digits>(d, p, windows, w.b, out) : status;
}

template <class A, class Out>
static ro_status multiply_in_place(ro_cuda *d, const fixed_problem &p, const A &a,
                                   const windows_memory &w, const Out &out) {
    return p.bits == RO_FIXED_24   ? multiply_where<3>(d, p, a, w, out)
           : p.bits == RO_FIXED_16 ? multiply_where<2>(d, p, a, w, out)
                                   : multiply_where<1>(d, p, a, w, out);
}

/* Runs a product whose rows are windows that are read in place. */
template <class A, class B, class Out>
static ro_status run_in_place(ro_cuda *d, const fixed_problem &p, const A &a, const B &b,
                              const Out &out) {
    void *memory;
    ro_status status = slabs_fit(d, p);
    if (status == RO_OK)
        status = ro_cuda_alloc(d, windows_memory_of(p, nullptr).bytes, &memory);
    if (status != RO_OK)
        return status;
    const windows_memory w = windows_memory_of(p, static_cast<char *>(memory));
    status = fixed_pack_of(d, p, b, w.b);
    if (status == RO_OK)
        status = multiply_in_place(d, p, a, w, out);
    ro_cuda_free(d, memory);
    return status;
}

/* Runs a slab of rows; b is packed. */
template <class A, class Out>
static ro_status multiply_rows(ro_cuda *d, const fixed_problem &p, const A &a,
                               const fixed_memory &w, const Out &out) {
    const ro_status status = fixed_pack_of(d, p, a, w.a);
    return status == RO_OK ? fixed_multiply_to(d, p, w, out) : status;
}

/* Runs a product whose rows are windows: in place, or packing all of b and then slabs of rows. A
 * slab that is checked packs b itself, since it may have to do so twice. */
template <class A, class B, class Out>
static ro_status run_rows(ro_cuda *d, const fixed_problem &all, A a, const B &b, const Out &out) {
    const int64_t most = all.bits == RO_FIXED_24 ? slab_rows<3>(d, all) : slab_rows<2>(d, all);
    const bool checked = fixed_guards(d, all);
    fixed_problem p = all;
    void *memory;
    if (stays_in_place(all) && !checked)
        return run_in_place(d, all, a, b, out);
    p.m = most < all.m ? most : all.m;
    ro_status status = slabs_fit(d, p);
    if (status == RO_OK)
        status = ro_cuda_alloc(d, fixed_memory_of(p, nullptr).bytes, &memory);
    if (status != RO_OK)
        return status;
    fixed_memory w = fixed_memory_of(p, static_cast<char *>(memory));
    if (!checked)
        status = fixed_pack_of(d, p, b, w.b);
    for (int64_t first = 0; status == RO_OK && first < all.m; first += most) {
        p.m = most < all.m - first ? most : all.m - first;
        a.first_line = first, a.lines = p.m;
        uint4 *const data = w.a.data;
        w.a = fixed_packed_of(p, p.m), w.a.data = data;
        status = checked ? check_slab(d, p, a, b, w, rows_from(out, first), first)
                         : multiply_rows(d, p, a, w, rows_from(out, first));
    }
    ro_cuda_free(d, memory);
    return status;
}

/* Runs a slab of some chunks of both operands. */
template <class A>
static ro_status run_slab(ro_cuda *d, const fixed_problem &p, const A &a, const fixed_lines &b,
                          bool in_place, char *memory, const conv_fixed_dw_out &out) {
    if (in_place) {
        const windows_memory w = windows_memory_of(p, memory);
        const ro_status status = fixed_pack_of(d, p, b, w.b);
        return status == RO_OK ? multiply_in_place(d, p, a, w, out) : status;
    }
    const fixed_memory w = fixed_memory_of(p, memory);
    ro_status status = fixed_pack_of(d, p, a, w.a);
    if (status == RO_OK)
        status = fixed_pack_of(d, p, b, w.b);
    return status == RO_OK ? fixed_multiply_to(d, p, w, out) : status;
}

/* Runs all steps in one slab, checked. A kernel that both checks and adds to what lies in its
 * output would spill registers, so several slabs are not checked. */
template <class A>
static ro_status run_at_once(ro_cuda *d, const fixed_problem &p, const A &a, const fixed_lines &b,
                             const gemm_out &out) {
    void *memory;
    ro_status status = ro_cuda_alloc(d, fixed_memory_of(p, nullptr).bytes, &memory);
    if (status != RO_OK)
        return status;
    status = check_slab(d, p, a, b, fixed_memory_of(p, static_cast<char *>(memory)), out, 0);
    ro_cuda_free(d, memory);
    return status;
}

/* Runs a product whose many steps are windows, in slabs of some chunks of both operands. */
template <class A>
static ro_status run_steps(ro_cuda *d, const fixed_problem &all, A a, fixed_lines b,
                           const gemm_out &out) {
    const bool in_place = stays_in_place(all);
    const int64_t most = slab_steps(all, in_place);
    fixed_problem p = all;
    void *memory;
    ro_status status = slabs_fit(d, p);
    if (fixed_guards(d, all) && slab_steps(all, false) >= all.k)
        return run_at_once(d, all, a, b, out);
    p.k = most < all.k ? most : all.k;
    const size_t bytes =
        in_place ? windows_memory_of(p, nullptr).bytes : fixed_memory_of(p, nullptr).bytes;
    if (status == RO_OK)
        status = ro_cuda_alloc(d, bytes, &memory);
    if (status != RO_OK)
        return status;
    int64_t first = 0;
    do {
        p.k = most < all.k - first ? most : all.k - first;
        a.first_step = first, a.steps = b.steps = p.k;
        status = run_slab(d, p, a, b, in_place, static_cast<char *>(memory),
                          conv_fixed_dw_out{out, first > 0});
        first += p.k, b.data += p.k * b.step;
    } while (status == RO_OK && first < all.k);
    ro_cuda_free(d, memory);
    return status;
}

#endif
