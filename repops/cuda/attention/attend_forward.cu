/* Fused attention, forward (SPEC.md section 8). The queries of all heads that share keys are the
 * rows of one matrix. If they are too few to fill the device, each block of keys gets thread blocks
 * of its own: its results go to memory, and attend_merge.cu walks over the blocks. */
#include "repops/cuda/attention/attend.cuh"
#include "repops/cuda/attention/attend_merge.cuh"

struct forward_job {
    const float *q, *k, *v;
    float *out, *m, *l;
    attend_blocks split; /* memory for the results of blocks; NULL: not split */
    attend_order order;
    attend_dropout dropout;
    attend_bias bias;
    attend_rows q_rows, k_rows, v_rows, out_rows;
    ro_divider tokens;
    int64_t queries, keys, size, rows; /* rows: queries of all heads of a key-value head */
    int group;                         /* query heads that share a key-value head */
    float scale;
    int causal, fours, window;
};

/* The statistics of a row of the tile: maximum and sum of the current block, and of all blocks so
 * far. They are in shared memory, since registers are needed for sums. */
struct row_statistics {
    float mc, lc;
    int32_t m; /* as a key of rows.cuh */
    float l;
};

/* Returns exp(x), where x <= 0 or a NaN. */
RO_DEVICE float exp_below(float x) {
    return ro_unless_nan(x, ro_exp_down(ro_cut_below(x, -106.0f)));
}

