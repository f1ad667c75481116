/* Products by exact sums of integers (SPEC.md section 3.5), by the units that multiply matrices of
 * bytes.
 *
 * An integer is two or three signed digits of a byte, so the product of two integers is four or
 * nine products of bytes. Products of digits i of a and j of b with the same i + j are added in one
 * register: in a chunk, at most 3 * 256 products of at most 2^14 each. Packing stores digits in the
 * order in which a warp multiplies them: 16 lines of an operand by 32 steps of k are 512 bytes for
 * each digit, of which each lane reads 16 at once.
 *
 * Integers of 8 bits have one digit, or two in uneven lines. Packed, they have room for two, and a
 * warp skips second digits that a group of lines does not have. */
#ifndef REPOPS_CUDA_FIXED_CUH
#define REPOPS_CUDA_FIXED_CUH

#include "repops/cuda/gemm/gemm.cuh"
#include "repops/src/fixed.h"

enum {
    FIXED_LINES = 16,                          /* lines of a group */
    FIXED_STEPS = 32,                          /* steps of k in a block */
    FIXED_BLOCKS = RO_DOT_CHUNK / FIXED_STEPS, /* blocks of a chunk */
    FIXED_PACK_THREADS = 256,
    FIXED_PACK_BLOCKS = 3, /* thread blocks per multiprocessor: with more, registers spill */
    FIXED_BEYOND = 256     /* an exponent for which every number becomes 0 */
};

/* How many digits packed integers have room for. */
template <int digits> constexpr int fixed_places = digits == 1 ? 2 : digits;

/* Vectors of a group in a block of k: digits, [digit, lane], then the exponents of its lines. */
template <int digits> constexpr int fixed_group = fixed_places<digits> * 32 + FIXED_LINES / 4;

/* One operand, packed: [batch, blocks, groups, vectors of a group]. */
struct fixed_packed {
    uint4 *data;
    int64_t groups, block; /* block: stride of blocks, in vectors */
    int blocks, chunks;
};

/* An operand that is not packed. */
struct fixed_lines {
    const float *data;
    int64_t line, step, next; /* strides: of lines, of steps of k, of products */
    int64_t lines, steps;
    bool fours; /* four steps can be loaded as one aligned vector */

    /* Loads four steps from k on; zeros past the ends. */
    RO_DEVICE float4 load(int64_t batch, int64_t l, int64_t k) const {
        const float *at = data + batch * next + l * line + k * step;
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (l >= lines || k >= steps)
            return v;
        if (fours)
            return *reinterpret_cast<const float4 *>(at);
        v.x = at[0];
        if (k + 1 < steps)
            v.y = at[step];
        if (k + 2 < steps)
            v.z = at[2 * step];
        if (k + 3 < steps)
            v.w = at[3 * step];
        return v;
    }
};

/* ---- packing: one warp for a group of lines in a chunk ---- */

RO_DEVICE uint32_t fixed_larger(uint32_t most, float x) {
    const uint32_t bits = __float_as_uint(x) & 0x7fffffffu;
    return bits > most ? bits : most;
}

/* How the numbers of a line become integers in a chunk. */
struct fixed_scale {
    int exponent, bits;

    /* Returns what end_chunk reads: the exponent. With one digit or two, it is that of integers of
     * 16 bits, times two, plus 1 if there are two digits. */
    template <int digits> RO_DEVICE int word() const {
        if constexpr (digits > 1)
            return exponent;
        const int two = bits == RO_FIXED_16;
        return (exponent == RO_FIXED_NONE || two ? exponent : exponent + 8) * 2 + two;
    }
    /* Returns the scale whose word this is. */
    template <int digits> static RO_DEVICE fixed_scale of(int word) {
        if constexpr (digits > 1)
            return {word, 8 * digits};
        const int e = word >> 1, two = word & 1;
        return {e == RO_FIXED_NONE || two ? e : e - 8, two ? RO_FIXED_16 : RO_FIXED_8};
    }
};

/* Returns the sum over the four lanes that share a line. */
RO_DEVICE int fixed_all_four(int x) {
    x += __shfl_xor_sync(RO_ALL_LANES, x, 1);
    return x + __shfl_xor_sync(RO_ALL_LANES, x, 2);
}

