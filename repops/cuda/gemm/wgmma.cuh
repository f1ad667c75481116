/* Products by exact sums of integers (SPEC.md section 3.5) on sm_90a. fixed.cuh is the same for all
 * other cards, and says how numbers are digits; here groups of four warps multiply them where they
 * lie in shared memory.
 *
 * A block has three groups. One thread of the first copies; the others have 64 rows of the tile
 * each. Packed operands lie in memory as shared memory has them, stage after stage, so that a stage
 * comes by few bulk copies. The second group begins a stage when the first one has multiplied it:
 * so one multiplies while the other one rounds. */
#ifndef REPOPS_CUDA_WGMMA_CUH
#define REPOPS_CUDA_WGMMA_CUH

#include "repops/cuda/gemm/fixed.cuh"
#include "repops/cuda/gemm/wgmma_ptx.cuh"

enum {
    WGMMA_LINES = 64,                          /* rows of a group of four warps */
    WGMMA_STEPS = WGMMA_ROW,                   /* of k, of a stage */
    WGMMA_STAGES = RO_DOT_CHUNK / WGMMA_STEPS, /* of a chunk */
    WGMMA_THREADS = 3 * 128,
    WGMMA_FEW = 40,       /* registers of a thread of the group that copies */
    WGMMA_MANY = 232,     /* of one that multiplies */
    WGMMA_PACK_BLOCKS = 2 /* of a multiprocessor: with more, registers spill */
};

/* One operand, packed, in panels of lines. */
struct wgmma_operand {
    unsigned char *digits; /* [panel, stage, digit, line, WGMMA_ROW] */
    float *scales;         /* [panel, chunk, line] */
    unsigned *seconds;     /* [panel, chunk]: whether lines have a second digit of 8 bits */
    int64_t panels;        /* of a product; all those of a batch follow each other */
    int stages, chunks;
};

/* 2^8, 2^16 and 2^24 as the compiler must not know them: it would take wide products apart. */
struct wgmma_powers {
    int k8, k16, k24;
};

/* `digits` as fixed_tile has them; 128 rows by n columns. */
template <int digits, int n, int stages> struct wgmma_tile {
    static constexpr int FORM = digits, DIGITS = fixed_places<digits>, SUMS = 2 * DIGITS - 1;
    static constexpr bool MAY_LACK = digits == 1; /* second digits */
    static constexpr int M = 2 * WGMMA_LINES, N = n, EACH = n / 2, RING = stages;
    /* Bytes: of one digit, of a panel, of a stage in shared memory. */
    static constexpr int DIGIT_A = WGMMA_LINES * WGMMA_ROW, DIGIT_B = n * WGMMA_ROW;
    static constexpr int A = DIGITS * DIGIT_A, B = DIGITS * DIGIT_B;
    static constexpr int AT_B = 2 * A, AT_SCALES = AT_B + B, SCALES = (M + n) * 4;
    static constexpr int STAGE =
        (AT_SCALES + SCALES + WGMMA_PATTERN - 1) / WGMMA_PATTERN * WGMMA_PATTERN;
    static constexpr int AT_FULL = RING * STAGE, AT_EMPTY = AT_FULL + RING * 8,
                         AT_AHEAD = AT_EMPTY + RING * 8;
    /* The launch's shared memory may begin anywhere in a pattern. */
    static constexpr int BYTES = AT_AHEAD + RING * 8 + WGMMA_PATTERN;
    static_assert(DIGIT_A % WGMMA_PATTERN == 0 && DIGIT_B % WGMMA_PATTERN == 0, "patterns");
};

/* A place in the ring of stages, and which time it is used: even or odd. */
template <int stages> struct wgmma_ring {
    int slot = 0;
    uint32_t round = 0;
    RO_DEVICE void next() {
        if (++slot == stages)
            slot = 0, round ^= 1;
    }
};

/* ---- packing: a warp has sixteen lines in one chunk ---- */

/* The scale of a line whose integers are digits: 2^(exponent - (bits - 1)), perhaps a subnormal
 * number. NaN for a line that is not finite; 1 for integers that are all 0, whatever the exponent.
 */
