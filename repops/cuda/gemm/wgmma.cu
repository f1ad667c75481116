/* Runs fixed products by wgmma. This file is compiled for sm_90a, and as a stub for all other
 * architectures (cuda.mk). */
#include "repops/cuda/gemm/fixed_guard.cuh"
#include "repops/cuda/gemm/wgmma_run.cuh"

#if defined(RO_SIMT) || !defined(RO_HAS_WGMMA)

bool ro_wgmma_built(int, int) {
    return false;
}

template <class Out>
static ro_status run(ro_cuda *d, const fixed_problem &p, const fixed_lines &, const fixed_lines &,
                     const fixed_kept &, const Out &) {
    return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: %s: no code for sm_90a", p.what);
}

size_t ro_wgmma_packed_size(const fixed_problem &, ro_packed_operand) {
    return 0;
}

ro_status ro_wgmma_pack(ro_cuda *d, const fixed_problem &p, ro_packed_operand, const fixed_lines &,
                        void *) {
    return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: %s: no code for sm_90a", p.what);
}

#else

#include "repops/cuda/gemm/wgmma.cuh"

bool ro_wgmma_built(int major, int minor) {
    return major == 9 && minor == 0;
}

/* Tiles that were tried in a prototype and need no clusters. No device has measured them. */
template <int digits>
using wgmma_block = wgmma_tile<digits, digits == 3 ? 64 : 96, digits == 3 ? 6 : 7>;

enum { WGMMA_ALIGNMENT = 256 };

/* Packed operands in one piece of memory. */
struct wgmma_memory {
    char *memory;
    size_t bytes;

    template <class T> T *take(int64_t count) {
        T *const at = reinterpret_cast<T *>(memory + bytes);
        const size_t size = (size_t)count * sizeof(T);
        bytes += (size + WGMMA_ALIGNMENT - 1) / WGMMA_ALIGNMENT * WGMMA_ALIGNMENT;
        return at;
    }
};

static wgmma_operand place(const fixed_problem &p, int64_t panels, int lines, int places,
                           wgmma_memory *at) {
    wgmma_operand x = {};
    const int64_t all = panels * p.batch;
    x.panels = panels;
    x.stages = (int)ceil_div(p.k, WGMMA_STEPS), x.chunks = (int)ceil_div(p.k, RO_DOT_CHUNK);
    x.digits = at->take<unsigned char>(all * x.stages * places * lines * WGMMA_ROW);
    x.scales = at->take<float>(all * x.chunks * lines);
    x.seconds = at->take<unsigned>(all * x.chunks);
    return x;
}

template <int digits, int lines>
static ro_status pack(ro_cuda *d, const fixed_problem &p, const fixed_lines &x,
                      const wgmma_operand &to) {
    const int64_t warps = to.panels * p.batch * (lines / FIXED_LINES) * to.chunks;
    ro_status status = RO_OK;
    if (warps == 0)
        return RO_OK;
    if (digits == 1)
        status = ro_cuda_check(
            d,
            cudaMemsetAsync(to.seconds, 0,
                            (size_t)(to.panels * p.batch * to.chunks) * sizeof *to.seconds,
                            d->stream),
            p.what);
    if (status != RO_OK)
        return status;
    RO_LAUNCH((wgmma_pack_kernel<digits, lines, fixed_lines>),
              ro_grid(ceil_div(warps, FIXED_PACK_THREADS / 32)), dim3(FIXED_PACK_THREADS), 0,
              d->stream, x, to, warps);
    return ro_cuda_launched(d, p.what);
}

template <class Tile, class Out>
static ro_status multiply(ro_cuda *d, const fixed_problem &p, const wgmma_operand &a,
                          const wgmma_operand &b, const Out &out) {
    const int64_t tiles = ceil_div(p.m, Tile::M) * ceil_div(p.n, Tile::N) * p.batch;
    const wgmma_powers powers = {1 << 8, 1 << 16, 1 << 24};
    gemm_shape s = {};
    s.m = p.m, s.n = p.n, s.k = p.k, s.batch = (int)p.batch;
    s.tiles_m = (int)ceil_div(p.m, Tile::M), s.tiles_n = (int)ceil_div(p.n, Tile::N);
    if (tiles == 0)
        return RO_OK;
    const ro_status status = ro_cuda_allow(d, wgmma_kernel<Tile, Out>, p.what);
    if (status != RO_OK)
        return status;
    RO_LAUNCH((wgmma_kernel<Tile, Out>),
              ro_grid(tiles < d->multiprocessors ? tiles : d->multiprocessors), dim3(WGMMA_THREADS),
              Tile::BYTES, d->stream, s, a, b, out, powers);
    return ro_cuda_launched(d, p.what);
}

