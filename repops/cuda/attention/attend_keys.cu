/* Fused attention's gradients of keys and values: dv = p'^T dout and dk = ds^T q, in chunks of 128
 * queries. A row of the tile is a key, a column a query; a key's query heads are run in
 * sequence. */
#include "repops/cuda/attention/attend_backward.cuh"

/* A block of queries of a head. */
struct query_block {
    int64_t head, from; /* head: counted over the whole batch */
};

/* The queries of a block that row r of a thread admits: `window` of them from its start on. */
struct row_starts {
    int start, window;

    RO_DEVICE bool admits(int r, int column) const {
        return (uint32_t)(column - (start + r * AT_DOWN)) < (uint32_t)window;
    }
};

template <int D, int EACH> struct key_tile {
    typedef attend_tile<D, EACH> shape;
    static constexpr int WORDS = shape::ROWS < 32 ? 1 : shape::ROWS / 32;
    static constexpr size_t STATISTICS = AT_COLUMNS * 3, BITS = AT_COLUMNS * WORDS;
    static constexpr size_t SMEM =
        (2 * shape::HELD + shape::TILE + 2 * AT_STAGE + STATISTICS + BITS) * sizeof(float);
    static constexpr size_t SMEM_DROPOUT = SMEM + shape::TILE * sizeof(float);
    const backward_job &j;
    float *k, *v, *tile, *dropped, *stage; /* dropped: p', the tile itself without dropout */
    query_statistics *statistics;
    uint32_t *kept;
    int64_t key0, first_head, first_query, blocks; /* blocks: of queries in a head */
    int slot;

    RO_DEVICE void lay_out(float *smem) {
        k = smem, v = k + shape::HELD, tile = v + shape::HELD, stage = tile + shape::TILE;
        statistics = reinterpret_cast<query_statistics *>(stage + 2 * AT_STAGE);
        kept = reinterpret_cast<uint32_t *>(statistics + AT_COLUMNS);
        dropped = j.dropout.on ? reinterpret_cast<float *>(kept + BITS) : tile;
        slot = 0;
    }
    RO_DEVICE query_block block(int index) const {
        const int head = index / (int)blocks;
        return {first_head + head, first_query + (index - head * blocks) * AT_COLUMNS};
    }
    RO_DEVICE int count(const query_block &b) const {
        return (int)(j.queries - b.from < AT_COLUMNS ? j.queries - b.from : AT_COLUMNS);
    }
    /* Chunks of a block, in order: deep() of scores, p'^T dout, deep() of v and dout, ds^T q. */
    RO_DEVICE int deep() const {
        return (int)((j.size + AT_DEPTH - 1) / AT_DEPTH);
    }
    RO_DEVICE int tall(const query_block &b) const {
        return (count(b) + shape::DEEP - 1) / shape::DEEP;
    }
    RO_DEVICE void fetch(const query_block &b, int chunk, int to) const {
        float *at = stage + to * AT_STAGE;
        const int half = deep() + tall(b);
        const bool second = chunk >= half;
        const int c = second ? chunk - half : chunk;
        const int64_t left = j.queries - b.from;
        const bool of_q = second != (c < deep());
        const attend_rows &rows = of_q ? j.q_rows : j.out_rows;
        const float *from = (of_q ? j.q : j.dout) + rows.of((int)b.head) + b.from * rows.row;
        if (c < deep()) {
            const int64_t d = c * AT_DEPTH;
            copy_tile<AT_COLUMNS, AT_DEPTH, AT_DEPTH_STEP>(at, from + d, rows.row, left, j.size - d,
                                                           j.fours);
        } else {
            const int64_t row = (c - deep()) * shape::DEEP;
            copy_tile<shape::DEEP, D, D>(at, from + row * rows.row, rows.row, left - row, j.size,
                                         j.fours);
        }
        ro_copy_commit();
    }
    RO_DEVICE const float *next(int index, const query_block &b, int chunk) {
        const float *now = stage + slot * AT_STAGE;
        ro_copy_wait<0>();
        __syncthreads();
        slot ^= 1;
        if (chunk + 1 < 2 * (deep() + tall(b)))
            fetch(b, chunk + 1, slot);
        else if (index + 1 < j.group * blocks)
            fetch(block(index + 1), 0, slot);
        return now;
    }
    /* Reads the statistics of the block's queries. */
    RO_DEVICE void find_statistics(const query_block &b) const {
        const int64_t first = b.head * j.queries + b.from;
        for (int i = threadIdx.x; i < count(b); i += AT_THREADS)
            statistics[i].read(j, first + i);
        if (j.dropout.on)
            for (int i = threadIdx.x; i < count(b) * WORDS; i += AT_THREADS)
                kept[i] =
                    kept_bits(j.dropout, (first + i / WORDS) * j.keys + key0 + i % WORDS * 32);
    }
    RO_DEVICE bool is_kept(int row, int column) const {
        return (kept[column * WORDS + row / 32] >> row % 32 & 1) != 0;
    }
    RO_DEVICE void probabilities(const score_sums<EACH> &s, const row_starts &bound,
                                 int end) const {
#pragma unroll
        for (int c = 0; c < AT_EACH; c++) {
            const int column = computed_here(across()) + c * AT_ACROSS;
            const query_statistics of = column < end ? statistics[column] : query_statistics{};
            const int last = of.none() ? 0 : end;
#pragma unroll
            for (int r = 0; r < EACH; r++) {
                const int row = down() + r * AT_DOWN;
                tile[row * AT_TILE_STEP + column] =
                    of.probability(bound.admits(r, column) && column < last, s.at[r][c]);
            }
        }
        if (!j.dropout.on)
            return;
#pragma unroll
        for (int c = 0; c < AT_EACH; c++) {
            const int column = computed_here(across()) + c * AT_ACROSS;
#pragma unroll
            for (int r = 0; r < EACH; r++) {
                const int row = down() + r * AT_DOWN, at = row * AT_TILE_STEP + column;
                const bool counts = bound.admits(r, column) && column < end;
                dropped[at] = drop(j.dropout, is_kept(row, column) && counts, tile[at]);
            }
        }
    }
    RO_DEVICE void gradients(score_sums<EACH> &s, const row_starts &bound, int end) const {
        s.template finish<false>(1.0f, nullptr, 0);
        if (j.dropout.on)
#pragma unroll
            for (int c = 0; c < AT_EACH; c++)
#pragma unroll
                for (int r = 0; r < EACH; r++)
                    s.at[r][c] =
                        drop(j.dropout, is_kept(down() + r * AT_DOWN, across() + c * AT_ACROSS),
                             s.at[r][c]);
#pragma unroll
        for (int c = 0; c < AT_EACH; c++) {
            const int column = computed_here(across()) + c * AT_ACROSS;
            const query_statistics of = column < end ? statistics[column] : query_statistics{};
#pragma unroll
            for (int r = 0; r < EACH; r++) {
                float *x = &tile[(down() + r * AT_DOWN) * AT_TILE_STEP + column];
                *x = of.gradient(bound.admits(r, column) && column < end, *x, s.at[r][c]);
            }
        }
    }
};