/* Counts numbers other than 0, and those among them that are small. */
RO_DEVICE void fixed_count(float x, uint32_t limit, int &numbers, int &small) {
    const uint32_t size = __float_as_uint(x) & 0x7fffffffu;
    numbers += size != 0;
    small += size != 0 && size < limit;
}

/* Four lanes share a line of a chunk, a quarter each. */
template <int digits, class Lines>
RO_DEVICE fixed_scale fixed_line_scale(const Lines &x, int64_t batch, int64_t line, int64_t k,
                                       int count) {
    uint32_t most = 0;
#pragma unroll 4
    for (int i = 0; i < count; i += FIXED_STEPS / 2) {
        const float4 v = x.load(batch, line, k + i);
        most = fixed_larger(fixed_larger(fixed_larger(fixed_larger(most, v.x), v.y), v.z), v.w);
    }
#pragma unroll
    for (int bits = 1; bits < 4; bits *= 2) {
        const uint32_t other = __shfl_xor_sync(RO_ALL_LANES, most, bits);
        most = other > most ? other : most;
    }
    fixed_scale s = {ro_fixed_exponent(most), 8 * digits};
    if constexpr (digits > 1)
        return s;
    const uint32_t limit = s.exponent == RO_FIXED_NONE ? 0 : ro_fixed_small(s.exponent);
    int numbers = 0, small = 0;
#pragma unroll 4
    for (int i = 0; i < count; i += FIXED_STEPS / 2) {
        const float4 v = x.load(batch, line, k + i);
        fixed_count(v.x, limit, numbers, small), fixed_count(v.y, limit, numbers, small);
        fixed_count(v.z, limit, numbers, small), fixed_count(v.w, limit, numbers, small);
    }
    s.bits = ro_fixed_line_bits(RO_FIXED_8, fixed_all_four(small), fixed_all_four(numbers));
    return s;
}

/* Computes the digits of four numbers, one word for each place. Adding 128 to each digit makes the
 * bytes unsigned; flipping their highest bits subtracts it again. */
template <int digits> RO_DEVICE void fixed_digits(float4 v, fixed_scale s, uint32_t *word) {
    const uint32_t bias = digits == 3 ? 0x808080u : 0x8080u;
    const int e = s.exponent == RO_FIXED_NONE ? FIXED_BEYOND : s.exponent;
    const auto of = [=](float x) {
        return ((uint32_t)ro_fixed_integer(x, digits == 1 ? s.bits : 8 * digits, e) + bias) ^ bias;
    };
    const uint32_t a = of(v.x), b = of(v.y), c = of(v.z), d = of(v.w);
    const uint32_t low = __byte_perm(a, b, 0x5140), high = __byte_perm(c, d, 0x5140);
    word[0] = __byte_perm(low, high, 0x5410);
    word[1] = __byte_perm(low, high, 0x7632);
    if constexpr (digits == 3)
        word[2] = __byte_perm(__byte_perm(a, b, 0x0062), __byte_perm(c, d, 0x0062), 0x5410);
}

/* Views need the bound: otherwise the compiler would choose fewer registers, and spill. Lines need
 * no more than it chooses, and would take more with the bound. */
template <class Lines>
constexpr int fixed_pack_blocks = std::is_same_v<Lines, fixed_lines> ? 0 : (int)FIXED_PACK_BLOCKS;

