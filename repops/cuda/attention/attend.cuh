/* Shared by fused attention's kernels (SPEC.md section 8). A block of 128 threads, 16 across and 8
 * down, holds a tile of rows (queries, or keys for the gradients of keys and values). It runs
 * against 128 columns of the other side at a time:
 *
 * - scores: rows against columns, both copied as they are in memory, 32 elements deep at a time;
 * - products: the tile's [rows, 128] numbers, in shared memory, against rows of the other side.
 *
 * Thread (x, y) has rows y, y + 8, ... and columns x, x + 16, ..., so that the folds of R over 128
 * columns are inside a thread down to 16, and between neighbouring threads below. There are two
 * stages: while one is used, the next data is copied to the other. */
#ifndef REPOPS_CUDA_ATTEND_CUH
#define REPOPS_CUDA_ATTEND_CUH

#include "repops/cuda/ptx.cuh"
#include "repops/cuda/rows/rows.cuh"
#include "repops/src/philox.h"

static constexpr int AT_THREADS = 128, AT_ACROSS = 16, AT_DOWN = 8;
static constexpr int AT_COLUMNS = RO_ATTN_BLOCK, AT_EACH = AT_COLUMNS / AT_ACROSS;
static constexpr int AT_DEPTH = 32;                  /* elements of a stage of scores, */
static constexpr int AT_DEPTH_STEP = 36;             /* stride of its rows, on separate banks */
static constexpr int AT_TILE_STEP = AT_COLUMNS + 16; /* stride of the tile's rows, likewise */
static constexpr int AT_STAGE = AT_COLUMNS * AT_DEPTH_STEP;

/* Sizes for heads of up to D elements and EACH rows per thread. */
template <int D, int EACH> struct attend_tile {
    static constexpr int ROWS = AT_DOWN * EACH;
    static constexpr int STEP = D + 4;        /* stride of rows that stay in shared memory */
    static constexpr int OUT = D / AT_ACROSS; /* elements per thread in a row of products */
    static constexpr int FOURS = OUT / 4;
    static constexpr int DEEP = 4096 / D;    /* rows in a stage of products */
    static constexpr int HELD = ROWS * STEP; /* floats of the rows that stay */
    static constexpr int TILE = ROWS * AT_TILE_STEP;
    /* Blocks that have registers in a multiprocessor; of small tiles, as many as have shared
     * memory. */
    static constexpr int BLOCKS = EACH > 1 ? 2 : D > 128 ? 3 : D > 64 ? 4 : 5;
};

/* ---- positions of rows ---- */

/* Strides, in elements, of sequences, of heads, and of a head's rows. */
struct attend_rows {
    int64_t sequence, head, row;
    ro_divider heads; /* number of heads in a sequence */

    /* Returns the offset of head h, counted over the whole batch. */
    RO_DEVICE int64_t of(int h) const {
        const int s = heads.short_quotient(h);
        return s * sequence + (h - s * (int)heads.divisor) * head;
    }
    /* Returns the offset of row i, counted over heads of `tokens` rows each, from head h on. */
    RO_DEVICE int64_t line(int h, const ro_divider &tokens, int64_t i) const {
        const int64_t skipped = tokens.quotient(i);
        return of(h + (int)skipped) + (i - skipped * tokens.divisor) * row;
    }
};

/* Returns the strides of a tensor; `row` is its stride in ro_attention, such as q_row. */
static inline attend_rows rows_of(const ro_attention *a, int64_t heads, int64_t tokens,
                                  int64_t row) {
    const ro_divider by_heads(heads);
    if (row == 0)
        return {heads * tokens * a->head_size, tokens * a->head_size, a->head_size, by_heads};
    return {tokens * row, a->head_size, row, by_heads};
}

/* ---- dropout ---- */

struct attend_dropout {
    uint64_t seed;
    uint32_t stream, threshold, step;
    float scale;
    int on;
};

static inline attend_dropout dropout_of(const ro_attention *a) {
    const ro_attention_dropout *d = a->dropout;
    if (!d)
        return {};
    return {d->seed, d->stream, d->threshold, (uint32_t)d->step, d->scale, 1};
}