template <int D, int EACH> struct forward_tile {
    typedef attend_tile<D, EACH> shape;
    static constexpr size_t BITS = shape::ROWS * 4, LIMITS = shape::ROWS + 1,
                            STATISTICS = shape::ROWS * 4;
    static constexpr size_t SMEM =
        (shape::HELD + shape::TILE + 2 * AT_STAGE + BITS + STATISTICS + LIMITS) * sizeof(float);
    const forward_job &j;
    float *held, *tile, *stage;
    uint32_t *kept;
    int32_t *limit; /* keys that each row admits; after the last row, the head, for its bias */
    row_statistics *statistics;
    const float *k, *v;
    int64_t row0, first_row; /* first row of the tile: in the head, and in all rows */
    int end;                 /* keys that any row admits; keys have 31 bits (SPEC.md section 11) */
    int slot;

    /* Chunks of a block of keys: deep() of scores, then those of products. */
    RO_DEVICE int deep() const {
        return (int)((j.size + AT_DEPTH - 1) / AT_DEPTH);
    }
    RO_DEVICE int chunks(int from) const {
        const int count = end - from < AT_COLUMNS ? end - from : AT_COLUMNS;
        return deep() + (count + shape::DEEP - 1) / shape::DEEP;
    }
    RO_DEVICE void fetch(int from, int chunk, int to) const {
        float *at = stage + to * AT_STAGE;
        if (chunk < deep()) {
            const int64_t d = chunk * AT_DEPTH;
            copy_tile<AT_COLUMNS, AT_DEPTH, AT_DEPTH_STEP>(
                at, k + from * j.k_rows.row + d, j.k_rows.row, j.keys - from, j.size - d, j.fours);
        } else {
            const int64_t key = from + (chunk - deep()) * shape::DEEP;
            copy_tile<shape::DEEP, D, D>(at, v + key * j.v_rows.row, j.v_rows.row, j.keys - key,
                                         j.size, j.fours);
        }
        ro_copy_commit();
    }
    /* Waits for the chunk that all threads are copying, and starts to copy the next one. */
    RO_DEVICE const float *next(int from, int chunk, int last) {
        const float *now = stage + slot * AT_STAGE;
        ro_copy_wait<0>();
        __syncthreads();
        slot ^= 1;
        if (chunk + 1 < chunks(from))
            fetch(from, chunk + 1, slot);
        else if (from + AT_COLUMNS < last)
            fetch(from + AT_COLUMNS, 0, slot);
        return now;
    }
    RO_DEVICE int admitted(int64_t row) const {
        if (row >= j.rows)
            return 0;
        return j.causal ? (int)j.tokens.remainder(row) + (int)(1 + j.keys - j.queries)
                        : (int)j.keys;
    }
    RO_DEVICE void find_kept(int from) const {
        if (j.dropout.on)
            for (int i = threadIdx.x; i < shape::ROWS * 4; i += AT_THREADS)
                kept[i] = kept_bits(j.dropout, (first_row + i / 4) * j.keys + from + i % 4 * 32);
    }
    /* Turns scores into exponentials in the tile, and stores their maxima and R as the rows'
     * statistics. Scores of absent keys become -inf, which exp turns into +0: branches would keep
     * the exponentials from overlapping. */
    RO_DEVICE void exponentials(score_sums<EACH> &s, const row_limits &bound) const {
        const int x = across();
        int32_t key[EACH];
        float lane[EACH];
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            key[r] = RO_KEY_LEAST;
#pragma unroll
            for (int c = 0; c < AT_EACH; c++) {
                if (!bound.admits(r, x + c * AT_ACROSS))
                    s.at[r][c] = ro_from_bits(RO_MINUS_INFINITY_BITS);
                key[r] = ro_larger(key[r], ro_key(s.at[r][c]));
            }
        }
        fold_across(key, ro_larger);
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            const int row = computed_here(down()) + r * AT_DOWN;
            /* If all scores are -inf, subtracting 0 leaves them -inf. */
            const float m = key[r] == RO_KEY_LEAST ? 0.0f : ro_of_key(key[r]);
            float e[AT_EACH];
#pragma unroll
            for (int c = 0; c < AT_EACH; c++)
                e[c] = exp_below(s.at[r][c] - m);
            lane[r] = ((e[0] + e[4]) + (e[2] + e[6])) + ((e[1] + e[5]) + (e[3] + e[7]));
            if (j.dropout.on)
#pragma unroll
                for (int c = 0; c < AT_EACH; c++) {
                    const int column = x + c * AT_ACROSS;
                    const uint32_t bit = kept[row * 4 + column / 32] >> column % 32 & 1;
                    /* If the maximum is a NaN, even absent keys' exponentials are NaN. */
                    e[c] = drop(j.dropout, bit && bound.admits(r, column), e[c]);
                }
#pragma unroll
            for (int c = 0; c < AT_EACH; c++)
                tile[row * AT_TILE_STEP + x + c * AT_ACROSS] = e[c];
        }
        fold_across(lane, [](float a, float b) { return a + b; });
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            row_statistics *of = &statistics[computed_here(down()) + r * AT_DOWN];
            if (x == 0)
                of->mc = ro_of_key(key[r]), of->lc = ro_canon(lane[r]);
        }
    }
};

/* Performs one step of the walk. In the first one, factors A = 0 and B = 1 (or a NaN, if the
 * block's sum is one) give the block itself. Each thread of a row computes one factor for one of
 * the rows; it is -1 if the block has no key. */
template <int D, int EACH>
RO_DEVICE void merge(const forward_tile<D, EACH> &t, const product_sums<D, EACH> &block,
                     product_sums<D, EACH> *o) {
    static_assert(2 * EACH <= AT_ACROSS, "");
    const int x = computed_here(across()), mine = x / 2 % EACH;
    const bool odd = x % 2 != 0;
    row_statistics *of = &t.statistics[computed_here(down()) + mine * AT_DOWN];
    const row_statistics now = *of;
    const int32_t key = ro_key(now.mc), next = ro_larger(now.m, key);
    const bool none = key == RO_KEY_LEAST;
    const float before = odd ? now.mc : ro_of_key(now.m);
    const float factor = none ? -1.0f : exp_below(before - ro_of_key(next));
    const float other = __shfl_xor_sync(RO_ALL_LANES, factor, 1);
    __syncwarp(); /* all have read their statistics */
    if (x < 2 * EACH && !odd && !none)
        of->m = next, of->l = ro_fma(now.l, factor, other * now.lc);
    float a[EACH], b[EACH];
#pragma unroll
    for (int r = 0; r < EACH; r++) {
        a[r] = __shfl_sync(RO_ALL_LANES, factor, 2 * r, AT_ACROSS);
        b[r] = __shfl_sync(RO_ALL_LANES, factor, 2 * r + 1, AT_ACROSS);
    }
#pragma unroll
    for (int r = 0; r < EACH; r++) {
        if (b[r] < 0.0f)
            continue;
#pragma unroll
        for (int c = 0; c < attend_tile<D, EACH>::OUT; c++)
            o->at[r][c] = ro_fma(o->at[r][c], a[r], b[r] * (0.0f + block.at[r][c]));
    }
}