/* `Lines` has steps and load(batch, line, k), like fixed_lines. */
template <int digits, class Lines>
__global__ void __launch_bounds__(FIXED_PACK_THREADS, fixed_pack_blocks<Lines>)
    fixed_pack_kernel(const __grid_constant__ Lines x, const __grid_constant__ fixed_packed to,
                      int64_t warps) {
    const int lane = (int)threadIdx.x % 32, four = lane % 4 * 4;
    const int64_t warp = (int64_t)blockIdx.x * (FIXED_PACK_THREADS / 32) + (int)threadIdx.x / 32;
    if (warp >= warps)
        return;
    const int64_t chunk = warp % to.chunks, group = warp / to.chunks % to.groups;
    const int64_t batch = warp / to.chunks / to.groups, line = group * FIXED_LINES + lane / 4;
    const int64_t k = chunk * RO_DOT_CHUNK, left = x.steps - k;
    const int count = left < RO_DOT_CHUNK ? (int)left : (int)RO_DOT_CHUNK;
    const fixed_scale low = fixed_line_scale<digits>(x, batch, line, k + four, count - four);
    const fixed_scale high = fixed_line_scale<digits>(x, batch, line + 8, k + four, count - four);
    uint4 *out = to.data + (batch * to.blocks + chunk * FIXED_BLOCKS) * to.block +
                 group * fixed_group<digits>;
    for (int i = 0; i < count; i += FIXED_STEPS, out += to.block) {
        uint32_t word[4][fixed_places<digits>];
        const int64_t at = k + i + four, later = at + FIXED_STEPS / 2;
        fixed_digits<digits>(x.load(batch, line, at), low, word[0]);
        fixed_digits<digits>(x.load(batch, line, later), low, word[1]);
        fixed_digits<digits>(x.load(batch, line + 8, at), high, word[2]);
        fixed_digits<digits>(x.load(batch, line + 8, later), high, word[3]);
#pragma unroll
        for (int d = 0; d < fixed_places<digits>; d++)
            out[d * 32 + lane] = make_uint4(word[0][d], word[1][d], word[2][d], word[3][d]);
        if (lane % 4 == 0) {
            int *words = reinterpret_cast<int *>(out + fixed_places<digits> * 32) + lane / 4;
            words[0] = low.template word<digits>(), words[8] = high.template word<digits>();
        }
    }
}

/* ---- an operand in place: a block computes its digits while it multiplies ---- */

/* The words of fixed_scale for all lines of whole groups: [batch, chunks, groups, FIXED_LINES]. */
struct fixed_exponents {
    int *data;
    int64_t groups;
    int chunks;

    RO_DEVICE int *of(int64_t batch, int64_t chunk, int64_t group) const {
        return data + ((batch * chunks + chunk) * groups + group) * FIXED_LINES;
    }
};

template <class Lines> struct fixed_unpacked {
    Lines lines;
    fixed_exponents exponents;
    int blocks;
};

/* One warp for a group of lines in a chunk, as in packing. */
template <int digits, class Lines>
__global__ void __launch_bounds__(FIXED_PACK_THREADS, fixed_pack_blocks<Lines>)
    fixed_exponents_kernel(const __grid_constant__ Lines x,
                           const __grid_constant__ fixed_exponents to, int64_t warps) {
    const int lane = (int)threadIdx.x % 32, four = lane % 4 * 4;
    const int64_t warp = (int64_t)blockIdx.x * (FIXED_PACK_THREADS / 32) + (int)threadIdx.x / 32;
    if (warp >= warps)
        return;
    const int64_t chunk = warp % to.chunks, group = warp / to.chunks % to.groups;
    const int64_t batch = warp / to.chunks / to.groups, line = group * FIXED_LINES + lane / 4;
    const int64_t k = chunk * RO_DOT_CHUNK, left = x.steps - k;
    const int count = left < RO_DOT_CHUNK ? (int)left : (int)RO_DOT_CHUNK;
    const fixed_scale low = fixed_line_scale<digits>(x, batch, line, k + four, count - four);
    const fixed_scale high = fixed_line_scale<digits>(x, batch, line + 8, k + four, count - four);
    if (lane % 4 == 0) {
        int *const out = to.of(batch, chunk, group) + lane / 4;
        out[0] = low.template word<digits>(), out[8] = high.template word<digits>();
    }
}

/* ---- multiplying ---- */

/* A block of the output: warps_m x warps_n warps, each with ROWS x COLS results of the instruction,
 * 16 x 8 each. */
template <int digits, int rows, int cols, int warps_m, int warps_n, int stages,
          int per_multiprocessor>
struct fixed_tile {
    static constexpr int DIGITS = fixed_places<digits>, SUMS = 2 * DIGITS - 1, STAGES = stages;
    static constexpr int FORM = digits;           /* the template argument of packing's functions */
    static constexpr bool MAY_LACK = digits == 1; /* second digits may be missing */
    static constexpr int ROWS = rows, COLS = cols, TILES = rows * cols;
    static constexpr int WARPS_M = warps_m, THREADS = 32 * warps_m * warps_n;
    static constexpr int M = 16 * rows * warps_m, N = 8 * cols * warps_n,
                         BLOCKS = per_multiprocessor;
    static constexpr int GROUP = fixed_group<digits>, A = M / FIXED_LINES * GROUP;
    static constexpr int STAGE = A + N / FIXED_LINES * GROUP; /* in vectors */
    static constexpr int TOTALS = M * N / 4;
    static constexpr int BYTES = 16 * (STAGES * STAGE + TOTALS);
};

