/* Checks the sums of a fixed product while it is computed (repops/guard.h).
 *
 * The kernel that multiplies adds up the sums of each row of a chunk, modulo 2^32, before scaling
 * them. Before that, other units than those for bytes have added up the columns of packed b, and
 * multiplied the rows of packed a by their sum: both results must be equal. Digits count as powers
 * of 257 instead of 256: these are odd, so no bit of a sum is lost. */
#ifndef REPOPS_CUDA_FIXED_CHECK_CUH
#define REPOPS_CUDA_FIXED_CHECK_CUH

#include "repops/cuda/gemm/fixed.cuh"

/* Returns the sum of sum[i * stride] 257^i. */
template <int places> RO_DEVICE uint32_t fixed_odd(const int *sum, int stride) {
    uint32_t s = 0;
#pragma unroll
    for (int i = places - 1; i >= 0; i--)
        s = s * 257 + (uint32_t)sum[i * stride];
    return s;
}

RO_DEVICE uint32_t fixed_all_four(uint32_t x) {
    return (uint32_t)fixed_all_four((int)x);
}

/* Bits of a sum in row 0 of the first product that a test flips; 0: none. */
struct fixed_flip {
    int64_t chunk;
    int place, column;
    uint32_t bits;
};

enum {
    FIXED_FLIPS = 32 /* columns of row 0 in which a test may flip bits; every tile has as many */
};

/* The array [batch, chunk, line] to which the kernel that multiplies adds the sums of its rows. */
struct fixed_check {
    uint32_t *got;
    int64_t lines; /* lines of whole groups */
    int64_t chunks;
    fixed_flip flip;

    RO_DEVICE uint32_t *row(int64_t batch, int64_t chunk, int64_t line) const {
        return got + (batch * chunks + chunk) * lines + line;
    }

    /* Adds the sums of a warp's rows, from row `line` and column `column` of the product on. */
    template <class Tile>
    RO_DEVICE void add(fixed_sums<Tile> &sums, int64_t batch, int64_t chunk, int64_t line,
                       int64_t column, int lane) const {
        static_assert(2 * Tile::ROWS == 4 && 8 * Tile::COLS == FIXED_FLIPS, "a row for each lane");
        uint32_t row_sum[4] = {}, own = 0;
        if (flip.bits != 0 && chunk == flip.chunk && (batch | line | column) == 0)
            change(sums, lane);
#pragma unroll
        for (int m = 0; m < Tile::ROWS; m++)
#pragma unroll
            for (int n = 0; n < Tile::COLS; n++)
#pragma unroll
                for (int q = 0; q < 4; q++)
                    row_sum[2 * m + q / 2] +=
                        fixed_odd<Tile::SUMS>(&sums.at[0][m][n][q], Tile::TILES * 4);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t all = fixed_all_four(row_sum[i]);
            own = i == lane % 4 ? all : own;
        }
        line += lane % 4 * 8 + lane / 4;
        if (line < lines)
            atomicAdd(row(batch, chunk, line), own);
    }

    /* Flips bits of a sum of row 0. */
    template <class Tile> RO_DEVICE void change(fixed_sums<Tile> &sums, int lane) const {
#pragma unroll
        for (int place = 0; place < Tile::SUMS; place++)
#pragma unroll
            for (int n = 0; n < 2 * Tile::COLS; n++)
                sums.at[place][0][n / 2][n % 2] ^=
                    lane < 4 && place == flip.place && n / 2 * 8 + lane * 2 + n % 2 == flip.column
                        ? (int)flip.bits
                        : 0;
    }
};

/* An output whose sums are checked. */
template <class Out> struct fixed_checked : Out { fixed_check check; };

/* ---- expected sums of rows ---- */

enum {
    FIXED_SUM_GROUPS = 8, /* groups of lines that a warp adds up */
    FIXED_SUM_THREADS = 256
};

/* Reads a lane's part of a packed group: words of digits in blocks of 32 steps, and words of scales
 * in chunks. With l = lane / 4 and q = lane % 4 * 4, a vector has steps q to q + 3 and 16 + q to 19
 * + q of line l, and then the same steps of line l + 8. */