template <int D, int EACH>
RO_DEVICE void store_block(const forward_tile<D, EACH> &t, int index,
                           const product_sums<D, EACH> &sums) {
    const attend_blocks &to = t.j.split;
    const int first = computed_here(down());
    const auto line = [&](int r) {
        const int row = first + r * AT_DOWN;
        return t.row0 + row < t.j.rows
                   ? to.ac + ((t.first_row + row) * to.blocks + index) * t.j.size
                   : nullptr;
    };
    store_products(sums, t.j.size, t.j.fours, line,
                   [](int, float x, const float *) { return ro_canon(0.0f + x); });
#pragma unroll
    for (int r = 0; r < EACH; r++) {
        const int64_t row = first + r * AT_DOWN;
        if (across() > 0 || t.row0 + row >= t.j.rows)
            continue;
        to.mc[(t.first_row + row) * to.blocks + index] = t.statistics[row].mc;
        to.lc[(t.first_row + row) * to.blocks + index] = t.statistics[row].lc;
    }
}

template <int D, int EACH>
RO_DEVICE void store_rows(const forward_tile<D, EACH> &t, const product_sums<D, EACH> &o) {
    float scale[EACH]; /* 0 for rows without a key, whose sums are +0 */
    __syncwarp();
#pragma unroll
    for (int r = 0; r < EACH; r++) {
        const int64_t row = down() + r * AT_DOWN;
        const row_statistics last = t.statistics[row];
        const float l = ro_canon(last.l);
        scale[r] = last.m == RO_KEY_LEAST ? 0.0f : 1.0f / l;
        if (across() == 0 && t.row0 + row < t.j.rows) {
            if (t.j.m)
                t.j.m[t.first_row + row] = ro_of_key(last.m);
            if (t.j.l)
                t.j.l[t.first_row + row] = l;
        }
    }
    const int first = computed_here(down()), head = t.limit[attend_tile<D, EACH>::ROWS];
    const auto line = [&](int r) {
        const int64_t row = t.row0 + first + r * AT_DOWN;
        return row < t.j.rows ? t.j.out + t.j.out_rows.line(head * t.j.group, t.j.tokens, row)
                              : nullptr;
    };
    store_products(o, t.j.size, t.j.fours, line,
                   [&](int r, float x, const float *) { return ro_canon(x * scale[r]); });
}

