/* The sums of a tile on sm_90a: adds the products of a stage, and a chunk's sums to the totals. */
#ifndef REPOPS_CUDA_WGMMA_SUMS_CUH
#define REPOPS_CUDA_WGMMA_SUMS_CUH

#include "repops/cuda/gemm/wgmma_pack.cuh"

/* 2^8, 2^16 and 2^24 as arguments: if the compiler knew them, it would split wide products. */
struct wgmma_powers {
    int k8, k16, k24;
};

/* `digits` as in fixed_tile; 128 rows by n columns. */
template <int digits, int n, int stages> struct wgmma_tile {
    static constexpr int FORM = digits, DIGITS = fixed_places<digits>, SUMS = 2 * DIGITS - 1;
    static constexpr bool MAY_LACK = digits == 1; /* second digits may be missing */
    static constexpr int M = 2 * WGMMA_LINES, N = n, EACH = n / 2, RING = stages;
    /* Bytes of one digit, of a panel, and of a stage in shared memory. */
    static constexpr int DIGIT_A = (int)WGMMA_LINES * (int)WGMMA_ROW, DIGIT_B = n * WGMMA_ROW;
    static constexpr int A = DIGITS * DIGIT_A, B = DIGITS * DIGIT_B;
    static constexpr int AT_B = 2 * A, AT_SCALES = AT_B + B, SCALES = (M + n) * 4;
    static constexpr int STAGE =
        (AT_SCALES + SCALES + WGMMA_PATTERN - 1) / (int)WGMMA_PATTERN * (int)WGMMA_PATTERN;
    static constexpr int AT_FULL = RING * STAGE, AT_EMPTY = AT_FULL + RING * 8,
                         AT_AHEAD = AT_EMPTY + RING * 8;
    /* Room to align: the launch's shared memory may begin anywhere in a pattern. */
    static constexpr int BYTES = AT_AHEAD + RING * 8 + WGMMA_PATTERN;
    static_assert(DIGIT_A % WGMMA_PATTERN == 0 && DIGIT_B % WGMMA_PATTERN == 0, "patterns");
};

/* ---- the end of a chunk ---- */

/* Returns the exponent of a scale, which is a power of two. */
RO_DEVICE int wgmma_power(float scale) {
    const uint32_t bits = ro_to_bits(scale);
    return bits >> 23 ? (int)(bits >> 23) - 127 : -118 - __clz((int)bits);
}

/* Returns whether near * 2^p is a binary32 number or 0 for every sum, where 2^p is any product of
 * two lines' scales: then one fma rounds as a product and an addition would. near is a whole number
 * of at most 2^54 in magnitude, so 2^p may be as small as 2^-149. */
RO_DEVICE bool wgmma_is_plain(uint32_t least_a, uint32_t most_a, uint32_t least_b,
                              uint32_t most_b) {
    return ro_from_bits(least_a) * ro_from_bits(least_b) > 0.0f &&
           ro_from_bits(most_a) * ro_from_bits(most_b) <= 0x1p73f;
}

/* The scales of a stage, and which of them are a thread's. */
struct wgmma_lines {
    const float *rows, *columns;
    int row, lane; /* row: the warp's first row */