template <int form> struct fixed_reader {
    static constexpr int PLACES = fixed_places<form>;
    fixed_packed x;

    RO_DEVICE uint4 digits(int64_t batch, int64_t group, int64_t block, int place, int lane) const {
        return x.data[(batch * x.blocks + block) * x.block + group * fixed_group<form> +
                      place * 32 + lane];
    }
    /* Adds the words that kernels read: those of a chunk's first block, for second digits, and last
     * block. */
    RO_DEVICE uint32_t scales(int64_t batch, int64_t group, int64_t chunk, int lane) const {
        const int64_t first = chunk * FIXED_BLOCKS, end = first + FIXED_BLOCKS;
        const int64_t last = (end < x.blocks ? end : x.blocks) - 1;
        const auto word = [&](int64_t block) {
            return reinterpret_cast<const uint32_t *>(
                x.data + (batch * x.blocks + block) * x.block + group * fixed_group<form> +
                PLACES * 32)[lane];
        };
        return lane < FIXED_LINES ? word(first) + word(last) : 0;
    }
};

/* The size of a packed operand, and how its groups are shared out among warps. */
struct fixed_share {
    int64_t batch, blocks, chunks, groups;

    static __host__ fixed_share of(int64_t batch, int64_t k, int64_t lines) {
        return {batch, ceil_div(k, FIXED_STEPS), ceil_div(k, RO_DOT_CHUNK),
                ceil_div(lines, FIXED_LINES)};
    }
    __host__ int64_t slices() const {
        return ceil_div(groups, FIXED_SUM_GROUPS);
    }
    /* Return the first group of a warp's slice, and one past its last. */
    RO_DEVICE int64_t first(int64_t slice) const {
        return slice * FIXED_SUM_GROUPS;
    }
    RO_DEVICE int64_t end(int64_t slice) const {
        const int64_t end = first(slice) + FIXED_SUM_GROUPS;
        return end < groups ? end : groups;
    }
};

RO_DEVICE int64_t fixed_sum_warp() {
    return (int64_t)blockIdx.x * (FIXED_SUM_THREADS / 32) + threadIdx.x / 32;
}

/* Adds the four digits of a word to four sums. */
RO_DEVICE void fixed_add_digits(int (&sum)[4], uint32_t word) {
#pragma unroll
    for (int i = 0; i < 4; i++)
        sum[i] = __dp4a((int)word, 1 << (8 * i), sum[i]);
}

/* Adds up the lines of b at each step: [batch, chunk, step]. A warp adds one block of a slice. */
template <class Reader>
__global__ void __launch_bounds__(FIXED_SUM_THREADS)
    fixed_columns_kernel(const __grid_constant__ Reader b, const __grid_constant__ fixed_share s,
                         uint32_t *to, int64_t warps) {
    const int lane = (int)threadIdx.x % 32;
    const int64_t warp = fixed_sum_warp();
    if (warp >= warps)
        return;
    const int64_t block = warp % s.blocks, batch = warp / s.blocks % s.batch;
    const int64_t slice = warp / s.blocks / s.batch, end = s.end(slice);
    int sum[Reader::PLACES][2][4] = {};
    for (int64_t group = s.first(slice); group < end; group++)
#pragma unroll
        for (int place = 0; place < Reader::PLACES; place++) {
            const uint4 v = b.digits(batch, group, block, place, lane);
            fixed_add_digits(sum[place][0], v.x), fixed_add_digits(sum[place][0], v.z);
            fixed_add_digits(sum[place][1], v.y), fixed_add_digits(sum[place][1], v.w);
        }
    uint32_t *const at = to + (batch * s.chunks + block / FIXED_BLOCKS) * RO_DOT_CHUNK +
                         block % FIXED_BLOCKS * FIXED_STEPS + lane * 4;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        uint32_t all = fixed_odd<Reader::PLACES>(&sum[0][i / 4][i % 4], 8);
#pragma unroll
        for (int lanes = 4; lanes < 32; lanes *= 2)
            all += __shfl_xor_sync(RO_ALL_LANES, all, lanes);
        if (lane < 4)
            atomicAdd(at + i / 4 * (FIXED_STEPS / 2) + i % 4, all);
    }
}