/* Adds one block's chunk of a product to `total`. */
template <int D, int EACH>
RO_DEVICE void add_products(key_tile<D, EACH> &t, int index, const query_block &b, int chunk,
                            const float *tile, bool masked, const row_starts &bound,
                            product_sums<D, EACH> *total) {
    product_sums<D, EACH> sums;
    sums.clear();
    const int tall = t.tall(b);
    for (int c = 0; c < tall; c++) {
        const float *stage = t.next(index, b, chunk + c);
        const int first = c * attend_tile<D, EACH>::DEEP;
        if (masked)
            sums.template add<SOME>(tile, stage, first, bound);
        else
            sums.template add<ALL>(tile, stage, first, bound);
    }
    total->add_chunk(sums);
}

/* Stores the product of head `head` of the group after its last block. With several heads, the
 * gradient's own memory has their sum so far, from +0. */
template <int D, int EACH>
RO_DEVICE void store(const key_tile<D, EACH> &t, const product_sums<D, EACH> &total, float alpha,
                     int64_t head, float *to, int64_t step) {
    const backward_job &j = t.j;
    const int first = computed_here(down());
    const auto line = [&](int r) {
        const int64_t row = first + r * AT_DOWN;
        return t.key0 + row < j.keys ? to + row * step : nullptr;
    };
    store_products(total, j.size, j.fours, line, [&](int, float x, const float *at) {
        const float product = ro_canon(x * alpha);
        if (j.group == 1)
            return product;
        return ro_canon((head == 0 ? 0.0f : *at) + product);
    });
}