    /* Returns wgmma_is_plain for the scales of a warp's tile; all lanes get the same. */
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

/* The operands whose panels have second digits in a chunk: none, a, b, or both. */
enum { WGMMA_ONE, WGMMA_A_TWO, WGMMA_B_TWO, WGMMA_BOTH };

template <class Tile> struct wgmma_sums {
    int at[Tile::SUMS][Tile::EACH];
    float total[Tile::EACH];

    /* Discards the sums: the first product of a chunk replaces them. */
    RO_DEVICE void forget() {
#pragma unroll
        for (int i = 0; i < Tile::SUMS; i++)
            ro_forget(at[i]);
    }

    RO_DEVICE void clear_totals() {
#pragma unroll
        for (int i = 0; i < Tile::EACH; i++)
            total[i] = 0.0f;
    }

    /* Multiplies one stage; `first`: of its chunk. of_a and of_b: how many digits the panels
     * have. */
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

    /* Returns the whole sum of element i of the thread; the chunk has `places` sums. */
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

    static RO_DEVICE float term(int64_t sum, float a, float b) {
        return a != a || b != b ? RO_F32_NAN
                                : ro_fixed_rounded(sum, wgmma_power(a) + wgmma_power(b));
    }

    /* Adds a chunk with `places` sums to the totals. `plain`: the result of wgmma_is_plain. */
    template <int places, bool plain>
    RO_DEVICE void add_chunk(const wgmma_lines &l, const wgmma_powers &p) {
        const float scale[2] = {l.rows[l.row + l.lane / 4], l.rows[l.row + l.lane / 4 + 8]};
#pragma unroll
        for (int j = 0; j < Tile::N / 8; j++) {
            const float2 column = reinterpret_cast<const float2 *>(l.columns)[4 * j + l.lane % 4];
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const int i = 4 * j + q;
                const float row = scale[q / 2], of_b = q % 2 ? column.y : column.x;
                if constexpr (plain)
                    total[i] = ro_fma(near(whole<places>(i, p)), row * of_b, total[i]);
                else
                    total[i] += term(whole<places>(i, p), row, of_b);
            }
        }
    }

    /* ---- checked sums: fixed_check.cuh ---- */

    /* Adds the thread's sums in its two rows to `row`. */
    template <int places> RO_DEVICE void add_rows(uint32_t *row) const {
#pragma unroll
        for (int i = 0; i < Tile::EACH; i++)
            row[i % 4 / 2] += fixed_odd<places>(&at[0][i], Tile::EACH);
    }
    /* Flips bits of a sum of row 0. */
    RO_DEVICE void change(const fixed_flip &flip, int lane) {
#pragma unroll
        for (int place = 0; place < Tile::SUMS; place++)
#pragma unroll
            for (int i = 0; i < Tile::EACH; i++)
                if (place == flip.place && i % 4 < 2 && i / 4 * 8 + lane * 2 + i % 2 == flip.column)
                    at[place][i] ^= (int)flip.bits;
    }
    /* Adds the sums of rows l and l + 8 of a warp, where l = lane / 4, to to[0] and to[8]. */
    RO_DEVICE void check(uint32_t *to, int seconds, int lane) const {
        uint32_t row[2] = {};
        if (!Tile::MAY_LACK || seconds == WGMMA_BOTH)
            add_rows<Tile::SUMS>(row);
        else if (seconds == WGMMA_ONE)
            add_rows<1>(row);
        else
            add_rows<2>(row);
        row[0] = fixed_all_four(row[0]), row[1] = fixed_all_four(row[1]);
        if (lane % 4 < 2)
            atomicAdd(to + lane % 4 * 8, lane % 4 ? row[1] : row[0]);
    }

    RO_DEVICE void clear(int place) {
#pragma unroll
        for (int i = 0; i < Tile::EACH; i++)
            at[place][i] = 0;
    }

    RO_DEVICE void end_chunk(const wgmma_lines &l, const wgmma_powers &p, int seconds) {
        const bool plain = l.are_plain<Tile>();
        if (Tile::MAY_LACK && !plain && seconds == WGMMA_ONE)
            clear(1);
        if (Tile::MAY_LACK && !plain && seconds != WGMMA_BOTH)
            clear(2);
        if (!plain)
            add_chunk<Tile::SUMS, false>(l, p);
        else if (!Tile::MAY_LACK || seconds == WGMMA_BOTH)
            add_chunk<Tile::SUMS, true>(l, p);
        else if (seconds == WGMMA_ONE)
            add_chunk<1, true>(l, p);
        else
            add_chunk<2, true>(l, p);
    }
};

#endif
