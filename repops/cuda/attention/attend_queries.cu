/* Fused attention's gradient of the queries: dq = ds k, in chunks of 128 keys. The queries of all
 * heads that share keys are the rows of one matrix. */
#include "repops/cuda/attention/attend_backward.cuh"

template <int D, int EACH> struct query_tile {
    typedef attend_tile<D, EACH> shape;
    static constexpr size_t STATISTICS = shape::ROWS * 3, BITS = shape::ROWS * 4,
                            LIMITS = shape::ROWS;
    static constexpr size_t SMEM =
        (2 * shape::HELD + shape::TILE + 2 * AT_STAGE + STATISTICS + BITS + LIMITS) * sizeof(float);
    const backward_job &j;
    float *q, *dout, *tile, *stage;
    query_statistics *statistics;
    uint32_t *kept;
    int32_t *limit; /* keys that each row admits */
    const float *k, *v;
    int64_t row0, first_row; /* first row of the tile: in its key-value head, and in all */
    int64_t rows, end;       /* rows of that head; keys that any row admits */
    int slot;

    RO_DEVICE void lay_out(float *smem) {
        q = smem, dout = q + shape::HELD, tile = dout + shape::HELD, stage = tile + shape::TILE;
        statistics = reinterpret_cast<query_statistics *>(stage + 2 * AT_STAGE);
        kept = reinterpret_cast<uint32_t *>(statistics + shape::ROWS);
        limit = reinterpret_cast<int32_t *>(kept + BITS);
        slot = 0;
    }
    /* Chunks of a block of keys, in order: deep() of scores, deep() of dout and v, then ds k. */
    RO_DEVICE int deep() const {
        return (int)((j.size + AT_DEPTH - 1) / AT_DEPTH);
    }
    RO_DEVICE int chunks(int64_t from) const {
        const int64_t count = end - from < AT_COLUMNS ? end - from : AT_COLUMNS;
        return 2 * deep() + (int)((count + shape::DEEP - 1) / shape::DEEP);
    }
    RO_DEVICE void fetch(int64_t from, int chunk, int to) const {
        float *at = stage + to * AT_STAGE;
        if (chunk < 2 * deep()) {
            const int64_t d = (chunk < deep() ? chunk : chunk - deep()) * AT_DEPTH;
            const int64_t step = chunk < deep() ? j.k_rows.row : j.v_rows.row;
            copy_tile<AT_COLUMNS, AT_DEPTH, AT_DEPTH_STEP>(
                at, (chunk < deep() ? k : v) + from * step + d, step, j.keys - from, j.size - d,
                j.fours);
        } else {
            const int64_t key = from + (chunk - 2 * deep()) * shape::DEEP;
            copy_tile<shape::DEEP, D, D>(at, k + key * j.k_rows.row, j.k_rows.row, j.keys - key,
                                         j.size, j.fours);
        }
        ro_copy_commit();
    }
    RO_DEVICE const float *next(int64_t from, int chunk) {
        const float *now = stage + slot * AT_STAGE;
        ro_copy_wait<0>();
        __syncthreads();
        slot ^= 1;
        if (chunk + 1 < chunks(from))
            fetch(from, chunk + 1, slot);
        else if (from + AT_COLUMNS < end)
            fetch(from + AT_COLUMNS, 0, slot);
        return now;
    }
    RO_DEVICE int64_t admitted(int64_t row) const {
        return row >= rows ? 0 : j.causal ? j.tokens.remainder(row) + 1 : j.keys;
    }
    RO_DEVICE void find_kept(int64_t from) const {
        if (j.dropout.on)
            for (int i = threadIdx.x; i < shape::ROWS * 4; i += AT_THREADS)
                kept[i] = kept_bits(j.dropout, (first_row + i / 4) * j.keys + from + i % 4 * 32);
    }
    /* Computes the thread's own elements of the tile. */
    RO_DEVICE void probabilities(const score_sums<EACH> &s, const row_limits &bound) const {
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            const int row = down() + r * AT_DOWN;
            const query_statistics of = statistics[row];
            const bool none = of.none();
#pragma unroll
            for (int c = 0; c < AT_EACH; c++) {
                const int column = across() + c * AT_ACROSS;
                tile[row * AT_TILE_STEP + column] =
                    of.probability(!none && bound.admits(r, column), s.at[r][c]);
            }
        }
    }
    RO_DEVICE void gradients(score_sums<EACH> &s, const row_limits &bound) const {
        s.template finish<true>(1.0f, nullptr, 0);
#pragma unroll
        for (int r = 0; r < EACH; r++) {
            const int row = down() + r * AT_DOWN;
            const query_statistics of = statistics[row];
            if (j.dropout.on)
#pragma unroll
                for (int c = 0; c < AT_EACH; c++) {
                    const int column = across() + c * AT_ACROSS;
                    s.at[r][c] =
                        drop(j.dropout, kept[row * 4 + column / 32] >> column % 32 & 1, s.at[r][c]);
                }
#pragma unroll
            for (int c = 0; c < AT_EACH; c++) {
                const int column = across() + c * AT_ACROSS;
                float *x = &tile[row * AT_TILE_STEP + column];
                *x = of.gradient(bound.admits(r, column), *x, s.at[r][c]);
            }
        }
    }
};