/* ---- products whose sums are checked ---- */

template <int digits> struct wgmma_way final : fixed_way {
    typedef wgmma_block<digits> Tile;
    fixed_lines x, y;
    wgmma_operand a, b;
    fixed_checked<gemm_out> out;

    wgmma_reader<digits, WGMMA_LINES> rows() const {
        return {a};
    }
    wgmma_reader<digits, Tile::N> columns() const {
        return {b};
    }
    ro_status pack(ro_cuda *d) override {
        const ro_status status = ::pack<digits, WGMMA_LINES>(d, p, x, a);
        return status == RO_OK ? ::pack<digits, Tile::N>(d, p, y, b) : status;
    }
    ro_status add_up(ro_cuda *d, uint32_t *of_columns, uint32_t *of_rows) override {
        return fixed_add_up(d, p, rows(), lines_a, columns(), lines_b, of_columns, of_rows);
    }
    ro_status add_scales(ro_cuda *d, uint32_t *of_a, uint32_t *of_b) override {
        const ro_status status = fixed_add_scales(d, p, rows(), lines_a, of_a);
        return status == RO_OK ? fixed_add_scales(d, p, columns(), lines_b, of_b) : status;
    }
    ro_status multiply(ro_cuda *d, const fixed_check &check) override {
        out.check = check;
        return ::multiply<Tile>(d, p, a, b, out);
    }
    void parts(fixed_part *part) const override {
        part[0] = {RO_GUARD_AT_A, a.digits, bytes(a, WGMMA_LINES)};
        part[1] = {RO_GUARD_AT_B, b.digits, bytes(b, Tile::N)};
        part[2] = {RO_GUARD_AT_SCALE, a.scales, FIXED_LINES * sizeof *a.scales};
    }
    size_t bytes(const wgmma_operand &of, int64_t lines) const {
        return (size_t)(of.panels * p.batch * of.stages * Tile::DIGITS * lines * WGMMA_ROW);
    }
};

template <int digits>
static ro_status run_checked(ro_cuda *d, const fixed_problem &p, const fixed_lines &x,
                             const fixed_lines &y, const wgmma_operand &a, const wgmma_operand &b,
                             const gemm_out &out) {
    typedef wgmma_block<digits> Tile;
    wgmma_way<digits> way = {};
    way.p = p, way.x = x, way.y = y, way.a = a, way.b = b;
    way.lines_a = a.panels * WGMMA_LINES, way.lines_b = b.panels * Tile::N;
    way.places = Tile::SUMS;
    way.out = {out, {}};
    fixed_seen(&way, out);
    return ro_fixed_guarded(d, &way);
}

/* ---- all ---- */

template <int digits>
static wgmma_operand place_a(const fixed_problem &p, const void *kept, wgmma_memory *at) {
    typedef wgmma_block<digits> Tile;
    wgmma_memory own = {static_cast<char *>(const_cast<void *>(kept)), 0};
    return place(p, 2 * ceil_div(p.m, Tile::M), WGMMA_LINES, Tile::DIGITS, kept ? &own : at);
}

template <int digits>
static wgmma_operand place_b(const fixed_problem &p, const void *kept, wgmma_memory *at) {
    typedef wgmma_block<digits> Tile;
    wgmma_memory own = {static_cast<char *>(const_cast<void *>(kept)), 0};
    return place(p, ceil_div(p.n, Tile::N), Tile::N, Tile::DIGITS, kept ? &own : at);
}

template <int digits>
static ro_status pack_a(ro_cuda *d, const fixed_problem &p, const fixed_lines &a,
                        const wgmma_operand &to) {
    return pack<digits, WGMMA_LINES>(d, p, a, to);
}

template <int digits>
static ro_status pack_b(ro_cuda *d, const fixed_problem &p, const fixed_lines &b,
                        const wgmma_operand &to) {
    return pack<digits, wgmma_block<digits>::N>(d, p, b, to);
}

