/* Matrix products in the order of SPEC.md section 3.1. One block computes one tile of the output.
 *
 * Each k step is an outer product of two fragments in registers, one FFMA per element, so the order
 * of k is the only order there is. Asynchronous copies (gemm_load.cuh) bring the operands to shared
 * memory in stages of K steps, one line of the tile's width per step. Totals are in shared memory,
 * and are read and written once per chunk, since a thread of a large tile has no registers for both
 * sums and totals.
 *
 * If the tiles do not fill the card, chunks of k are units of work, too: their sums are stored
 * separately and added in ascending order (gemm_plan.cuh). */
#ifndef REPOPS_CUDA_GEMM_CUH
#define REPOPS_CUDA_GEMM_CUH

#include "repops/cuda/gemm/gemm_load.cuh"

/* How many steps of k the inner loop is unrolled by: 0 for all of a stage, else 4, 8 or 16. The
 * bits are the same; `make GEMM_UNROLL=8 cuda` and bench/cuda.sh compare them. */
#if !defined(RO_GEMM_UNROLL)
#define RO_GEMM_UNROLL 0
#endif

/* M x N elements, computed by threads of TM x TN each. LANES_M of a warp's lanes are along m. A
 * stage has K steps. */
template <int m, int n, int tm, int tn, int lanes_m, int k, int stages, bool shared_totals,
          int per_multiprocessor>
struct gemm_tile {
    static constexpr int M = m, N = n, TM = tm, TN = tn, K = k, STAGES = stages;
    static constexpr int LANES_M = lanes_m, LANES_N = 32 / lanes_m, WARPS_M = M / (TM * LANES_M);
    static constexpr int THREADS = 32 * WARPS_M * (N / (TN * LANES_N));
    static constexpr bool SHARED_TOTALS = shared_totals;
    static constexpr int BLOCKS = per_multiprocessor;
    /* Lines are padded by four floats: copies that transpose have no bank conflicts, and vectors
     * stay aligned. */
    static constexpr int PITCH_A = M + 4, PITCH_B = N + 4, STAGE = K * (PITCH_A + PITCH_B);
    static constexpr int TOTALS = shared_totals ? M * N : 0;
    static constexpr int UNROLL = RO_GEMM_UNROLL ? RO_GEMM_UNROLL : K;
    static_assert(UNROLL % 2 == 0 && K % UNROLL == 0, "fragments alternate; whole loops alone");
};

struct gemm_shape {
    int64_t m, n, k;
    int tiles_m, tiles_n, batch; /* at most 2^31 blocks in all */
    int chunk, whole;            /* stages of a chunk, a power of 2; number of whole stages in k */
    ro_mask mask;
    int window; /* most terms that the mask admits in a row */
    /* Unit 0 of a tile takes `lead` chunks from `first` on, every other unit one chunk. */
    int units, first, lead;
    float *sums; /* the units' sums, [units, batch, m, n]; NULL: the one unit writes the output */
    const unsigned *skip; /* if *skip is not 0, the kernel does nothing; may be NULL */
};

/* Where results are stored. Outputs whose rows have no common stride need a type of their own. */
struct gemm_out {
    static constexpr bool ENDS = false; /* true: `end` stores four totals (linear.cuh) */
    float *c;
    int64_t row, col, next; /* strides of rows, columns and products */
    float alpha, beta;
    bool vectors; /* four neighbours can be stored as an aligned vector */

    RO_DEVICE float *line(int64_t batch, int64_t m) const {
        return c + batch * next + m * row;
    }
    RO_DEVICE int64_t rows(const gemm_shape &s, int64_t) const {
        return s.m;
    }
};

/* Returns a result by SPEC 3.1; c is not read if beta is 0. */
RO_DEVICE float gemm_result(float total, float alpha, float beta, const float *c) {
    const float scaled = total * alpha;
    return ro_canon(beta == 0 ? scaled : ro_fma(beta, *c, scaled));
}

/* ---- the position of a thread ---- */

/* The work of a block. Tiles are numbered column by column within groups of eight rows of tiles, so
 * that neighbouring blocks share operands. A group has no more rows than exist, so that an int
 * counts its tiles. */
struct gemm_block {
    int tile_m, tile_n, batch, unit;