/* Copies the groups of an operand that a block multiplies, which are contiguous, to shared
 * memory. */
template <class Tile, int lines> struct fixed_source {
    static constexpr int VECTORS = lines / FIXED_LINES * Tile::GROUP;
    const uint4 *data; /* the thread's first vector */
    int left;          /* vectors that exist, from the block's first one on */

    RO_DEVICE fixed_source(const fixed_packed &x, int64_t batch, int64_t tile, int thread) {
        const int64_t group = tile * (lines / FIXED_LINES), most = lines / FIXED_LINES;
        const int64_t groups = x.groups - group < most ? x.groups - group : most;
        data = x.data + batch * x.blocks * x.block + group * Tile::GROUP + thread;
        left = (int)groups * Tile::GROUP;
    }
    /* Copies the next stage. Thread i copies vectors i, i + THREADS, ... */
    RO_DEVICE void copy(const fixed_packed &x, uint4 *to, int thread) {
#pragma unroll
        for (int i = 0; i < VECTORS; i += Tile::THREADS)
            if (VECTORS % Tile::THREADS == 0 || i + thread < VECTORS)
                ro_copy_async<16>(to + i + thread, data + i, i + thread < left);
        data += x.block;
    }
};

/* Brings the rows of a block to shared memory: `load` starts to load those of a stage, `store`
 * stores what a thread has loaded. Packed rows are copied asynchronously, not through registers. */
template <class Tile, class A> struct fixed_rows {
    fixed_source<Tile, Tile::M> from;

    RO_DEVICE fixed_rows(const A &a, const gemm_block &block, int thread)
        : from(a, block.batch, block.tile_m, thread) {}
    RO_DEVICE void load(const A &a, const gemm_block &, int, uint4 *to, int thread) {
        from.copy(a, to, thread);
    }
    RO_DEVICE void store(uint4 *, int) const {}
};

/* A warp loads a group of lines; each lane those numbers that it will multiply. */
template <class Tile, class Lines> struct fixed_rows<Tile, fixed_unpacked<Lines>> {
    static_assert(Tile::M / FIXED_LINES * 32 == Tile::THREADS, "a warp for each group");
    int low, high; /* words of fixed_scale of the lane's lines */
    float4 v[4];

    RO_DEVICE fixed_rows(const fixed_unpacked<Lines> &, const gemm_block &, int)
        : low(0), high(0) {}
    RO_DEVICE void load(const fixed_unpacked<Lines> &a, const gemm_block &block, int stage, uint4 *,
                        int thread) {
        const int lane = thread % 32;
        const int64_t group = block.tile_m * (Tile::M / FIXED_LINES) + thread / 32;
        const int64_t line = group * FIXED_LINES + lane / 4;
        const int64_t k = (int64_t)stage * FIXED_STEPS + lane % 4 * 4, later = k + FIXED_STEPS / 2;
        if (stage % FIXED_BLOCKS == 0 && group < a.exponents.groups) {
            const int *const e = a.exponents.of(block.batch, stage / FIXED_BLOCKS, group);
            low = e[lane / 4], high = e[lane / 4 + 8];
        }
        v[0] = a.lines.load(block.batch, line, k), v[1] = a.lines.load(block.batch, line, later);
        v[2] = a.lines.load(block.batch, line + 8, k);
        v[3] = a.lines.load(block.batch, line + 8, later);
    }
    RO_DEVICE void store(uint4 *to, int thread) const {
        uint4 *const at = to + thread / 32 * Tile::GROUP;
        const int lane = thread % 32;
        uint32_t word[4][Tile::DIGITS];
#pragma unroll
        for (int i = 0; i < 4; i++)
            fixed_digits<Tile::FORM>(v[i], fixed_scale::of<Tile::FORM>(i < 2 ? low : high),
                                     word[i]);
#pragma unroll
        for (int d = 0; d < Tile::DIGITS; d++)
            at[d * 32 + lane] = make_uint4(word[0][d], word[1][d], word[2][d], word[3][d]);
        if (lane % 4 == 0) {
            int *const e = reinterpret_cast<int *>(at + Tile::DIGITS * 32) + lane / 4;
            e[0] = low, e[8] = high;
        }
    }
};