template <int digits, class Out>
static ro_status run_digits(ro_cuda *d, const fixed_problem &p, const fixed_lines &a,
                            const fixed_lines &b, const fixed_kept &kept, const Out &out) {
    void *memory = nullptr;
    wgmma_memory size = {};
    (void)place_a<digits>(p, kept.a, &size), (void)place_b<digits>(p, kept.b, &size);
    ro_status status = size.bytes > 0 ? ro_cuda_alloc(d, size.bytes, &memory) : RO_OK;
    if (status != RO_OK)
        return status;
    wgmma_memory placed = {static_cast<char *>(memory), 0};
    const wgmma_operand of_a = place_a<digits>(p, kept.a, &placed);
    const wgmma_operand of_b = place_b<digits>(p, kept.b, &placed);
    if constexpr (!Out::ENDS) {
        if (fixed_guards(d, p)) {
            status = run_checked<digits>(d, p, a, b, of_a, of_b, out);
            ro_cuda_free(d, memory);
            return status;
        }
    }
    if (!kept.a)
        status = pack_a<digits>(d, p, a, of_a);
    if (status == RO_OK && !kept.b)
        status = pack_b<digits>(d, p, b, of_b);
    if (status == RO_OK)
        status = multiply<wgmma_block<digits>>(d, p, of_a, of_b, out);
    ro_cuda_free(d, memory);
    return status;
}

/* The tiles of a grid are numbered by 32 bits. */
template <class Out>
static ro_status run(ro_cuda *d, const fixed_problem &p, const fixed_lines &a, const fixed_lines &b,
                     const fixed_kept &kept, const Out &out) {
    const ro_status status = fixed_fits(d, p);
    if (status != RO_OK)
        return status;
    if (ceil_div(p.m, WGMMA_LINES) * ceil_div(p.n, WGMMA_LINES) * p.batch > INT32_MAX)
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: %s of more than 2^31 blocks", p.what);
    return p.bits == RO_FIXED_24   ? run_digits<3>(d, p, a, b, kept, out)
           : p.bits == RO_FIXED_16 ? run_digits<2>(d, p, a, b, kept, out)
                                   : run_digits<1>(d, p, a, b, kept, out);
}

template <int digits> static size_t size_of(const fixed_problem &p, ro_packed_operand side) {
    wgmma_memory size = {};
    (void)(side == RO_PACKED_X ? place_a<digits> : place_b<digits>)(p, nullptr, &size);
    return size.bytes;
}

size_t ro_wgmma_packed_size(const fixed_problem &p, ro_packed_operand side) {
    return (p.bits == RO_FIXED_24   ? size_of<3>
            : p.bits == RO_FIXED_16 ? size_of<2>
                                    : size_of<1>)(p, side);
}

template <int digits>
static ro_status pack_side(ro_cuda *d, const fixed_problem &p, ro_packed_operand side,
                           const fixed_lines &lines, void *to) {
    wgmma_memory at = {static_cast<char *>(to), 0};
    return side == RO_PACKED_X ? pack_a<digits>(d, p, lines, place_a<digits>(p, nullptr, &at))
                               : pack_b<digits>(d, p, lines, place_b<digits>(p, nullptr, &at));
}

ro_status ro_wgmma_pack(ro_cuda *d, const fixed_problem &p, ro_packed_operand side,
                        const fixed_lines &lines, void *to) {
    const ro_status status = fixed_fits(d, p);
    if (status != RO_OK)
        return status;
    return (p.bits == RO_FIXED_24   ? pack_side<3>
            : p.bits == RO_FIXED_16 ? pack_side<2>
                                    : pack_side<1>)(d, p, side, lines, to);
}

#endif

ro_status ro_wgmma_run(ro_cuda *d, const fixed_problem &p, const fixed_lines &a,
                       const fixed_lines &b, const fixed_kept &kept, const gemm_out &out) {
    return run(d, p, a, b, kept, out);
}

ro_status ro_wgmma_run(ro_cuda *d, const fixed_problem &p, const fixed_lines &a,
                       const fixed_lines &b, const fixed_kept &kept, const linear_out &out) {
    return run(d, p, a, b, kept, out);
}