    RO_DEVICE static gemm_block of(const gemm_shape &s, unsigned number) {
        const int tiles = s.tiles_m * s.tiles_n, at = (int)number, tile = at % tiles;
        const int in_each = (s.tiles_m < 8 ? s.tiles_m : 8) * s.tiles_n, group = tile / in_each;
        const int left = s.tiles_m - group * 8, high = left < 8 ? left : 8;
        const int in_group = tile - group * in_each;
        const int rest = at / tiles;
        return {group * 8 + in_group % high, in_group / high, rest % s.batch, rest / s.batch};
    }
    template <class Tile> RO_DEVICE int64_t row() const {
        return (int64_t)tile_m * Tile::M;
    }
    template <class Tile> RO_DEVICE int64_t col() const {
        return (int64_t)tile_n * Tile::N;
    }
};

/* The first row and column of a thread in its tile. The others follow in fours, LANES * 4 apart. In
 * a vector load, lanes whose numbers differ only in bit 0 or 1 read the same vector or neighbours,
 * so that the hardware serves half a warp at once. */
template <class Tile> struct gemm_lane {
    int m, n;
    RO_DEVICE explicit gemm_lane(int thread) {
        const int lane = thread % 32, warp = thread / 32;
        const int eight = lane >> 1 & 7, four = (lane & 1) | (lane >> 4) << 1;
        static_assert(Tile::LANES_M == 8 || Tile::LANES_M == 4 || Tile::LANES_M == 2, "");
        const int lane_m = Tile::LANES_M == 8 ? eight : Tile::LANES_M == 4 ? four : lane & 1;
        const int lane_n = Tile::LANES_M == 8 ? four : Tile::LANES_M == 4 ? eight : lane >> 1;
        m = warp % Tile::WARPS_M * (Tile::LANES_M * Tile::TM) + lane_m * 4;
        n = warp / Tile::WARPS_M * (Tile::LANES_N * Tile::TN) + lane_n * 4;
    }
    static RO_DEVICE int step_m(int i) {
        return i / 4 * (Tile::LANES_M * 4) + i % 4;
    }
    static RO_DEVICE int step_n(int j) {
        return j / 4 * (Tile::LANES_N * 4) + j % 4;
    }
};

/* ---- the inner loop ---- */

template <int count, int apart> RO_DEVICE void gemm_fragment(float *to, const float *from) {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
        const float4 v = *reinterpret_cast<const float4 *>(from + i / 4 * apart);
        to[i] = v.x, to[i + 1] = v.y, to[i + 2] = v.z, to[i + 3] = v.w;
    }
}

template <class Tile> struct gemm_sums {
    float at[Tile::TM][Tile::TN];

    RO_DEVICE void clear() {
#pragma unroll
        for (int i = 0; i < Tile::TM; i++)
#pragma unroll
            for (int j = 0; j < Tile::TN; j++)
                at[i][j] = 0.0f;
    }

    RO_DEVICE void load(const float *a, const float *b, float *fragment) const {
        gemm_fragment<Tile::TM, Tile::LANES_M * 4>(fragment, a);
        gemm_fragment<Tile::TN, Tile::LANES_N * 4>(fragment + Tile::TM, b);
    }

    /* Multiplies one stage. The fragments of the next step are loaded before this one's are
     * used. */
    RO_DEVICE void multiply(const float *a, const float *b) {
        float fragment[2][Tile::TM + Tile::TN];
        load(a, b, fragment[0]);
#pragma unroll 1
        for (int first = 0; first < Tile::K; first += Tile::UNROLL)
#pragma unroll
            for (int u = 0; u < Tile::UNROLL; u++) {
                const int next = first + u + 1;
                if (next < Tile::K)
                    load(a + next * Tile::PITCH_A, b + next * Tile::PITCH_B, fragment[(u + 1) % 2]);
                add(fragment[u % 2]);
            }
    }

    /* One step. */
    RO_DEVICE void add(const float *fragment) {
#pragma unroll
        for (int i = 0; i < Tile::TM; i++)
#pragma unroll
            for (int j = 0; j < Tile::TN; j++)
                at[i][j] = ro_fma(fragment[i], fragment[Tile::TM + j], at[i][j]);
    }

    /* Multiplies a stage that the mask divides: row i admits step k if sign * (k - i) + distance is
     * in (-window, 0]. */
    RO_DEVICE void multiply_masked(const float *a, const float *b, int sign, int distance,
                                   int window) {
        float fragment[Tile::TM + Tile::TN];
#pragma unroll 1
        for (int k = 0; k < Tile::K; k++) {
            load(a + k * Tile::PITCH_A, b + k * Tile::PITCH_B, fragment);
#pragma unroll
            for (int i = 0; i < Tile::TM; i++) {
                const int beyond = distance + sign * (k - gemm_lane<Tile>::step_m(i));
                const bool taken = beyond <= 0 && beyond > -window;
#pragma unroll
                for (int j = 0; j < Tile::TN; j++)
                    if (taken)
                        at[i][j] = ro_fma(fragment[i], fragment[Tile::TM + j], at[i][j]);
            }
        }
    }
};