RO_DEVICE float wgmma_scale(fixed_scale s, bool any) {
    const int power = s.exponent - (s.bits - 1);
    if (s.exponent == RO_FIXED_NONE)
        return RO_F32_NAN;
    if (!any)
        return 1.0f;
    return ro_from_bits(power >= -126 ? (uint32_t)(power + 127) << 23 : 1u << (power + 149));
}

/* The power of two that a scale is. */
RO_DEVICE int wgmma_power(float scale) {
    const uint32_t bits = ro_to_bits(scale);
    return bits >> 23 ? (int)(bits >> 23) - 127 : -118 - __clz((int)bits);
}

/* Packs sixteen steps of a line, from k on; returns whether any integer is not 0. */
template <int digits, class Lines>
RO_DEVICE uint32_t wgmma_pack_steps(const Lines &x, int64_t batch, int64_t line, int64_t k,
                                    fixed_scale s, unsigned char *to, int plane) {
    uint32_t word[4][fixed_places<digits>], any = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        fixed_digits<digits>(x.load(batch, line, k + 4 * i), s, word[i]);
#pragma unroll
    for (int d = 0; d < fixed_places<digits>; d++) {
        *reinterpret_cast<uint4 *>(to + d * plane) =
            make_uint4(word[0][d], word[1][d], word[2][d], word[3][d]);
        any |= word[0][d] | word[1][d] | word[2][d] | word[3][d];
    }
    return any;
}

/* `lines` are those of a panel. Of a line four lanes have sixteen steps of a stage each. */
template <int digits, int lines, class Lines>
__global__ void __launch_bounds__(FIXED_PACK_THREADS, WGMMA_PACK_BLOCKS)
    wgmma_pack_kernel(const __grid_constant__ Lines x, const __grid_constant__ wgmma_operand to,
                      int64_t warps) {
    constexpr int plane = lines * WGMMA_ROW, groups = lines / FIXED_LINES;
    const int lane = (int)threadIdx.x % 32, quarter = lane % 4;
    const int64_t warp = (int64_t)blockIdx.x * (FIXED_PACK_THREADS / 32) + (int)threadIdx.x / 32;
    if (warp >= warps)
        return;
    const int64_t chunk = warp % to.chunks, group = warp / to.chunks;
    const int64_t panel = group / groups, batch = panel / to.panels;
    const int in_panel = (int)(group % groups) * FIXED_LINES + lane / 4;
    const int64_t line = panel % to.panels * lines + in_panel, k = chunk * RO_DOT_CHUNK;
    const int left = to.stages - (int)chunk * WGMMA_STAGES;
    const int stages = left < WGMMA_STAGES ? left : (int)WGMMA_STAGES;
    const int count = stages * WGMMA_STEPS - quarter * 4;
    const fixed_scale low = fixed_line_scale<digits>(x, batch, line, k + quarter * 4, count);
    const fixed_scale high = fixed_line_scale<digits>(x, batch, line + 8, k + quarter * 4, count);
    uint32_t any_low = 0, any_high = 0;
#pragma unroll 1
    for (int i = 0; i < stages; i++) {
        const int64_t at = k + i * WGMMA_STEPS + quarter * 16;
        unsigned char *const out = to.digits + (panel * to.stages + chunk * WGMMA_STAGES + i) *
                                                   (fixed_places<digits> * plane);
        any_low |= wgmma_pack_steps<digits>(x, batch, line, at, low,
                                            out + wgmma_place(in_panel, quarter * 16), plane);
        any_high |= wgmma_pack_steps<digits>(x, batch, line + 8, at, high,
                                             out + wgmma_place(in_panel + 8, quarter * 16), plane);
    }
#pragma unroll
    for (int lanes = 1; lanes < 4; lanes *= 2) {
        any_low |= __shfl_xor_sync(RO_ALL_LANES, any_low, lanes);
        any_high |= __shfl_xor_sync(RO_ALL_LANES, any_high, lanes);
    }
    if (quarter == 0) {
        float *const scales = to.scales + (panel * to.chunks + chunk) * lines + in_panel;
        scales[0] = wgmma_scale(low, any_low != 0), scales[8] = wgmma_scale(high, any_high != 0);
    }
    if (digits == 1 && (low.bits != RO_FIXED_8 || high.bits != RO_FIXED_8))
        atomicMax(to.seconds + panel * to.chunks + chunk, 1u);
}

/* ---- a chunk's end ---- */

