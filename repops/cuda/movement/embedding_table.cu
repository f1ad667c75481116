/* ro_embedding_backward, and embedding_grad where it is fast: the gradient of a table by one
 * launch. A thread block has some rows of the table, searches all ids for theirs, and adds the rows
 * of dy in the order of K (SPEC.md sections 3.3 and 5). Each row of the table is written once or,
 * if gradients are added, read once and written where bits change. */
#include "repops/cuda/movement/embedding.cuh"
#include "repops/cuda/rows/store.cuh"
#include "repops/op_movement.h"

enum {
    TABLE_THREADS = 256,
    TABLE_ROWS = 8,                 /* rows of a thread block */
    TABLE_LIST = 4 * TABLE_THREADS, /* positions that are searched at a time */
    TABLE_WORDS = TABLE_LIST / 32,
    TABLE_AHEAD = 8, /* rows of dy that are read before any is added */
    TABLE_SCAN = 128 /* pairs of row and position that take as long as a number's memory */
};

/* The shared memory of a block. */
struct table_scratch {
    uint32_t present[TABLE_THREADS / 32]; /* the block's rows that each warp found, as bits */
    uint32_t word[TABLE_WORDS];           /* positions of one row, as bits, */
    uint32_t list[TABLE_LIST];            /* and as numbers */
};

/* A block's rows are `stride` apart, since frequent ids are often neighbours. */
struct table_plan {
    ro_embedding_job j;
    ro_divider stride;

    RO_DEVICE int64_t row(int k) const {
        return blockIdx.x + k * stride.divisor;
    }
    /* Returns which of the block's rows has this id; -1: none. */
    RO_DEVICE int owner(int32_t id) const {
        if (id < 0 || id >= j.rows)
            return -1;
        const int k = stride.short_quotient(id);
        return id - k * stride.divisor == blockIdx.x ? k : -1;
    }
};

/* Sums of one id's rows of dy in N columns, in the order of K. */
template <int N> struct table_sum {
    float group[N] = {}, level[N][ID_LEVELS] = {};
    int64_t groups = 0;
    int count = 0; /* rows in the current group */

    RO_DEVICE void close_group() {
        groups++;
        count = 0;
#pragma unroll
        for (int k = 0; k < N; k++) {
            ro_push_group(level[k], groups, group[k]);
            group[k] = 0.0f;
        }
    }
    RO_DEVICE void add(const ro_pack<N> &v) {
#pragma unroll
        for (int k = 0; k < N; k++)
            group[k] = group[k] + v.at[k];
        if (++count == RO_COLUMN_GROUP)
            close_group();
    }
    RO_DEVICE ro_pack<N> close() {
        ro_pack<N> sum;
        if (count > 0)
            close_group();
#pragma unroll
        for (int k = 0; k < N; k++)
            sum.at[k] = ro_sum_levels(level[k]);
        return sum;
    }
};

/* Lists those of TABLE_LIST positions from `from` on that have the id, in ascending order. Returns
 * their number to every thread. */
RO_DEVICE int list_positions(const ro_embedding_job &j, int32_t id, int64_t from,
                             table_scratch *s) {
    const int t = threadIdx.x, lane = t % 32;
    __syncthreads(); /* all threads have read the previous list */
#pragma unroll
    for (int at = t; at < TABLE_LIST; at += TABLE_THREADS) {
        const bool same = from + at < j.positions && j.ids[from + at] == id;
        const uint32_t word = __ballot_sync(RO_ALL_LANES, same);
        if (lane == 0)
            s->word[at / 32] = word;
    }
    __syncthreads();
    /* There are as many words as lanes. */
    const uint32_t own = s->word[lane];
    int end = __popc(own);
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        const int before = __shfl_up_sync(RO_ALL_LANES, end, apart);
        end += lane >= apart ? before : 0;
    }
    const int all = __shfl_sync(RO_ALL_LANES, end, 31);
    if (all == 0)
        return 0;
    for (int w = t / 32; w < TABLE_WORDS; w += TABLE_THREADS / 32) {
        const uint32_t word = __shfl_sync(RO_ALL_LANES, own, w);
        const int first = __shfl_sync(RO_ALL_LANES, end, w) - __popc(word);
        if (word >> lane & 1)
            s->list[first + __popc(word & ((1u << lane) - 1))] = (uint32_t)(from + 32 * w + lane);
    }
    __syncthreads();
    return all;
}

/* Returns the sum of a row that has positions; `wanted`: this thread has columns. */
template <int N>
RO_DEVICE ro_pack<N> sum_of_row(const ro_embedding_job &j, int32_t id, int64_t column, bool wanted,
                                table_scratch *s) {
    table_sum<N> sum;
#pragma unroll 1
    for (int64_t from = 0; from < j.positions; from += TABLE_LIST) {
        const int count = list_positions(j, id, from, s);
#pragma unroll 1
        for (int first = 0; wanted && first < count; first += TABLE_AHEAD) {
            ro_pack<N> v[TABLE_AHEAD];
#pragma unroll
            for (int u = 0; u < TABLE_AHEAD; u++)
                if (first + u < count)
                    v[u] = ro_load<N>(j.dy + s->list[first + u] * j.cols + column);
#pragma unroll
            for (int u = 0; u < TABLE_AHEAD; u++)
                if (first + u < count)
                    sum.add(v[u]);
        }
    }
    return sum.close();
}