template <int D, int EACH>
__global__ void __launch_bounds__(AT_THREADS, attend_tile<D, EACH>::BLOCKS)
    attend_forward_kernel(const __grid_constant__ forward_job j) {
    typedef attend_tile<D, EACH> shape;
    RO_SMEM(float, smem);
    int64_t head, index;
    j.order.of(blockIdx.x, &head, &index);
    forward_tile<D, EACH> t = {j};
    t.held = smem, t.tile = smem + shape::HELD, t.stage = t.tile + shape::TILE;
    t.kept = reinterpret_cast<uint32_t *>(t.stage + 2 * AT_STAGE);
    t.statistics = reinterpret_cast<row_statistics *>(t.kept + forward_tile<D, EACH>::BITS);
    t.row0 = (j.order.tiles - 1 - index) * shape::ROWS;
    t.first_row = head * j.rows + t.row0;
    t.k = j.k + j.k_rows.of((int)head), t.v = j.v + j.v_rows.of((int)head);
    /* If the tile spans several heads, it may contain a head's last row and another's first. */
    const int64_t last_row = t.row0 + shape::ROWS < j.rows ? t.row0 + shape::ROWS : j.rows;
    const bool turns = j.tokens.quotient(t.row0) != j.tokens.quotient(last_row - 1);
    const int least = turns ? (int)(1 + j.keys - j.queries) : t.admitted(t.row0);
    t.end = turns ? (int)j.keys : t.admitted(last_row - 1);
    t.slot = 0;
    /* The first block that any row admits. */
    const int base = least > j.window ? (least - j.window) / AT_COLUMNS * AT_COLUMNS : 0;
    const int begin = j.split.ac ? (int)blockIdx.y * AT_COLUMNS : base;
    const int end = begin < base ? begin : t.end;
    const int stop = j.split.ac && begin + AT_COLUMNS < end ? begin + AT_COLUMNS : end;
    product_sums<D, EACH> o;
    o.clear();
    t.limit = reinterpret_cast<int32_t *>(t.statistics + shape::ROWS);
    if (threadIdx.x == 0)
        t.limit[shape::ROWS] = (int32_t)head;
    for (int r = threadIdx.x; r < shape::ROWS; r += AT_THREADS) {
        t.limit[r] = t.admitted(t.row0 + r);
        t.statistics[r] = {ro_from_bits(RO_MINUS_INFINITY_BITS), 0.0f, RO_KEY_LEAST, 0.0f};
    }
    __syncthreads();
    if (begin < stop) {
        const auto line = [&](int r) {
            return j.q + j.q_rows.line((int)head * j.group, j.tokens, t.row0 + r);
        };
        copy_lines<shape::ROWS, D, shape::STEP>(t.held, line, j.rows - t.row0, j.size, j.fours);
        t.fetch(begin, 0, 0);
    }
    for (int from = begin; from < stop; from += AT_COLUMNS) {
        const int deep = t.deep(), chunks = t.chunks(from);
        const row_limits bound = {t.limit, from, j.window};
        t.find_kept(from);
        {
            score_sums<EACH> s;
            s.clear();
            for (int c = 0; c < deep; c++) {
                const float *stage = t.next(from, c, stop);
                s.template add<shape::STEP>(t.held + c * AT_DEPTH, stage);
            }
            s.template finish<true>(j.scale, j.bias.at(t.limit[shape::ROWS], j.keys, from),
                                    (int)j.keys - from);
            t.exponentials(s, bound);
        }
        product_sums<D, EACH> sums;
        sums.clear();
        const bool masked = j.causal && (least < from + AT_COLUMNS || t.end - j.window > from);
        for (int c = deep; c < chunks; c++) {
            const float *stage = t.next(from, c, stop);
            const int first = (c - deep) * shape::DEEP;
            if (masked)
                sums.template add<SOME>(t.tile, stage, first, bound);
            else
                sums.template add<ALL>(t.tile, stage, first, bound);
        }
        if (j.split.ac)
            store_block(t, from / AT_COLUMNS, sums);
        else
            merge(t, sums, &o);
    }
    if (!j.split.ac)
        store_rows(t, o);
    else if (begin >= stop)
        store_block(t, (int)blockIdx.y, o);
}

/* ---- launches ---- */

/* Most elements of blocks' results that are stored in memory. */
#define SPLIT_MOST (INT64_C(1) << 26)

static ro_status allocate_blocks(ro_cuda *d, forward_job *j, int64_t blocks) {
    const int64_t rows = j->order.heads * j->rows, numbers = rows * blocks;
    void *memory;
    const ro_status status =
        ro_cuda_alloc(d, (size_t)(numbers * (j->size + 2)) * sizeof(float), &memory);
    if (status != RO_OK)
        return status;
    float *at = static_cast<float *>(memory);
    j->split = {at, at + numbers * j->size, at + numbers * (j->size + 1), blocks};
    return RO_OK;
}