/* Whether near * 2^p, for all powers of two that the scales of two lines give, is a binary32 number
 * or 0 whatever the sum: then one fma rounds as a product and an addition would. |near| is at most
 * 2^54, and a whole number, so that 2^p may be as small as 2^-149. */
RO_DEVICE bool wgmma_is_plain(uint32_t least_a, uint32_t most_a, uint32_t least_b,
                              uint32_t most_b) {
    return ro_from_bits(least_a) * ro_from_bits(least_b) > 0.0f &&
           ro_from_bits(most_a) * ro_from_bits(most_b) <= 0x1p73f;
}

/* Where scales of a stage lie, and those of a thread. */
struct wgmma_lines {
    const float *rows, *columns;
    int row, lane; /* the warp's first row */

    /* The same for all lanes. */
    template <class Tile> RO_DEVICE bool are_plain() const {
        uint32_t least = ro_to_bits(columns[lane]), most = least;
#pragma unroll
        for (int n = 32; n < Tile::N; n += 32) {
            const uint32_t other = ro_to_bits(columns[n + lane]);
            least = other < least ? other : least, most = other > most ? other : most;
        }
        const uint32_t own = ro_to_bits(rows[row + lane % 16]);
        return wgmma_is_plain(
            __reduce_min_sync(RO_ALL_LANES, own), __reduce_max_sync(RO_ALL_LANES, own),
            __reduce_min_sync(RO_ALL_LANES, least), __reduce_max_sync(RO_ALL_LANES, most));
    }
};

/* What the seconds of a panel of a and of one of b make of a chunk. */
enum { WGMMA_ONE, WGMMA_A_TWO, WGMMA_B_TWO, WGMMA_BOTH };

template <class Tile> struct wgmma_sums {
    int at[Tile::SUMS][Tile::EACH];
    float total[Tile::EACH];

    RO_DEVICE void clear_totals() {
#pragma unroll
        for (int i = 0; i < Tile::EACH; i++)
            total[i] = 0.0f;
    }

    /* One stage; `first`: of its chunk. of_a and of_b are digits that the panels have. */
    template <int of_a, int of_b> RO_DEVICE void multiply(uint64_t a, uint64_t b, bool first) {
#pragma unroll
        for (int i = 0; i < Tile::SUMS; i++)
            ro_hold(at[i]);
        ro_products_begin();
#pragma unroll
        for (int k = 0; k < WGMMA_STEPS; k += 32)
#pragma unroll
            for (int i = 0; i < of_a; i++)
#pragma unroll
                for (int j = 0; j < of_b; j++) {
                    const bool begins = k == 0 && (i == 0 || j == of_b - 1);
                    wgmma_multiply(at[i + j], a + ((i * Tile::DIGIT_A + k) >> 4),
                                   b + ((j * Tile::DIGIT_B + k) >> 4), begins ? !first : 1);
                }
        ro_products_end();
#pragma unroll
        for (int i = 0; i < Tile::SUMS; i++)
            ro_hold(at[i]);
    }

    RO_DEVICE void multiply(uint64_t a, uint64_t b, bool first, int seconds) {
        if constexpr (!Tile::MAY_LACK)
            multiply<Tile::DIGITS, Tile::DIGITS>(a, b, first);
        else if (seconds == WGMMA_ONE)
            multiply<1, 1>(a, b, first);
        else if (seconds == WGMMA_A_TWO)
            multiply<2, 1>(a, b, first);
        else if (seconds == WGMMA_B_TWO)
            multiply<1, 2>(a, b, first);
        else
            multiply<2, 2>(a, b, first);
    }

    /* The sum of element i of the thread. `places`: sums that the chunk has. */
    template <int places> RO_DEVICE auto whole(int i, const wgmma_powers &p) const {
        if constexpr (places == 5) {
            const int high = at[4][i] * p.k8 + at[3][i]; /* below 2^31 */
            const int64_t low = ro_multiply_wide(at[1][i], p.k8, at[0][i]);
            return ro_multiply_wide(high, p.k24, ro_multiply_wide(at[2][i], p.k16, low));
        } else if constexpr (places == 3) {
            /* |at[1]| <= 2 * 256 * 127 * 128 */
            return ro_multiply_wide(at[2][i], p.k16, at[1][i] * p.k8 + at[0][i]);
        } else if constexpr (places == 2) {
            return at[1][i] * p.k8 + at[0][i];
        } else {
            return at[0][i];
        }
    }
    static RO_DEVICE float near(int64_t sum) {
        return __ll2float_rn(sum);
    }
    static RO_DEVICE float near(int sum) {
        return __int2float_rn(sum);
    }

    /* Adds the chunk to the totals. */
    template <int places> RO_DEVICE void end_chunk(const wgmma_lines &l, const wgmma_powers &p) {
        const bool plain = l.are_plain<Tile>();
        const float scale[2] = {l.rows[l.row + l.lane / 4], l.rows[l.row + l.lane / 4 + 8]};
#pragma unroll
        for (int j = 0; j < Tile::N / 8; j++) {
            const float2 column = reinterpret_cast<const float2 *>(l.columns)[4 * j + l.lane % 4];
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const float row = scale[q / 2], of_b = q % 2 ? column.y : column.x;
                float &to = total[4 * j + q];
                if (plain)
                    to = ro_fma(near(whole<places>(4 * j + q, p)), row * of_b, to);
                else
                    to += term(whole<places>(4 * j + q, p), row, of_b);
            }
        }
    }
    static RO_DEVICE float term(int64_t sum, float a, float b) {
        return a != a || b != b ? RO_F32_NAN
                                : ro_fixed_rounded(sum, wgmma_power(a) + wgmma_power(b));
    }

    RO_DEVICE void end_chunk(const wgmma_lines &l, const wgmma_powers &p, int seconds) {
        if constexpr (!Tile::MAY_LACK)
            end_chunk<Tile::SUMS>(l, p);
        else if (seconds == WGMMA_ONE)
            end_chunk<1>(l, p);
        else if (seconds != WGMMA_BOTH)
            end_chunk<2>(l, p);
        else
            end_chunk<3>(l, p);
    }
};