/* to = canon(old + v) if `add`, else canon(v). Does not write if the bits stay the same. */
template <int N> RO_DEVICE void put_row(float *to, bool add, const ro_pack<N> &old, ro_pack<N> v) {
    bool same = add;
#pragma unroll
    for (int k = 0; k < N; k++) {
        v.at[k] = ro_canon(add ? old.at[k] + v.at[k] : v.at[k]);
        same = same && ro_to_bits(v.at[k]) == ro_to_bits(old.at[k]);
    }
    if (!same)
        ro_store_whole<N>(to, v);
}

/* Stores rows without positions: the empty sum is +0, which changes a -0 if it is added. */
template <int N> RO_DEVICE void put_absent(const table_plan &p, uint32_t present, int64_t column) {
    ro_pack<N> old[TABLE_ROWS] = {};
    const bool add = p.j.table.add;
    const auto each = [&](auto f) {
#pragma unroll
        for (int k = 0; k < TABLE_ROWS; k++)
            if (!(present >> k & 1) && p.row(k) < p.j.rows)
                f(k, p.j.table.data + p.row(k) * p.j.cols + column);
    };
    if (add)
        each([&](int k, const float *at) { old[k] = ro_load<N>(at); });
    each([&](int k, float *at) { put_row<N>(at, add, old[k], ro_pack<N>{}); });
}

/* Returns which of the block's rows have positions, as bits. */
RO_DEVICE uint32_t rows_present(const table_plan &p, table_scratch *s) {
    uint32_t own = 0, all = 0;
    for (int64_t i = threadIdx.x; i < p.j.positions; i += TABLE_THREADS) {
        const int k = p.owner(p.j.ids[i]);
        own |= k >= 0 ? 1u << k : 0u;
    }
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        own |= __shfl_xor_sync(RO_ALL_LANES, own, apart);
    if (threadIdx.x % 32 == 0)
        s->present[threadIdx.x / 32] = own;
    __syncthreads();
    for (int w = 0; w < TABLE_THREADS / 32; w++)
        all |= s->present[w];
    return all;
}

template <int N>
__global__ void __launch_bounds__(TABLE_THREADS, 2)
    table_kernel(const __grid_constant__ table_plan p) {
    RO_SMEM(table_scratch, s);
    const int64_t column = ((int64_t)blockIdx.y * TABLE_THREADS + threadIdx.x) * N;
    const bool wanted = column < p.j.cols;
    const uint32_t present = rows_present(p, s);
    if (wanted)
        put_absent<N>(p, present, column);
#pragma unroll 1
    for (uint32_t left = present; left; left &= left - 1) {
        const int64_t row = p.row(__ffs((int)left) - 1);
        float *to = p.j.table.data + row * p.j.cols + column;
        const ro_pack<N> sum = sum_of_row<N>(p.j, (int32_t)row, column, wanted, s);
        if (wanted)
            put_row<N>(to, p.j.table.add, p.j.table.add ? ro_load<N>(to) : ro_pack<N>{}, sum);
    }
}

/* Returns whether the search through ids takes no longer than the memory traffic, and the grid is
 * wide enough for a row. */
static bool suits(const ro_embedding_job &j) {
    enum { GRID_Y_MAX = 65535 };
    return j.rows <= INT32_MAX && j.cols <= (int64_t)GRID_Y_MAX * TABLE_THREADS &&
           j.positions <= INT64_MAX / (j.rows + 1) &&
           j.positions * j.rows <= TABLE_SCAN * j.cols * (j.positions + j.rows);
}

template <int N> static ro_status run_table(ro_cuda *d, const ro_embedding_job &j) {
    const int64_t stride = ceil_div(j.rows, TABLE_ROWS),
                  tiles = ceil_div(j.cols, N * TABLE_THREADS);
    RO_LAUNCH(table_kernel<N>, dim3((unsigned)stride, (unsigned)tiles), dim3(TABLE_THREADS),
              sizeof(table_scratch), d->stream, table_plan{j, ro_divider(stride)});
    return ro_cuda_launched(d, "embedding_backward");
}

/* Computes the gradient by a sort of the positions. */
static ro_status run_sorted(ro_cuda *d, const ro_embedding_job &j) {
    float *out = j.table.data;
    const int64_t count = j.rows * j.cols;
    void *room = nullptr;
    if (!j.table.add)
        return ro_cuda_add_by_id(d, j, out);
    ro_status status = ro_cuda_alloc(d, (size_t)count * sizeof(float), &room);
    if (status != RO_OK)
        return status;
    const float *sum = static_cast<const float *>(room);
    status = ro_cuda_add_by_id(d, j, static_cast<float *>(room));
    if (status == RO_OK)
        status = map<float>(
            d, out, count, [=] __device__(int64_t i) { return ro_canon(out[i] + sum[i]); },
            "embedding_backward");
    ro_cuda_free(d, room);
    return status;
}

ro_status ro_cuda_embedding_backward(ro_cuda *d, const ro_embedding_job *j) {
    if (!suits(*j))
        return run_sorted(d, *j);
    return ro_packable(j->cols, j->dy, j->table.data) ? run_table<4>(d, *j) : run_table<1>(d, *j);
}

static ro_status embedding_grad(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int64_t rows = call->output.dim[0], all = ro_shape_numel(&call->output);
    const ro_embedding_job j = {rows,
                                all / rows,
                                in_numel(call, 1),
                                static_cast<const float *>(in[0]),
                                static_cast<const int32_t *>(in[1]),
                                {static_cast<float *>(out), 0}};
    return ro_cuda_embedding_backward(d, &j);
}
RO_CUDA_KERNEL(embedding_grad, embedding_grad)
