/* Products by exact sums of integers (SPEC.md section 3.5) on sm_90a. fixed.cuh serves all other
 * cards, and explains how numbers become digits; here groups of four warps multiply digits that
 * stay in shared memory.
 *
 * A block has three groups. One thread of the first copies; the others have 64 rows of the tile
 * each. Packed operands have the layout of shared memory, stage after stage, so that few bulk
 * copies bring a stage. The second group begins a stage when the first one has multiplied it: so
 * one multiplies while the other one rounds. */
#ifndef REPOPS_CUDA_WGMMA_CUH
#define REPOPS_CUDA_WGMMA_CUH

#include "repops/cuda/gemm/wgmma_sums.cuh"

/* ---- positions of a thread's elements ---- */

/* A thread's first row and column: four elements in each eight columns, as in wgmma_multiply. */
struct wgmma_corner {
    int64_t row, column;

    template <class Tile> static RO_DEVICE wgmma_corner of(const gemm_block &block) {
        const int thread = (int)ro_thread_anew() - 128; /* after the group that copies */
        return {block.row<Tile>() + thread / 32 * 16 + thread % 32 / 4,
                block.col<Tile>() + thread % 4 * 2};
    }
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
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int64_t m = c.row + 8 * h, left = s.n - c.column;
        if (m >= out.rows(s, block.batch))
            continue;
        float *const to = out.line(block.batch, m) + c.column;
#pragma unroll
        for (int i = 0; i < Tile::EACH; i += 4)
#pragma unroll
            for (int q = 0; q < 2; q++)
                if (2 * i + q < left)
                    to[2 * i + q] =
                        gemm_result(sums.total[i + 2 * h + q], out.alpha, 0.0f, nullptr);
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

/* A slot in the ring of stages, and the parity of the times that it has been used. */
template <int stages> struct wgmma_ring {
    int slot = 0;
    uint32_t round = 0;
    RO_DEVICE void next() {
        if (++slot == stages)
            slot = 0, round ^= 1;
    }
};

/* Barriers of the ring: a stage has arrived; both groups have used it; the first has multiplied
 * it. */
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
            ro_barrier_init(empty(slot), 8); /* as many warps multiply */
            ro_barrier_init(ahead(slot), 4);
        }
        ro_barriers_made();
    }
};

/* Calls f for a block's tiles: numbers blockIdx.x, blockIdx.x + gridDim.x, ... */
template <class F> RO_DEVICE void wgmma_each_tile(const gemm_shape &s, const F &f) {
    const unsigned tiles = (unsigned)(s.tiles_m * s.tiles_n) * (unsigned)s.batch;
#pragma unroll 1
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x)
        f(tile);
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

/* Keeps the ring full; one thread runs it. */
template <class Tile>
RO_DEVICE void wgmma_copy(const gemm_shape &s, const wgmma_operand &a, const wgmma_operand &b,
                          uint32_t memory) {
    const wgmma_barriers<Tile> barriers = {memory};
    wgmma_ring<Tile::RING> ring;
    wgmma_each_tile(s, [&](unsigned tile) {
        const gemm_block block = gemm_block::of(s, tile);
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

/* Runs a group of four warps, for rows 64 `group` to 64 `group` + 63 of each tile. */
template <class Tile, class Out>
RO_DEVICE void wgmma_compute(const gemm_shape &s, const wgmma_operand &a, const wgmma_operand &b,
                             const Out &out, const wgmma_powers &powers, const unsigned char *smem,
                             uint32_t memory, int group) {
    const int thread = (int)threadIdx.x % 128, lane = thread % 32;
    const int first = group * WGMMA_LINES + thread / 32 * 16; /* the warp's first row */
    const wgmma_barriers<Tile> barriers = {memory};
    wgmma_ring<Tile::RING> ring;
    wgmma_sums<Tile> sums;
    wgmma_each_tile(s, [&](unsigned tile) {
        const gemm_block block = gemm_block::of(s, tile);
        const wgmma_panel<Tile, WGMMA_LINES> rows(a, block.batch, 2 * block.tile_m + group);
        const wgmma_panel<Tile, Tile::N> columns(b, block.batch, block.tile_n);
        int seconds = 0;
        [[maybe_unused]] uint32_t *checked = nullptr; /* gets the next chunk's sums of rows */
        [[maybe_unused]] bool checks_first = false;   /* this is row 0 of the first product */
        if constexpr (requires { out.check; }) {
            const int64_t line = block.row<Tile>() + first + lane / 4;
            checked = out.check.row(block.batch, 0, line);
            checks_first = line == 0 && block.batch == 0 && block.tile_n == 0;
        }
        sums.forget();
        wgmma_start<Tile>(s, out, block, wgmma_corner::of<Tile>(block), sums);
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
                if constexpr (requires { out.check; }) {
                    if (checks_first && out.check.flip.bits && chunk == out.check.flip.chunk)
                        sums.change(out.check.flip, lane);
                    sums.check(checked, seconds, lane);
                    checked += out.check.lines;
                }
                const float *const scales =
                    reinterpret_cast<const float *>(smem + at + Tile::AT_SCALES);
                sums.end_chunk({scales, scales + Tile::M, first, lane}, powers, seconds);
                __syncwarp();
            }
            if (lane == 0)
                ro_barrier_arrive(barriers.empty(ring.slot));
        }
        const gemm_block same = gemm_block::of(s, ro_anew(tile));
        if constexpr (Out::ENDS)
            wgmma_end<Tile>(s, out, wgmma_corner::of<Tile>(same), sums, lane);
        else
            wgmma_store<Tile>(s, out, same, wgmma_corner::of<Tile>(same), sums);
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
    __trap(); /* other cards never launch this: see ro_wgmma_built */
#endif
}

#endif