/* Returns 32 bits: bit i is set if element e + i is kept. */
RO_DEVICE uint32_t kept_bits(const attend_dropout &d, int64_t e) {
    const uint64_t first = (uint64_t)e / 4;
    const int skew = (int)(e % 4);
    uint32_t bits = 0;
#pragma unroll 1
    for (int b = 0; b < (skew ? 9 : 8); b++) {
        uint32_t word[4];
        ro_philox_block(d.seed, first + (uint64_t)b, d.step, d.stream, word);
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const int i = 4 * b + w - skew;
            if (i >= 0 && i < 32 && word[w] >= d.threshold)
                bits |= 1u << i;
        }
    }
    return bits;
}

/* Inside a kernel any NaN will do: results become canonical when they are stored. */
RO_DEVICE float drop(const attend_dropout &d, bool kept, float x) {
    const float y = x * d.scale;
    return kept ? y : 0.0f;
}

/* ---- copies ---- */

/* Copies [ROWS, COLUMNS] from a matrix with rows of `size` elements; beyond `rows` and `columns`,
 * zeros. copy_fours copies 16 bytes at a time. */
template <int ROWS, int COLUMNS, int STEP>
RO_DEVICE void copy_fours(float *to, const float *from, int64_t size, int rows, int columns) {
    constexpr int ACROSS = COLUMNS / 4, DOWN = AT_THREADS / ACROSS;
    static_assert(AT_THREADS % ACROSS == 0 && ROWS % DOWN == 0, "");
    const int c = threadIdx.x % ACROSS * 4, first = threadIdx.x / ACROSS;
    rows = c < columns ? rows : 0;
    from += first * size + c, to += first * STEP + c;
#pragma unroll(ROWS / DOWN < 4 ? ROWS / DOWN : 4)
    for (int r = first; r < ROWS + first; r += DOWN) {
        ro_copy_async<16>(to, from, r < rows);
        from += DOWN * size, to += DOWN * STEP;
    }
}

/* The slow copy, for rows that may start at any address. */
template <int ROWS, int COLUMNS, int STEP>
RO_DEVICE void copy_elements(float *to, const float *from, int64_t size, int rows, int columns) {
#pragma unroll 1
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += AT_THREADS) {
        const int r = i / COLUMNS, c = i % COLUMNS;
        ro_copy_async<4>(to + r * STEP + c, from + r * size + c, r < rows && c < columns);
    }
}

template <int ROWS, int COLUMNS, int STEP>
RO_DEVICE void copy_tile(float *to, const float *from, int64_t size, int64_t rows, int64_t columns,
                         bool fours) {
    const int present = rows < ROWS ? (int)rows : ROWS;
    const int across = columns < COLUMNS ? (int)columns : COLUMNS;
    if (fours)
        copy_fours<ROWS, COLUMNS, STEP>(to, from, size, present, across);
    else
        copy_elements<ROWS, COLUMNS, STEP>(to, from, size, present, across);
}

/* Does what copy_tile does, for rows at any address: line(r) returns the address of row r. */
template <int ROWS, int COLUMNS, int STEP, class L>
RO_DEVICE void copy_lines(float *to, const L &line, int64_t rows, int64_t columns, bool fours) {
    const int present = rows < ROWS ? (int)rows : ROWS;
#pragma unroll 1
    for (int i = threadIdx.x; i < ROWS * COLUMNS / 4; i += AT_THREADS) {
        const int r = i / (COLUMNS / 4), c = i % (COLUMNS / 4) * 4;
        const float *from = line(r) + c;
        if (fours)
            ro_copy_async<16>(to + r * STEP + c, from, r < present && c < columns);
#pragma unroll
        for (int q = 0; q < 4; q++)
            if (!fours)
                ro_copy_async<4>(to + r * STEP + c + q, from + q, r < present && c + q < columns);
    }
}

/* ---- threads ---- */

RO_DEVICE int across() {
    return threadIdx.x % AT_ACROSS;
}

RO_DEVICE int down() {
    return threadIdx.x / AT_ACROSS;
}

/* Makes the compiler compute x again here, where it would keep it in a register throughout the
 * kernel. No memory is read ahead across this point. */
RO_DEVICE int computed_here(int x) {
    asm volatile("" : "+r"(x)::"memory");
    return x;
}

/* Folds x over the threads of each row, for all of them. Rows are interleaved: steps have long
 * latency. */