/* The totals of one thread, in groups of four. In shared memory, groups of a block's threads lie
 * side by side. */
template <class Tile> struct gemm_totals {
    float4 kept[Tile::SHARED_TOTALS ? 1 : Tile::TM * Tile::TN / 4];
    float4 *shared;

    RO_DEVICE float4 &at(int i) {
        if constexpr (Tile::SHARED_TOTALS)
            return shared[i * Tile::THREADS];
        else
            return kept[i];
    }

    RO_DEVICE void clear() {
#pragma unroll
        for (int i = 0; i < Tile::TM * Tile::TN / 4; i++)
            at(i) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }

    /* Returns the totals plus the sums of group i. */
    RO_DEVICE float4 with(const float *sum, int i) {
        const float4 t = at(i);
        return make_float4(t.x + sum[4 * i], t.y + sum[4 * i + 1], t.z + sum[4 * i + 2],
                           t.w + sum[4 * i + 3]);
    }

    /* Adds the sums to the totals and clears them; after the last chunk, the sums become the totals
     * instead. A single loop that decides each time would have half as many instructions again,
     * hence two. */
    RO_DEVICE void end_chunk(gemm_sums<Tile> *sums, bool last) {
        float *sum = &sums->at[0][0];
        if (last) {
#pragma unroll
            for (int i = 0; i < Tile::TM * Tile::TN / 4; i++) {
                const float4 t = with(sum, i);
                sum[4 * i] = t.x, sum[4 * i + 1] = t.y, sum[4 * i + 2] = t.z, sum[4 * i + 3] = t.w;
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < Tile::TM * Tile::TN / 4; i++)
            at(i) = with(sum, i);
        sums->clear();
    }
};

/* ---- storing ---- */

RO_DEVICE void gemm_store_four(float *c, const float *total, float alpha, float beta) {
    float4 old = make_float4(0.0f, 0.0f, 0.0f, 0.0f), v;
    if (beta != 0)
        old = *reinterpret_cast<const float4 *>(c);
    v.x = gemm_result(total[0], alpha, beta, &old.x);
    v.y = gemm_result(total[1], alpha, beta, &old.y);
    v.z = gemm_result(total[2], alpha, beta, &old.z);
    v.w = gemm_result(total[3], alpha, beta, &old.w);
    *reinterpret_cast<float4 *>(c) = v;
}

template <class Tile, class Out>
RO_DEVICE void gemm_store(const gemm_shape &s, const Out &out, const gemm_block &block,
                          const gemm_lane<Tile> &lane, const gemm_sums<Tile> &sums) {
    const int64_t rows = out.rows(s, block.batch), first = block.col<Tile>() + lane.n;
    const float alpha = s.sums ? 1.0f : out.alpha, beta = s.sums ? 0.0f : out.beta;
    const int64_t col = s.sums ? 1 : out.col;
    const bool vectors = s.sums ? s.n % 4 == 0 : out.vectors;
#pragma unroll
    for (int i = 0; i < Tile::TM; i++) {
        const int64_t m = block.row<Tile>() + lane.m + gemm_lane<Tile>::step_m(i);
        if (m >= rows)
            break;
        float *line = s.sums
                          ? s.sums + (((int64_t)block.unit * s.batch + block.batch) * s.m + m) * s.n
                          : out.line(block.batch, m);
#pragma unroll
        for (int j = 0; j < Tile::TN; j += 4) {
            const int64_t n = first + gemm_lane<Tile>::step_n(j);
            const float *total = &sums.at[i][j];
            if (vectors && n < s.n)
                gemm_store_four(line + n, total, alpha, beta);
#pragma unroll
            for (int q = 0; q < 4; q++)
                if (!vectors && n + q < s.n)
                    line[(n + q) * col] = gemm_result(total[q], alpha, beta, line + (n + q) * col);
        }
    }
}

/* Stores up to four neighbours of a row that has `count` left. */
RO_DEVICE void gemm_store_left(float *to, float4 x, int64_t count, bool vectors) {
    if (vectors) {
        ro_store_fours(to, x);
        return;
    }
    to[0] = x.x;
    if (count > 1)
        to[1] = x.y;
    if (count > 2)
        to[2] = x.z;
    if (count > 3)
        to[3] = x.w;
}

/* Ends elements by out.end, which needs registers: so totals are read from shared memory, four at a
 * time. Supports one product, not a batch. */
template <class Tile, class Out>
RO_DEVICE void gemm_end(const gemm_shape &s, const Out &out, const gemm_block &block,
                        const gemm_lane<Tile> &lane, const gemm_totals<Tile> &totals, float *smem) {
    const int fours = Tile::TN / 4;
    const float4 *mine = totals.shared;
    if constexpr (!Tile::SHARED_TOTALS) {
        static_assert(Tile::THREADS * Tile::TM * Tile::TN <= Tile::STAGES * Tile::STAGE, "");
        float4 *to = reinterpret_cast<float4 *>(smem) + threadIdx.x;
        mine = to;
        __syncthreads(); /* all threads have used the last stage */
#pragma unroll
        for (int i = 0; i < Tile::TM * fours; i++)
            to[i * Tile::THREADS] = totals.kept[i];
    }
#pragma unroll 1
    for (int i = 0; i < Tile::TM * fours; i++) {
        const int64_t m = block.row<Tile>() + lane.m + gemm_lane<Tile>::step_m(i / fours);
        const int64_t n = block.col<Tile>() + lane.n + gemm_lane<Tile>::step_n(i % fours * 4);
        if (m >= s.m || n >= s.n)
            continue;
        if (s.sums)
            gemm_store_left(s.sums + ((int64_t)block.unit * s.m + m) * s.n + n,
                            mine[i * Tile::THREADS], s.n - n, s.n % 4 == 0);
        else
            out.end(m, n, s.n - n, mine[i * Tile::THREADS]);
    }
}

/* ---- the kernel ---- */

/* The stages [from, to) of a unit, without those at either end that the mask excludes. */
struct gemm_range {
    int from, to;

    template <class Tile> RO_DEVICE static gemm_range of(const gemm_shape &s, const gemm_block &b) {
        const int64_t all = (s.k + Tile::K - 1) / Tile::K;
        const int chunk = s.first + (b.unit ? s.lead + b.unit - 1 : 0);
        int64_t from = (int64_t)chunk * s.chunk;
        int64_t to = from + (int64_t)(b.unit ? 1 : s.lead) * s.chunk;
        to = to < all ? to : all;
        if (s.mask == RO_MASK_NONE)
            return {(int)from, (int)to};
        /* the first and the last step that any row of the tile admits */
        const int64_t row = b.row<Tile>(), reach = s.window - 1;
        const int64_t first = s.mask == RO_MASK_FROM_ROW ? row : row > reach ? row - reach : 0;
        const int64_t last = row + Tile::M - 1 + (s.mask == RO_MASK_FROM_ROW ? reach : 0);
        to = to < last / Tile::K + 1 ? to : last / Tile::K + 1;
        from = from > first / Tile::K ? from : first / Tile::K;
        return {(int)from, (int)to};
    }
};

/* Returns whether a row of the tile admits only a part of the stage. */
template <class Tile>
RO_DEVICE bool gemm_divided(ro_mask mask, int window, int64_t row, int64_t k) {
    const int64_t last_row = row + Tile::M - 1, last_k = k + Tile::K - 1;
    return mask == RO_MASK_UPTO_ROW ? last_k > row || last_row - k >= window
                                    : k < last_row || last_k - row >= window;
}

template <class Tile, bool masked>
RO_DEVICE void gemm_multiply(const gemm_shape &s, const gemm_block &block,
                             const gemm_lane<Tile> &lane, int stage, const float *at,
                             gemm_sums<Tile> *sums) {
    const float *a = at + lane.m, *b = at + Tile::K * Tile::PITCH_A + lane.n;
    const int64_t k = (int64_t)stage * Tile::K;
    if (masked && gemm_divided<Tile>(s.mask, s.window, block.row<Tile>(), k)) {
        const int sign = s.mask == RO_MASK_UPTO_ROW ? 1 : -1;
        sums->multiply_masked(a, b, sign, sign * (int)(k - block.row<Tile>() - lane.m), s.window);
    } else {
        sums->multiply(a, b);
    }
}

/* Returns the shared memory of a block in bytes: stages, totals, and the tables of operands. */
template <class Tile, class A, class B> __host__ __device__ constexpr int gemm_bytes() {
    return (int)sizeof(float) * (Tile::STAGES * Tile::STAGE + Tile::TOTALS +
                                 A::template loader<Tile::THREADS, Tile::M, Tile::K>::TABLE +
                                 B::template loader<Tile::THREADS, Tile::N, Tile::K>::TABLE);
}

/* Returns whether the architecture has shared memory for a tile; if not, the kernel has no code. */
template <class Tile, class A, class B> RO_DEVICE constexpr bool gemm_has_room() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    return gemm_bytes<Tile, A, B>() <= 64 << 10;
#else
    return true;
#endif
}