/* Returns the sum of sum[i * stride] 256^i. */
template <int digits> RO_DEVICE int64_t fixed_whole(const int *sum, int stride) {
    int64_t s = 0;
#pragma unroll
    for (int i = 2 * digits - 2; i >= 0; i--)
        s = s * 256 + sum[i * stride];
    return s;
}

/* Returns the same, rounded once. With two digits the sum is high 2^16 + low, where floats hold
 * both exactly: |sum[stride]| <= 2 * 256 * 127 * 128, so 32 bits hold the rest. */
template <int digits> RO_DEVICE float fixed_near(const int *sum, int stride) {
    if constexpr (digits == 3)
        return (float)fixed_whole<digits>(sum, stride);
    const int rest = sum[stride] * 256 + sum[0];
    return ro_fma((float)(sum[2 * stride] + (rest >> 16)), 0x1p16f, (float)(rest & 0xffff));
}

/* Returns the value of a chunk; a and b are the exponents of its row and column. The power of two
 * is exact, and so is the product with it if that is a normal number. */
template <int digits> RO_DEVICE float fixed_term(const int *sum, int stride, int a, int b) {
    const unsigned field = (unsigned)(a + b + (127 - 2 * (8 * digits - 1)));
    const float near = fixed_near<digits>(sum, stride);
    const float value = near * __uint_as_float(field << 23);
    if (field - 1 < 254 && ro_abs(value) >= 0x1p-126f)
        return value;
    return ro_fixed_term(fixed_whole<digits>(sum, stride), 16 * digits, a, b);
}

/* Whether each group of a warp's tile has second digits. */
template <class Tile> struct fixed_seconds {
    bool a[Tile::ROWS], b[Tile::COLS / 2];

    /* of_a and of_b are the words of the lane's line in the first group of each operand. */
    RO_DEVICE void find(const int *of_a, const int *of_b) {
#pragma unroll
        for (int m = 0; m < Tile::ROWS; m++)
            a[m] = __ballot_sync(RO_ALL_LANES, of_a[m * (Tile::GROUP * 4)] & 1) != 0;
#pragma unroll
        for (int n = 0; n < Tile::COLS / 2; n++)
            b[n] = __ballot_sync(RO_ALL_LANES, of_b[n * (Tile::GROUP * 4)] & 1) != 0;
    }
    /* Returns whether to multiply digit i of group m and digit j of group n. */
    RO_DEVICE bool has(int i, int j, int m, int n) const {
        return !Tile::MAY_LACK || ((i == 0 || a[m]) && (j == 0 || b[n]));
    }
};

template <class Tile> struct fixed_sums {
    int at[Tile::SUMS][Tile::ROWS][Tile::COLS][4];

    RO_DEVICE void clear() {
#pragma unroll
        for (int i = 0; i < Tile::SUMS * Tile::TILES * 4; i++)
            (&at[0][0][0][0])[i] = 0;
    }

    /* Multiplies one stage. */
    RO_DEVICE void multiply(const uint4 *a, const uint4 *b, const fixed_seconds<Tile> &seconds) {
        uint4 of_a[Tile::ROWS][Tile::DIGITS];
#pragma unroll
        for (int m = 0; m < Tile::ROWS; m++)
#pragma unroll
            for (int d = 0; d < Tile::DIGITS; d++)
                of_a[m][d] = a[m * Tile::GROUP + d * 32];
#pragma unroll
        for (int n = 0; n < Tile::COLS; n += 2) {
            uint4 of_b[Tile::DIGITS];
#pragma unroll
            for (int d = 0; d < Tile::DIGITS; d++)
                of_b[d] = b[n / 2 * Tile::GROUP + d * 32];
#pragma unroll
            for (int i = 0; i < Tile::DIGITS; i++)
#pragma unroll
                for (int j = 0; j < Tile::DIGITS; j++)
#pragma unroll
                    for (int m = 0; m < Tile::ROWS; m++) {
                        if (!seconds.has(i, j, m, n / 2))
                            continue;
                        ro_multiply_bytes(at[i + j][m][n], of_a[m][i], of_b[j].x, of_b[j].y);
                        ro_multiply_bytes(at[i + j][m][n + 1], of_a[m][i], of_b[j].z, of_b[j].w);
                    }
        }
    }

    /* Returns the exponent in a word that packing stored. */
    static RO_DEVICE int exponent_of(int word) {
        return Tile::MAY_LACK ? word >> 1 : word;
    }

    /* Adds the chunk to the totals. `a` and `b` point to the words of the thread's first row and
     * column. */
    RO_DEVICE void end_chunk(float4 *totals, const int *a, const int *b) {
        const int stride = Tile::TILES * 4;
#pragma unroll
        for (int m = 0; m < Tile::ROWS; m++)
#pragma unroll
            for (int n = 0; n < Tile::COLS; n++) {
                const int *sum = &at[0][m][n][0];
                const int *of_a = a + m * (Tile::GROUP * 4);
                const int *of_b = b + n / 2 * (Tile::GROUP * 4) + n % 2 * 8;
                const int low = exponent_of(of_a[0]), high = exponent_of(of_a[8]);
                const int left = exponent_of(of_b[0]), right = exponent_of(of_b[1]);
                float4 t = totals[(m * Tile::COLS + n) * Tile::THREADS];
                t.x += fixed_term<Tile::DIGITS>(sum, stride, low, left);
                t.y += fixed_term<Tile::DIGITS>(sum + 1, stride, low, right);
                t.z += fixed_term<Tile::DIGITS>(sum + 2, stride, high, left);
                t.w += fixed_term<Tile::DIGITS>(sum + 3, stride, high, right);
                totals[(m * Tile::COLS + n) * Tile::THREADS] = t;
            }
        clear();
    }
};