/* Turns four sums into four words of digits: word i has digit i of each. */
RO_DEVICE void fixed_sum_digits(uint4 sums, uint32_t *word) {
    const auto of = [](uint32_t x) { return (x + 0x80808080u) ^ 0x80808080u; };
    const uint32_t a = of(sums.x), b = of(sums.y), c = of(sums.z), d = of(sums.w);
    const uint32_t low = __byte_perm(a, b, 0x5140), high = __byte_perm(c, d, 0x5140);
    const uint32_t low_2 = __byte_perm(a, b, 0x7362), high_2 = __byte_perm(c, d, 0x7362);
    word[0] = __byte_perm(low, high, 0x5410), word[1] = __byte_perm(low, high, 0x7632);
    word[2] = __byte_perm(low_2, high_2, 0x5410), word[3] = __byte_perm(low_2, high_2, 0x7632);
}

/* Multiplies the rows of a by the sum of the columns of b: [batch, chunk, line]. A warp multiplies
 * one chunk of a slice. */
template <class Reader>
__global__ void __launch_bounds__(FIXED_SUM_THREADS)
    fixed_rows_kernel(const __grid_constant__ Reader a, const __grid_constant__ fixed_share s,
                      const uint32_t *columns, uint32_t *to, int64_t warps) {
    const int lane = (int)threadIdx.x % 32;
    const int64_t warp = fixed_sum_warp();
    if (warp >= warps)
        return;
    const int64_t chunk = warp % s.chunks, batch = warp / s.chunks % s.batch;
    const int64_t slice = warp / s.chunks / s.batch, end = s.end(slice);
    const int64_t at = batch * s.chunks + chunk, block = chunk * FIXED_BLOCKS;
    uint32_t of_b[FIXED_BLOCKS][2][4];
#pragma unroll
    for (int i = 0; i < 2 * FIXED_BLOCKS; i++)
        fixed_sum_digits(
            reinterpret_cast<const uint4 *>(columns + at * RO_DOT_CHUNK)[i * 4 + lane % 4],
            of_b[i / 2][i % 2]);
    for (int64_t group = s.first(slice); group < end; group++) {
        uint32_t low = 0, high = 0;
#pragma unroll
        for (int place = Reader::PLACES - 1; place >= 0; place--) {
            int sum[2][4] = {};
#pragma unroll
            for (int i = 0; i < FIXED_BLOCKS; i++) {
                if (block + i >= s.blocks)
                    break;
                const uint4 v = a.digits(batch, group, block + i, place, lane);
#pragma unroll
                for (int d = 0; d < 4; d++) {
                    sum[0][d] = __dp4a((int)v.x, (int)of_b[i][0][d], sum[0][d]);
                    sum[0][d] = __dp4a((int)v.y, (int)of_b[i][1][d], sum[0][d]);
                    sum[1][d] = __dp4a((int)v.z, (int)of_b[i][0][d], sum[1][d]);
                    sum[1][d] = __dp4a((int)v.w, (int)of_b[i][1][d], sum[1][d]);
                }
            }
            const auto whole = [](const int *x) {
                return (uint32_t)x[0] + ((uint32_t)x[1] << 8) + ((uint32_t)x[2] << 16) +
                       ((uint32_t)x[3] << 24);
            };
            low = low * 257 + whole(sum[0]), high = high * 257 + whole(sum[1]);
        }
        low = fixed_all_four(low), high = fixed_all_four(high);
        if (lane % 4 == 0) {
            uint32_t *const line = to + (at * s.groups + group) * FIXED_LINES + lane / 4;
            line[0] = low, line[8] = high;
        }
    }
}

/* Adds up the scales of lines: [batch, chunk]. A warp adds one chunk of a slice. */
template <class Reader>
__global__ void __launch_bounds__(FIXED_SUM_THREADS)
    fixed_scales_kernel(const __grid_constant__ Reader x, const __grid_constant__ fixed_share s,
                        uint32_t *to, int64_t warps) {
    const int lane = (int)threadIdx.x % 32;
    const int64_t warp = fixed_sum_warp();
    if (warp >= warps)
        return;
    const int64_t chunk = warp % s.chunks, batch = warp / s.chunks % s.batch;
    const int64_t slice = warp / s.chunks / s.batch, end = s.end(slice);
    uint32_t all = 0;
    for (int64_t group = s.first(slice); group < end; group++)
        all += x.scales(batch, group, chunk, lane);
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2)
        all += __shfl_xor_sync(RO_ALL_LANES, all, lanes);
    if (lane == 0)
        atomicAdd(to + batch * s.chunks + chunk, all);
}

#endif