/* ---- where a thread's elements are ---- */

/* Its first row and column: four for each eight columns, as wgmma_multiply has them. */
struct wgmma_corner {
    int64_t row, column;
};

template <class Tile, class Out>
RO_DEVICE void wgmma_start(const gemm_shape &s, const Out &out, const gemm_block &block,
                           wgmma_corner c, wgmma_sums<Tile> &sums) {
    sums.clear_totals();
    if constexpr (requires { out.goes_on; }) {
#pragma unroll
        for (int i = 0; i < Tile::EACH; i++) {
            const int64_t m = c.row + i % 4 / 2 * 8, n = c.column + i / 4 * 8 + i % 2;
            if (out.goes_on && m < s.m && n < s.n)
                sums.total[i] = out.line(block.batch, m)[n];
        }
    }
}

template <class Tile, class Out>
RO_DEVICE void wgmma_store(const gemm_shape &s, const Out &out, const gemm_block &block,
                           wgmma_corner c, const wgmma_sums<Tile> &sums) {
    const int64_t rows = out.rows(s, block.batch);
#pragma unroll
    for (int i = 0; i < Tile::EACH; i++) {
        const int64_t m = c.row + i % 4 / 2 * 8, n = c.column + i / 4 * 8 + i % 2;
        if (m < rows && n < s.n)
            out.line(block.batch, m)[n] = gemm_result(sums.total[i], out.alpha, 0.0f, nullptr);
    }
}

/* Ends elements by out.end, as fixed_end does. */
template <class Tile, class Out>
RO_DEVICE void wgmma_end(const gemm_shape &s, const Out &out, wgmma_corner c,
                         const wgmma_sums<Tile> &sums, int lane) {
    const bool second = lane % 2;
    const int64_t m = c.row + 8 * second, column = c.column - (second ? 2 : 0);
#pragma unroll
    for (int j = 0; j < Tile::N / 8; j++) {
        const float *const t = sums.total + 4 * j;
        const float x = __shfl_xor_sync(RO_ALL_LANES, second ? t[0] : t[2], 1);
        const float y = __shfl_xor_sync(RO_ALL_LANES, second ? t[1] : t[3], 1);
        const float4 four = second ? make_float4(x, y, t[2], t[3]) : make_float4(t[0], t[1], x, y);
        const int64_t n = column + 8 * j;
        if (m < s.m && n < s.n)
            out.end(m, n, s.n - n, four);
    }
}

/* ---- the kernel ---- */