template <int EACH, class T, class F> RO_DEVICE void fold_across(T (&x)[EACH], const F &f) {
#pragma unroll
    for (int w = AT_ACROSS / 2; w > 0; w /= 2)
#pragma unroll
        for (int r = 0; r < EACH; r++)
            x[r] = f(x[r], __shfl_xor_sync(RO_ALL_LANES, x[r], w));
}

/* ---- scores ---- */

template <int EACH> struct score_sums {
    float at[EACH][AT_EACH];

    RO_DEVICE void clear() {
#pragma unroll
        for (int r = 0; r < EACH; r++)
#pragma unroll
            for (int j = 0; j < AT_EACH; j++)
                at[r][j] = 0.0f;
    }
    /* Adds AT_DEPTH terms; `rows` are STEP apart. */
    template <int STEP> RO_DEVICE void add(const float *rows, const float *stage) {
        rows += down() * STEP, stage += across() * AT_DEPTH_STEP;
#pragma unroll 1
        for (int d = 0; d < AT_DEPTH; d += 4) {
            ro_pack<4> a[EACH];
#pragma unroll
            for (int r = 0; r < EACH; r++)
                a[r] = ro_load<4>(rows + r * AT_DOWN * STEP + d);
#pragma unroll
            for (int j = 0; j < AT_EACH; j++) {
                const ro_pack<4> b = ro_load<4>(stage + j * AT_ACROSS * AT_DEPTH_STEP + d);
#pragma unroll
                for (int k = 0; k < 4; k++)
#pragma unroll
                    for (int r = 0; r < EACH; r++)
                        at[r][j] = ro_fma(a[r].at[k], b.at[k], at[r][j]);
            }
        }
    }
    /* Returns a product of section 3.1 with one chunk. */
    RO_DEVICE float product(int r, int j, float alpha) const {
        return (0.0f + at[r][j]) * alpha;
    }
    /* Turns sums into scores: scaled, plus the keys' biases. COLUMNS: keys are columns, else rows;
     * the first `count` of them exist. */
    template <bool COLUMNS> RO_DEVICE void finish(float alpha, const float *bias, int count) {
#pragma unroll
        for (int r = 0; r < EACH; r++)
#pragma unroll
            for (int j = 0; j < AT_EACH; j++)
                at[r][j] = product(r, j, alpha);
        if (!bias)
            return;
#pragma unroll
        for (int i = 0; i < (COLUMNS ? AT_EACH : EACH); i++) {
            const int key = COLUMNS ? across() + i * AT_ACROSS : down() + i * AT_DOWN;
            const float b = key < count ? bias[key] : 0.0f;
#pragma unroll
            for (int k = 0; k < (COLUMNS ? EACH : AT_EACH); k++) {
                float *score = COLUMNS ? &at[k][i] : &at[i][k];
                *score = *score + b;
            }
        }
    }
};

/* The biases of keys, sequence by sequence; NULL if there are none. */
struct attend_bias {
    const float *of;
    ro_divider heads; /* number of key-value heads in a sequence */

    /* Returns the biases of head `head` of the whole batch, which has `keys`, from key `from`
     * on. */
    RO_DEVICE const float *at(int head, int64_t keys, int64_t from) const {
        return of ? of + heads.quotient(head) * keys + from : nullptr;
    }
};

static inline attend_bias bias_of(const ro_attention *a) {
    return {a->key_bias, ro_divider(a->kv_heads)};
}

/* ---- products ---- */

/* The columns that are added: all, or those that the row's bound admits. */
enum attend_mask { ALL, SOME };

/* Stands for no window: more keys than can exist. */
static constexpr int AT_NO_WINDOW = INT32_MAX;

static inline int window_of(const ro_attention *a) {
    return a->window > 0 && a->window < AT_NO_WINDOW ? (int)a->window : AT_NO_WINDOW;
}