template <int D, int EACH>
__global__ void __launch_bounds__(AT_THREADS, 2)
    attend_queries_kernel(const __grid_constant__ backward_job j) {
    typedef attend_tile<D, EACH> shape;
    RO_SMEM(float, smem);
    int64_t head, index;
    j.order.of(blockIdx.x, &head, &index);
    query_tile<D, EACH> t = {j};
    t.lay_out(smem);
    t.rows = j.group * j.queries;
    t.row0 = (j.order.tiles - 1 - index) * shape::ROWS;
    t.first_row = head * t.rows + t.row0;
    t.k = j.k + j.k_rows.of((int)head), t.v = j.v + j.v_rows.of((int)head);
    /* A tile that crosses into the next head contains the last query of one head, which may see all
     * keys, and the first of the other, which may see only one. */
    const int64_t last_row = t.row0 + shape::ROWS < t.rows ? t.row0 + shape::ROWS : t.rows;
    const bool turns = j.tokens.quotient(t.row0) != j.tokens.quotient(last_row - 1);
    const int64_t least = turns ? 1 : t.admitted(t.row0);
    t.end = turns ? j.keys : t.admitted(last_row - 1);
    const auto line = [&](const attend_rows &rows, int64_t r) {
        return rows.line((int)(head * j.group), j.tokens, t.row0 + r);
    };
    copy_lines<shape::ROWS, D, shape::STEP>(
        t.q, [&](int r) { return j.q + line(j.q_rows, r); }, last_row - t.row0, j.size, j.fours);
    copy_lines<shape::ROWS, D, shape::STEP>(
        t.dout, [&](int r) { return j.dout + line(j.out_rows, r); }, last_row - t.row0, j.size,
        j.fours);
    const int64_t base = least > j.window ? (least - j.window) / AT_COLUMNS * AT_COLUMNS : 0;
    t.fetch(base, 0, 0);
    for (int r = threadIdx.x; r < shape::ROWS; r += AT_THREADS) {
        t.limit[r] = (int32_t)t.admitted(t.row0 + r);
        if (t.row0 + r < t.rows)
            t.statistics[r].read(j, t.first_row + r);
    }
    product_sums<D, EACH> dq;
    dq.clear();
    for (int64_t from = base; from < t.end; from += AT_COLUMNS) {
        const int deep = t.deep(), chunks = t.chunks(from);
        const row_limits bound = {t.limit, (int)from, j.window};
        t.find_kept(from);
        {
            score_sums<EACH> s;
            s.clear();
            for (int c = 0; c < deep; c++) {
                const float *stage = t.next(from, c);
                s.template add<shape::STEP>(t.q + c * AT_DEPTH, stage);
            }
            s.template finish<true>(j.scale, j.bias.at((int)head, j.keys, from),
                                    (int)(j.keys - from));
            t.probabilities(s, bound);
            s.clear();
            for (int c = 0; c < deep; c++) {
                const float *stage = t.next(from, deep + c);
                s.template add<shape::STEP>(t.dout + c * AT_DEPTH, stage);
            }
            t.gradients(s, bound);
        }
        product_sums<D, EACH> sums;
        sums.clear();
        const bool masked = j.causal && (least < from + AT_COLUMNS || t.end - j.window > from);
        for (int c = 2 * deep; c < chunks; c++) {
            const float *stage = t.next(from, c);
            const int first = (c - 2 * deep) * shape::DEEP;
            if (masked)
                sums.template add<SOME>(t.tile, stage, first, bound);
            else
                sums.template add<ALL>(t.tile, stage, first, bound);
        }
        dq.add_chunk(sums);
    }
    const auto dq_line = [&](int r) {
        const int64_t row = down() + r * AT_DOWN;
        return t.row0 + row < t.rows ? j.dq + line(j.q_rows, row) : nullptr;
    };
    store_products(dq, j.size, j.fours, dq_line,
                   [&](int, float x, const float *) { return ro_canon(x * j.scale); });
}

template <int D, int EACH> static ro_status launch(ro_cuda *d, backward_job j) {
    constexpr size_t smem = query_tile<D, EACH>::SMEM;
    j.order.tiles = ceil_div(j.group * j.queries, attend_tile<D, EACH>::ROWS);
    const ro_status status = ro_cuda_allow(d, attend_queries_kernel<D, EACH>, "attention");
    if (status != RO_OK)
        return status;
    RO_LAUNCH((attend_queries_kernel<D, EACH>), ro_grid(j.order.heads * j.order.tiles),
              dim3(AT_THREADS), smem, d->stream, j);
    return ro_cuda_launched(d, "attention");
}

ro_status ro_cuda_attend_queries(ro_cuda *d, const backward_job &j) {
    const size_t memory = (size_t)d->shared_memory;
    if (j.size <= 64)
        return memory >= query_tile<64, 8>::SMEM   ? launch<64, 8>(d, j)
               : memory >= query_tile<64, 4>::SMEM ? launch<64, 4>(d, j)
                                                   : launch<64, 1>(d, j);
    if (j.size <= 128)
        return memory >= query_tile<128, 4>::SMEM ? launch<128, 4>(d, j) : launch<128, 1>(d, j);
    return memory >= query_tile<256, 2>::SMEM ? launch<256, 2>(d, j) : launch<256, 1>(d, j);
}