/* Barriers of the ring: a stage is full, both groups have used it, the first one has multiplied. */
template <class Tile> struct wgmma_barriers {
    uint32_t memory;
    RO_DEVICE uint32_t full(int slot) const {
        return memory + Tile::AT_FULL + slot * 8;
    }
    RO_DEVICE uint32_t empty(int slot) const {
        return memory + Tile::AT_EMPTY + slot * 8;
    }
    RO_DEVICE uint32_t ahead(int slot) const {
        return memory + Tile::AT_AHEAD + slot * 8;
    }
    RO_DEVICE void make() const {
        for (int slot = 0; slot < Tile::RING; slot++) {
            ro_barrier_init(full(slot), 1);
            ro_barrier_init(empty(slot), 8); /* warps that multiply */
            ro_barrier_init(ahead(slot), 4);
        }
        ro_barriers_made();
    }
};

/* The work of a block: tiles blockIdx.x, blockIdx.x + gridDim.x, ... */
template <class F> RO_DEVICE void wgmma_each_tile(const gemm_shape &s, const F &f) {
    const unsigned tiles = (unsigned)(s.tiles_m * s.tiles_n) * (unsigned)s.batch;
#pragma unroll 1
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x)
        f(gemm_block::of(s, tile));
}

/* A panel of an operand in shared memory. */
template <class Tile, int lines> struct wgmma_panel {
    static constexpr int DIGIT = lines * WGMMA_ROW, ALL = Tile::DIGITS * DIGIT;
    const unsigned char *digits;
    const float *scales;
    const unsigned *seconds;
    int bytes; /* to copy in this chunk */

    RO_DEVICE wgmma_panel(const wgmma_operand &x, int64_t batch, int64_t panel) {
        panel += batch * x.panels;
        digits = x.digits + panel * x.stages * ALL;
        scales = x.scales + panel * x.chunks * lines;
        seconds = x.seconds + panel * x.chunks;
        bytes = ALL;
    }
    RO_DEVICE void begin_chunk() {
        if constexpr (Tile::MAY_LACK)
            bytes = *seconds ? ALL : DIGIT;
    }
    RO_DEVICE void end_chunk() {
        scales += lines, seconds++;
    }
    RO_DEVICE void copy(uint32_t to, uint32_t barrier) {
        ro_bulk_copy(to, digits, bytes, barrier);
        digits += ALL;
    }
    RO_DEVICE void copy_scales(uint32_t to, uint32_t barrier) const {
        ro_bulk_copy(to, scales, lines * 4, barrier);
    }
};

/* One thread: keeps the ring full. */
template <class Tile>
RO_DEVICE void wgmma_copy(const gemm_shape &s, const wgmma_operand &a, const wgmma_operand &b,
                          uint32_t memory) {
    const wgmma_barriers<Tile> barriers = {memory};
    wgmma_ring<Tile::RING> ring;
    wgmma_each_tile(s, [&](const gemm_block &block) {
        wgmma_panel<Tile, WGMMA_LINES> upper(a, block.batch, 2 * block.tile_m);
        wgmma_panel<Tile, WGMMA_LINES> lower(a, block.batch, 2 * block.tile_m + 1);
        wgmma_panel<Tile, Tile::N> columns(b, block.batch, block.tile_n);
#pragma unroll 1
        for (int stage = 0; stage < a.stages; stage++, ring.next()) {
            const bool last = stage % WGMMA_STAGES == WGMMA_STAGES - 1 || stage == a.stages - 1;
            const uint32_t to = memory + ring.slot * Tile::STAGE, full = barriers.full(ring.slot);
            if (stage % WGMMA_STAGES == 0)
                upper.begin_chunk(), lower.begin_chunk(), columns.begin_chunk();
            ro_barrier_wait(barriers.empty(ring.slot), ring.round ^ 1);
            ro_barrier_expect(full, upper.bytes + lower.bytes + columns.bytes +
                                        (last ? Tile::SCALES : 0));
            upper.copy(to, full);
            lower.copy(to + Tile::A, full);
            columns.copy(to + Tile::AT_B, full);
            if (last) {
                upper.copy_scales(to + Tile::AT_SCALES, full);
                lower.copy_scales(to + Tile::AT_SCALES + WGMMA_LINES * 4, full);
                columns.copy_scales(to + Tile::AT_SCALES + Tile::M * 4, full);
                upper.end_chunk(), lower.end_chunk(), columns.end_chunk();
            }
        }
    });
}