template <int D, int EACH>
__global__ void __launch_bounds__(AT_THREADS, 2)
    attend_keys_kernel(const __grid_constant__ backward_job j) {
    typedef attend_tile<D, EACH> shape;
    RO_SMEM(float, smem);
    int64_t head, index;
    j.order.of(blockIdx.x, &head, &index);
    key_tile<D, EACH> t = {j};
    t.lay_out(smem);
    t.key0 = index * shape::ROWS;
    t.first_head = head * j.group;
    t.first_query = j.causal ? t.key0 / AT_COLUMNS * AT_COLUMNS : 0;
    /* Queries up to here may see the tile's last key. */
    const int64_t seen = t.key0 + shape::ROWS - 1 + j.window;
    const int64_t last_query = seen < j.queries ? seen : j.queries;
    t.blocks = (last_query - t.first_query + AT_COLUMNS - 1) / AT_COLUMNS;
    const auto at = [&](const attend_rows &rows) { return rows.of((int)head) + t.key0 * rows.row; };
    copy_tile<shape::ROWS, D, shape::STEP>(t.k, j.k + at(j.k_rows), j.k_rows.row, j.keys - t.key0,
                                           j.size, j.fours);
    copy_tile<shape::ROWS, D, shape::STEP>(t.v, j.v + at(j.v_rows), j.v_rows.row, j.keys - t.key0,
                                           j.size, j.fours);
    t.fetch(t.block(0), 0, 0);
    product_sums<D, EACH> dk, dv;
    dk.clear();
    dv.clear();
    for (int i = 0; i < j.group * t.blocks; i++) {
        const query_block b = t.block(i);
        const int deep = t.deep(), tall = t.tall(b), end = t.count(b);
        const bool masked =
            j.causal && (b.from < t.key0 + shape::ROWS || b.from + AT_COLUMNS > t.key0 + j.window);
        const row_starts bound = masked ? row_starts{(int)(t.key0 - b.from) + down(), j.window}
                                        : row_starts{-AT_COLUMNS * 2, AT_NO_WINDOW};
        t.find_statistics(b);
        {
            score_sums<EACH> s;
            s.clear();
            for (int c = 0; c < deep; c++) {
                const float *stage = t.next(i, b, c);
                s.template add<shape::STEP>(t.k + c * AT_DEPTH, stage);
            }
            s.template finish<false>(j.scale, j.bias.at((int)head, j.keys, t.key0),
                                     (int)(j.keys - t.key0));
            t.probabilities(s, bound, end);
        }
        add_products(t, i, b, deep, t.dropped, masked, bound, &dv);
        {
            score_sums<EACH> s;
            s.clear();
            for (int c = 0; c < deep; c++) {
                const float *stage = t.next(i, b, deep + tall + c);
                s.template add<shape::STEP>(t.v + c * AT_DEPTH, stage);
            }
            t.gradients(s, bound, end);
        }
        add_products(t, i, b, 2 * deep + tall, t.tile, masked, bound, &dk);
        if ((i + 1) % t.blocks == 0) {
            store(t, dv, 1.0f, i / t.blocks, j.dv + at(j.v_rows), j.v_rows.row);
            store(t, dk, j.scale, i / t.blocks, j.dk + at(j.k_rows), j.k_rows.row);
            dv.clear();
            dk.clear();
        }
    }
}

template <int D, int EACH> static size_t memory_of(const backward_job &j) {
    return j.dropout.on ? key_tile<D, EACH>::SMEM_DROPOUT : key_tile<D, EACH>::SMEM;
}

template <int D, int EACH> static ro_status launch(ro_cuda *d, backward_job j) {
    const size_t smem = memory_of<D, EACH>(j);
    j.order.tiles = ceil_div(j.keys, attend_tile<D, EACH>::ROWS);
    const ro_status status = ro_cuda_allow(d, attend_keys_kernel<D, EACH>, "attention");
    if (status != RO_OK)
        return status;
    RO_LAUNCH((attend_keys_kernel<D, EACH>), ro_grid(j.order.heads * j.order.tiles),
              dim3(AT_THREADS), smem, d->stream, j);
    return ro_cuda_launched(d, "attention");
}

ro_status ro_cuda_attend_keys(ro_cuda *d, const backward_job &j) {
    const size_t memory = (size_t)d->shared_memory;
    if (j.size <= 64)
        return memory >= memory_of<64, 8>(j)   ? launch<64, 8>(d, j)
               : memory >= memory_of<64, 4>(j) ? launch<64, 4>(d, j)
                                               : launch<64, 1>(d, j);
    if (j.size <= 128)
        return memory >= memory_of<128, 4>(j) ? launch<128, 4>(d, j) : launch<128, 1>(d, j);
    return memory >= memory_of<256, 2>(j) ? launch<256, 2>(d, j) : launch<256, 1>(d, j);
}