template <class Tile, class Out>
RO_DEVICE void fixed_store(const gemm_shape &s, const Out &out, const gemm_block &block,
                           const float4 *totals, int warp_m, int warp_n, int lane) {
    const int64_t row = block.row<Tile>() + warp_m * (16 * Tile::ROWS) + lane / 4;
    const int64_t col = block.col<Tile>() + warp_n * (8 * Tile::COLS) + lane % 4 * 2;
    const int64_t rows = out.rows(s, block.batch);
    for (int i = 0; i < Tile::TILES; i++) {
        const float4 t = totals[i * Tile::THREADS];
        const int64_t m = row + i / Tile::COLS * 16, n = col + i % Tile::COLS * 8;
        const float four[4] = {t.x, t.y, t.z, t.w};
#pragma unroll
        for (int q = 0; q < 4; q++)
            if (m + q / 2 * 8 < rows && n + q % 2 < s.n)
                out.line(block.batch, m + q / 2 * 8)[n + q % 2] =
                    gemm_result(four[q], out.alpha, 0.0f, nullptr);
    }
}

/* Sets a thread's totals, in fixed_store's order: to zeros or, if `goes_on`, to the output, which
 * has the sums of the steps of k before. */
template <class Tile, class Out>
RO_DEVICE void fixed_start(const gemm_shape &s, const Out &out, const gemm_block &block,
                           float4 *totals, int warp_m, int warp_n, int lane) {
    const int64_t row = block.row<Tile>() + warp_m * (16 * Tile::ROWS) + lane / 4;
    const int64_t col = block.col<Tile>() + warp_n * (8 * Tile::COLS) + lane % 4 * 2;
    for (int i = 0; i < Tile::TILES; i++) {
        const int64_t m = row + i / Tile::COLS * 16, n = col + i % Tile::COLS * 8;
        float four[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if constexpr (requires { out.goes_on; }) {
#pragma unroll
            for (int q = 0; q < 4; q++)
                if (out.goes_on && m + q / 2 * 8 < s.m && n + q % 2 < s.n)
                    four[q] = out.line(block.batch, m + q / 2 * 8)[n + q % 2];
        }
        totals[i * Tile::THREADS] = make_float4(four[0], four[1], four[2], four[3]);
    }
}

/* Ends elements by out.end, which takes four neighbours in a row. A lane has two of a row and two
 * of the eighth row below, so lanes in pairs exchange two each. */
template <class Tile, class Out>
RO_DEVICE void fixed_end(const gemm_shape &s, const Out &out, const gemm_block &block,
                         const float4 *totals, int warp_m, int warp_n, int lane) {
    const bool second = lane % 2;
    const int64_t row = block.row<Tile>() + warp_m * (16 * Tile::ROWS) + lane / 4 + 8 * second;
    const int64_t col = block.col<Tile>() + warp_n * (8 * Tile::COLS) + lane % 4 / 2 * 4;
#pragma unroll 1
    for (int i = 0; i < Tile::TILES; i++) {
        const float4 t = totals[i * Tile::THREADS];
        const float x = __shfl_xor_sync(RO_ALL_LANES, second ? t.x : t.z, 1);
        const float y = __shfl_xor_sync(RO_ALL_LANES, second ? t.y : t.w, 1);
        const float4 four = second ? make_float4(x, y, t.z, t.w) : make_float4(t.x, t.y, x, y);
        const int64_t m = row + i / Tile::COLS * 16, n = col + i % Tile::COLS * 8;
        if (m < s.m && n < s.n)
            out.end(m, n, s.n - n, four);
    }
}

/* `A` is fixed_packed or fixed_unpacked. `Out` is gemm_out, or a type with its rows, line and alpha
 * and perhaps `goes_on`; or it has ENDS and end. If it has `check`, sums are checked. */
template <class Tile, class A, class Out>
__global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS)
    fixed_kernel(const __grid_constant__ gemm_shape s, const __grid_constant__ A a,
                 const __grid_constant__ fixed_packed b, const __grid_constant__ Out out) {
    RO_SMEM(uint4, smem);
    const int thread = (int)threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int warp_m = warp % Tile::WARPS_M, warp_n = warp / Tile::WARPS_M;
    const gemm_block block = gemm_block::of(s, blockIdx.x);
    fixed_rows<Tile, A> from_a(a, block, thread);
    fixed_source<Tile, Tile::N> from_b(b, block.batch, block.tile_n, thread);
    float4 *const totals = reinterpret_cast<float4 *>(smem + Tile::STAGES * Tile::STAGE) + thread;
    fixed_start<Tile>(s, out, block, totals, warp_m, warp_n, lane);
    fixed_sums<Tile> sums;
    fixed_seconds<Tile> seconds = {};
    sums.clear();
    const auto stage_at = [&](int stage) { return smem + stage % Tile::STAGES * Tile::STAGE; };
    const auto load = [&](int stage) {
        if (stage < a.blocks) {
            from_a.load(a, block, stage, stage_at(stage), thread);
            from_b.copy(b, stage_at(stage) + Tile::A, thread);
        }
        ro_copy_commit();
    };
    const auto store = [&](int stage) {
        if (stage < a.blocks)
            from_a.store(stage_at(stage), thread);
    };
    for (int stage = 0; stage < Tile::STAGES - 1; stage++)
        load(stage), store(stage);
    const int at_a = warp_m * Tile::ROWS * Tile::GROUP;
    const int at_b = Tile::A + warp_n * (Tile::COLS / 2) * Tile::GROUP;
    for (int stage = 0; stage < a.blocks; stage++) {
        ro_copy_wait<Tile::STAGES - 2>();
        __syncthreads(); /* the stage is copied, and all threads have used the one before */
        load(stage + Tile::STAGES - 1);
        const uint4 *const at = stage_at(stage);
        const int *const of_a = reinterpret_cast<const int *>(at + at_a + Tile::DIGITS * 32);
        const int *const of_b = reinterpret_cast<const int *>(at + at_b + Tile::DIGITS * 32);
        if (Tile::MAY_LACK && stage % FIXED_BLOCKS == 0)
            seconds.find(of_a + lane % FIXED_LINES, of_b + lane % FIXED_LINES);
        sums.multiply(at + at_a + lane, at + at_b + lane, seconds);
        store(stage + Tile::STAGES - 1);
        if (stage % FIXED_BLOCKS == FIXED_BLOCKS - 1 || stage == a.blocks - 1) {
            if constexpr (requires { out.check; }) /* fixed_check.cuh */
                out.check.add(sums, block.batch, stage / FIXED_BLOCKS,
                              block.row<Tile>() + warp_m * (16 * Tile::ROWS),
                              block.col<Tile>() + warp_n * (8 * Tile::COLS), lane);
            sums.end_chunk(totals, of_a + lane / 4, of_b + lane % 4 * 2);
        }
    }
    if constexpr (Out::ENDS)
        fixed_end<Tile>(s, out, gemm_block::of(s, ro_block_anew()), totals, warp_m, warp_n, lane);
    else
        fixed_store<Tile>(s, out, gemm_block::of(s, ro_block_anew()), totals, warp_m, warp_n, lane);
}

#endif