template <int D, int EACH> struct product_sums {
    typedef attend_tile<D, EACH> shape;
    float at[EACH][shape::OUT];

    RO_DEVICE void clear() {
#pragma unroll
        for (int r = 0; r < EACH; r++)
#pragma unroll
            for (int c = 0; c < shape::OUT; c++)
                at[r][c] = 0.0f;
    }
    /* Adds shape::DEEP terms: the tile's columns from `first` on. */
    template <attend_mask mask, class B>
    RO_DEVICE void add(const float *tile, const float *stage, int first, const B &bound) {
        tile += down() * AT_TILE_STEP + first, stage += 4 * across();
#pragma unroll 1
        for (int k0 = 0; k0 < shape::DEEP; k0 += 4) {
            ro_pack<4> w[EACH];
#pragma unroll
            for (int r = 0; r < EACH; r++)
                w[r] = ro_load<4>(tile + r * AT_DOWN * AT_TILE_STEP + k0);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                if (k == 2 && EACH * shape::OUT >= 64)
                    (void)computed_here(0); /* there are no registers to read further ahead */
#pragma unroll
                for (int q = 0; q < shape::FOURS; q++) {
                    const ro_pack<4> v = ro_load<4>(stage + (k0 + k) * D + 64 * q);
#pragma unroll
                    for (int r = 0; r < EACH; r++) {
                        const int column = first + k0 + k;
                        if (mask == ALL || bound.admits(r, column))
#pragma unroll
                            for (int c = 0; c < 4; c++)
                                at[r][4 * q + c] = ro_fma(w[r].at[k], v.at[c], at[r][4 * q + c]);
                    }
                }
            }
        }
    }
    /* Adds one chunk to a dot product. */
    RO_DEVICE void add_chunk(const product_sums &chunk) {
#pragma unroll
        for (int r = 0; r < EACH; r++)
#pragma unroll
            for (int c = 0; c < shape::OUT; c++)
                at[r][c] = at[r][c] + chunk.at[r][c];
    }
};

/* The keys, counted from key `from`, that a thread's row r admits: the last `window` of those below
 * its limit. Limits are in shared memory, since only blocks on the diagonal read them often. */
struct row_limits {
    const int32_t *limit; /* one for each row of the tile */
    int from, window;

    /* Tests both bounds in one comparison: a negative distance is large as an unsigned number. */
    RO_DEVICE bool admits(int r, int column) const {
        const int last = limit[down() + r * AT_DOWN] - from - 1;
        return (uint32_t)(last - column) < (uint32_t)window;
    }
};

/* Stores all results of a thread, four neighbours at a time if `fours`. line(r): the address of the
 * thread's row r, or NULL if it does not exist. value(r, x, at): what to store at `at` for x. */
template <int D, int EACH, class L, class V>
RO_DEVICE void store_products(const product_sums<D, EACH> &p, int64_t size, bool fours,
                              const L &line, const V &value) {
#pragma unroll
    for (int r = 0; r < EACH; r++) {
        float *const to = line(r);
        if (!to)
            continue;
#pragma unroll
        for (int c = 0; c < attend_tile<D, EACH>::OUT; c += 4) {
            const int column = c * AT_ACROSS + 4 * computed_here(across());
            ro_pack<4> v;
#pragma unroll
            for (int q = 0; q < 4; q++)
                if (column + q < size)
                    v.at[q] = value(r, p.at[r][c + q], to + column + q);
            if (fours && column < size)
                ro_store<4>(to + column, v);
#pragma unroll
            for (int q = 0; q < 4; q++)
                if (!fours && column + q < size)
                    to[column + q] = v.at[q];
        }
    }
}

/* ---- order of blocks ---- */

/* Numbers tiles so that those with the most work come first, and only a few heads are in progress
 * at a time: their keys and values (or queries) then stay in the L2 cache. */
struct attend_order {
    int64_t heads, tiles;

    RO_DEVICE void of(int64_t index, int64_t *head, int64_t *tile) const {
        constexpr int64_t AT_ONCE = 32;
        const int64_t first = index / (AT_ONCE * tiles) * AT_ONCE;
        const int64_t now = heads - first < AT_ONCE ? heads - first : AT_ONCE;
        const int64_t rest = index - first * tiles;
        *head = first + rest % now, *tile = rest / now;
    }
};

/* ---- launches ---- */

/* Returns whether rows of these matrices can be copied and stored 16 bytes at a time. */
template <class... P> static bool in_fours(const ro_attention *a, const P *...p) {
    return ro_packable(a->head_size | a->q_row | a->k_row | a->v_row | a->out_row, p...);
}

/* Fills a tensor whose sums have no terms with `value`: +0 or a NaN. */
ro_status ro_cuda_attend_fill(ro_cuda *d, const ro_attention *a, float *x, int64_t heads,
                              int64_t tokens, int64_t row, float value);

/* Fails if there are more heads than an int can count. */
ro_status ro_cuda_attend_heads(ro_cuda *d, const ro_attention *a);

#endif