template <int D, int EACH> static ro_status launch_tiles(ro_cuda *d, forward_job j) {
    const int64_t blocks = ceil_div(j.keys, AT_COLUMNS);
    j.order.tiles = ceil_div(j.rows, attend_tile<D, EACH>::ROWS);
    const int64_t items = j.order.heads * j.order.tiles;
    ro_status status = ro_cuda_allow(d, attend_forward_kernel<D, EACH>, "attention");
    const bool split = items < 2 * d->multiprocessors && blocks > 1 && blocks <= MERGE_MOST &&
                       j.order.heads * j.rows * blocks * j.size <= SPLIT_MOST;
    if (status == RO_OK && split)
        status = allocate_blocks(d, &j, blocks);
    if (status != RO_OK)
        return status;
    RO_LAUNCH((attend_forward_kernel<D, EACH>), ro_grid(items, split ? (unsigned)blocks : 1),
              dim3(AT_THREADS), (forward_tile<D, EACH>::SMEM), d->stream, j);
    status = ro_cuda_launched(d, "attention");
    if (split && status == RO_OK)
        status = ro_cuda_attend_merge(
            d, j.split, {j.order.heads * j.rows, j.size, j.out, j.out_rows, j.tokens, j.m, j.l});
    ro_cuda_free(d, j.split.ac);
    return status;
}

/* Launches with the largest tile for which the device has memory and the job has rows. */
template <int D, int MOST> static ro_status launch(ro_cuda *d, const forward_job &j) {
    const size_t memory = (size_t)d->shared_memory;
    if constexpr (MOST == 8)
        if (j.rows > 32 && forward_tile<D, 8>::SMEM <= memory)
            return launch_tiles<D, 8>(d, j);
    if (j.rows > 8 && forward_tile<D, 4>::SMEM <= memory)
        return launch_tiles<D, 4>(d, j);
    return launch_tiles<D, 1>(d, j);
}

static ro_status fill(ro_cuda *d, float *x, int64_t count, float value) {
    return map<float>(
        d, x, count, [=] __device__(int64_t) { return value; }, "attention");
}

static ro_status empty_forward(ro_cuda *d, const ro_attention_job *job) {
    const ro_attention *a = job->a;
    const int64_t rows = a->batch * a->heads * a->queries;
    ro_status status = ro_cuda_attend_fill(d, a, job->out, a->heads, a->queries, a->out_row, 0.0f);
    if (status == RO_OK && job->m)
        status = fill(d, job->m, rows, ro_from_bits(RO_MINUS_INFINITY_BITS));
    return status == RO_OK && job->l ? fill(d, job->l, rows, 0.0f) : status;
}

ro_status ro_cuda_attention_forward(ro_cuda *d, const ro_attention_job *job) {
    const ro_attention *a = job->a;
    const ro_status status = ro_cuda_attend_heads(d, a);
    if (status != RO_OK)
        return status;
    if (a->batch == 0 || a->queries == 0 || a->keys == 0)
        return empty_forward(d, job);
    forward_job j = {job->q,
                     job->k,
                     job->v,
                     job->out,
                     job->m,
                     job->l,
                     {},
                     {a->batch * a->kv_heads, 0},
                     dropout_of(a),
                     bias_of(a),
                     rows_of(a, a->heads, a->queries, a->q_row),
                     rows_of(a, a->kv_heads, a->kv_rows, a->k_row),
                     rows_of(a, a->kv_heads, a->kv_rows, a->v_row),
                     rows_of(a, a->heads, a->queries, a->out_row),
                     ro_divider(a->queries),
                     a->queries,
                     a->keys,
                     a->head_size,
                     a->heads / a->kv_heads * a->queries,
                     (int)(a->heads / a->kv_heads),
                     a->scale,
                     a->causal != 0,
                     in_fours(a, job->q, job->k, job->v, job->out),
                     window_of(a)};
    if (a->head_size <= 64)
        return launch<64, 8>(d, j);
    if (a->head_size <= 128)
        return launch<128, 8>(d, j);
    return launch<256, 4>(d, j);
}