/* A group of four warps: rows 64 `group` to 64 `group` + 63 of each tile. */
template <class Tile, class Out>
RO_DEVICE void wgmma_compute(const gemm_shape &s, const wgmma_operand &a, const wgmma_operand &b,
                             const Out &out, const wgmma_powers &powers, const unsigned char *smem,
                             uint32_t memory, int group) {
    const int thread = (int)threadIdx.x % 128, lane = thread % 32;
    const int first = group * WGMMA_LINES + thread / 32 * 16; /* the warp's first row */
    const wgmma_barriers<Tile> barriers = {memory};
    wgmma_ring<Tile::RING> ring;
    wgmma_sums<Tile> sums;
#pragma unroll
    for (int i = 0; i < Tile::SUMS * Tile::EACH; i++)
        (&sums.at[0][0])[i] = 0;
    wgmma_each_tile(s, [&](const gemm_block &block) {
        const wgmma_corner corner = {block.row<Tile>() + first + lane / 4,
                                     block.col<Tile>() + lane % 4 * 2};
        const wgmma_panel<Tile, WGMMA_LINES> rows(a, block.batch, 2 * block.tile_m + group);
        const wgmma_panel<Tile, Tile::N> columns(b, block.batch, block.tile_n);
        int seconds = 0;
        wgmma_start<Tile>(s, out, block, corner, sums);
#pragma unroll 1
        for (int stage = 0; stage < a.stages; stage++, ring.next()) {
            const int in = stage % WGMMA_STAGES, chunk = stage / WGMMA_STAGES;
            const int at = ring.slot * Tile::STAGE;
            if (Tile::MAY_LACK && in == 0)
                seconds = __shfl_sync(RO_ALL_LANES,
                                      (int)(rows.seconds[chunk] | columns.seconds[chunk] << 1), 0);
            ro_barrier_wait(barriers.full(ring.slot), ring.round);
            if (group == 1)
                ro_barrier_wait(barriers.ahead(ring.slot), ring.round);
            sums.multiply(wgmma_descriptor(memory + at + group * Tile::A),
                          wgmma_descriptor(memory + at + Tile::AT_B), in == 0, seconds);
            if (group == 0 && lane == 0)
                ro_barrier_arrive(barriers.ahead(ring.slot));
            if (in == WGMMA_STAGES - 1 || stage == a.stages - 1) {
                const float *const scales =
                    reinterpret_cast<const float *>(smem + at + Tile::AT_SCALES);
                sums.end_chunk({scales, scales + Tile::M, first, lane}, powers, seconds);
                __syncwarp();
            }
            if (lane == 0)
                ro_barrier_arrive(barriers.empty(ring.slot));
        }
        if constexpr (Out::ENDS)
            wgmma_end<Tile>(s, out, corner, sums, lane);
        else
            wgmma_store<Tile>(s, out, block, corner, sums);
    });
}

template <class Tile, class Out>
__global__ void __launch_bounds__(WGMMA_THREADS, 1)
    wgmma_kernel(const __grid_constant__ gemm_shape s, const __grid_constant__ wgmma_operand a,
                 const __grid_constant__ wgmma_operand b, const __grid_constant__ Out out,
                 const __grid_constant__ wgmma_powers powers) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    RO_SMEM(unsigned char, all);
    const uint32_t begins = ro_shared_address(all);
    const unsigned char *const smem = all + (0 - begins) % WGMMA_PATTERN;
    const uint32_t memory = begins + (0 - begins) % WGMMA_PATTERN;
    const int group = __shfl_sync(RO_ALL_LANES, (int)threadIdx.x / 128, 0);
    if (threadIdx.x == 0)
        wgmma_barriers<Tile>{memory}.make();
    __syncthreads();
    if (group == 0) {
        ro_fewer_registers<WGMMA_FEW>();
        if (threadIdx.x == 0)
            wgmma_copy<Tile>(s, a, b, memory);
    } else {
        ro_more_registers<WGMMA_MANY>();
        wgmma_compute<Tile>(s, a, b, out, powers, smem, memory, group - 1);
    }
#else
    __trap(); /* other cards never launch it: ro_wgmma_on */
#endif
}

#endif