template <class Tile, class A, class B, class Out, bool masked>
__global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS)
    gemm_kernel(const __grid_constant__ gemm_shape s, const __grid_constant__ A a,
                const __grid_constant__ B b, const __grid_constant__ Out out) {
    typedef typename A::template loader<Tile::THREADS, Tile::M, Tile::K> load_a;
    typedef typename B::template loader<Tile::THREADS, Tile::N, Tile::K> load_b;
    RO_SMEM(float, smem);
    const gemm_block block = gemm_block::of(s, blockIdx.x);
    if (!gemm_has_room<Tile, A, B>() || (s.skip && *s.skip) ||
        block.row<Tile>() >= out.rows(s, block.batch))
        return;
    const int thread = (int)threadIdx.x;
    const gemm_lane<Tile> lane(thread);
    const gemm_range range = gemm_range::of<Tile>(s, block);
    float *const tables = smem + Tile::STAGES * Tile::STAGE + Tile::TOTALS;
    load_a from_a(a, block.batch, block.row<Tile>(), thread, tables);
    load_b from_b(b, block.batch, block.col<Tile>(), thread, tables + load_a::TABLE);
    gemm_totals<Tile> totals;
    totals.shared = reinterpret_cast<float4 *>(smem + Tile::STAGES * Tile::STAGE) + thread;
    gemm_sums<Tile> sums;
    sums.clear();
    totals.clear();
    if (load_a::TABLE + load_b::TABLE > 0)
        __syncthreads();

    int wanted = from_a.skip(range.from, range.to), slot = 0, filled = 0;
    from_a.go_to(wanted);
    from_b.go_to(wanted);
    const bool whole = from_a.whole() && from_b.whole();
    const bool quick = from_a.quick() && from_b.quick();
    const auto fill = [&] {
        float *const to = smem + filled * Tile::STAGE, *const to_b = to + Tile::K * Tile::PITCH_A;
        if (wanted < range.to) {
            if (quick && wanted < s.whole) {
                from_a.template copy<GEMM_QUICK>(to, wanted, s.k);
                from_b.template copy<GEMM_QUICK>(to_b, wanted, s.k);
            } else if (whole && wanted < s.whole) {
                from_a.template copy<GEMM_ALL>(to, wanted, s.k);
                from_b.template copy<GEMM_ALL>(to_b, wanted, s.k);
            } else {
                from_a.template copy<GEMM_SOME>(to, wanted, s.k);
                from_b.template copy<GEMM_SOME>(to_b, wanted, s.k);
            }
            wanted = from_a.skip(wanted + 1, range.to);
        }
        ro_copy_commit();
        filled = filled + 1 == Tile::STAGES ? 0 : filled + 1;
    };
    int stage = wanted;
    for (int i = 0; i < Tile::STAGES - 1; i++)
        fill();
    while (stage < range.to) {
        ro_copy_wait<Tile::STAGES - 2>();
        __syncthreads(); /* the stage has arrived, and all threads have used the one before it */
        fill();
        gemm_multiply<Tile, masked>(s, block, lane, stage, smem + slot * Tile::STAGE, &sums);
        slot = slot + 1 == Tile::STAGES ? 0 : slot + 1;
        const int next = from_a.skip(stage + 1, range.to);
        if (next >= range.to || ((next ^ stage) & -s.chunk))
            totals.end_chunk(&sums, !Out::ENDS && next >= range.to);
        stage = next;
    }
    if constexpr (Out::ENDS)
        gemm_end<Tile>(s, out, gemm_block::of(s, ro_block_anew()),
                       gemm_lane<Tile>((int)ro_thread_anew()), totals, smem);
    else
        gemm_store<Tile>(s, out, gemm_block::of(s, ro_block_anew()),
                         gemm_lane<Tile>((int)ro_thread_anew()), sums);
}

#endif
