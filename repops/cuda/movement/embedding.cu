/* The gradient of gather, and of embeddings for which embedding_table.cu is too slow, SPEC.md
 * sections 3.3 and 5. Positions are sorted by id, each id's positions stay ascending, and their
 * rows are summed in the order of K. The result does not depend on the order in which blocks run:
 * atomics add integers only. */
#include "repops/cuda/movement/embedding.cuh"
#include "repops/op_movement.h"

/* ---- sorting positions by id: a stable radix sort, 8 bits at a time ---- */

enum { SORT_TILE = 256, DIGITS = 256, DIGIT_BITS = 8, WARPS = SORT_TILE / 32 };

/* Ids outside the table get the key `rows`, which is at most 2^31, and so come last. */
__global__ void __launch_bounds__(SORT_TILE)
    key_kernel(const int32_t *ids, int64_t count, int64_t rows, keyed *out) {
    const int64_t i = (int64_t)blockIdx.x * SORT_TILE + threadIdx.x;
    if (i < count)
        out[i] =
            keyed{ids[i] >= 0 && ids[i] < rows ? (uint32_t)ids[i] : (uint32_t)rows, (uint32_t)i};
}

RO_DEVICE uint32_t digit_of(uint32_t key, int shift) {
    return key >> shift & (DIGITS - 1);
}

/* Counts into counts[digit][tile]. */
__global__ void __launch_bounds__(SORT_TILE)
    count_kernel(const keyed *in, int64_t count, int shift, uint32_t *counts) {
    RO_SMEM(uint32_t, in_tile);
    const int64_t i = (int64_t)blockIdx.x * SORT_TILE + threadIdx.x;
    in_tile[threadIdx.x] = 0;
    __syncthreads();
    if (i < count)
        atomicAdd(&in_tile[digit_of(in[i].key, shift)], 1u);
    __syncthreads();
    counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] = in_tile[threadIdx.x];
}

/* Replaces each number by the sum of all before it: one block, a stretch for each thread. */
enum { SCAN_THREADS = 1024 };
__global__ void __launch_bounds__(SCAN_THREADS) scan_kernel(uint32_t *x, int64_t count) {
    RO_SMEM(uint32_t, sum);
    const int64_t stretch = (count + SCAN_THREADS - 1) / SCAN_THREADS;
    const int64_t first = stretch * threadIdx.x;
    const int64_t last = first + stretch < count ? first + stretch : count;
    uint32_t own = 0;
    for (int64_t i = first; i < last; i++)
        own += x[i];
    sum[threadIdx.x] = own;
    __syncthreads();
    for (unsigned distance = 1; distance < SCAN_THREADS; distance *= 2) {
        const uint32_t before = threadIdx.x >= distance ? sum[threadIdx.x - distance] : 0;
        __syncthreads();
        sum[threadIdx.x] += before;
        __syncthreads();
    }
    uint32_t at = sum[threadIdx.x] - own;
    for (int64_t i = first; i < last; i++) {
        const uint32_t here = x[i];
        x[i] = at;
        at += here;
    }
}

/* Returns the lanes of the warp that have this digit. */
RO_DEVICE uint32_t same_digit(uint32_t digit) {
    uint32_t same = RO_ALL_LANES;
    for (int bit = 0; bit < DIGIT_BITS + 1; bit++) {
        const uint32_t ones = __ballot_sync(RO_ALL_LANES, (int)(digit >> bit & 1));
        same &= digit >> bit & 1 ? ones : ~ones;
    }
    return same;
}

/* Shared memory has, for each warp and digit, its count, and later the counts of earlier warps. */
__global__ void __launch_bounds__(SORT_TILE)
    place_kernel(const keyed *in, int64_t count, int shift, const uint32_t *start, keyed *out) {
    RO_SMEM(uint32_t, in_warp);
    const int64_t i = (int64_t)blockIdx.x * SORT_TILE + threadIdx.x;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const keyed own = i < count ? in[i] : keyed{0, 0};
    const uint32_t digit = i < count ? digit_of(own.key, shift) : uint32_t(DIGITS); /* none */
    for (unsigned k = threadIdx.x; k < WARPS * DIGITS; k += SORT_TILE)
        in_warp[k] = 0;
    const uint32_t same = same_digit(digit), before = __popc(same & ((1u << lane) - 1));
    __syncthreads();
    if (before == 0 && digit < DIGITS)
        in_warp[warp * DIGITS + digit] = (uint32_t)__popc(same);
    __syncthreads();
    uint32_t sum = 0;
    for (unsigned w = 0; w < WARPS; w++) {
        const uint32_t here = in_warp[w * DIGITS + threadIdx.x];
        in_warp[w * DIGITS + threadIdx.x] = sum;
        sum += here;
    }
    __syncthreads();
    if (digit < DIGITS)
        out[start[(int64_t)digit * gridDim.x + blockIdx.x] + in_warp[warp * DIGITS + digit] +
            before] = own;
}

struct sorting {
    keyed *in, *out;
    uint32_t *counts;
    int64_t tiles;
};

static ro_status sort(ro_cuda *d, const int32_t *ids, int64_t count, int64_t rows, sorting *s) {
    const dim3 tiles = ro_grid(s->tiles), threads(SORT_TILE);
    RO_LAUNCH(key_kernel, tiles, threads, 0, d->stream, ids, count, rows, s->in);
    for (int shift = 0; shift < 32 && rows >> shift > 0; shift += DIGIT_BITS) {
        const keyed *in = s->in;
        keyed *out = s->out;
        uint32_t *counts = s->counts;
        const int64_t all = DIGITS * s->tiles;
        RO_LAUNCH(count_kernel, tiles, threads, DIGITS * sizeof(uint32_t), d->stream, in, count,
                  shift, counts);
        RO_LAUNCH(scan_kernel, dim3(1), dim3(SCAN_THREADS), SCAN_THREADS * sizeof(uint32_t),
                  d->stream, counts, all);
        RO_LAUNCH(place_kernel, tiles, threads, WARPS * DIGITS * sizeof(uint32_t), d->stream, in,
                  count, shift, counts, out);
        s->out = s->in;
        s->in = out;
    }
    return ro_cuda_launched(d, "sorting positions");
}

ro_status ro_cuda_sort_ids(ro_cuda *d, const int32_t *ids, int64_t count, int64_t rows,
                           ro_sorted_ids *out) {
    const int64_t tiles = ceil_div(count, SORT_TILE);
    const size_t list = (size_t)count * sizeof(keyed);
    out->rows = rows < ID_END ? rows : ID_END;
    ro_status status =
        ro_cuda_alloc(d, 2 * list + (size_t)(DIGITS * tiles) * sizeof(uint32_t), &out->memory);
    if (status != RO_OK)
        return status;
    keyed *first = static_cast<keyed *>(out->memory);
    sorting s = {first, first + count, reinterpret_cast<uint32_t *>(first + 2 * count), tiles};
    status = sort(d, ids, count, out->rows, &s);
    out->list = s.in;
    if (status != RO_OK)
        ro_cuda_free(d, out->memory);
    return status;
}

/* ---- sums ---- */

/* A block has SUM_WARPS positions, one per warp, and SUM_COLUMNS columns. A warp whose position is
 * the first one of its id sums up to a group of 64 positions. At most one of a block's ids has
 * more; for that one, all warps sum groups in turn, and the first warp adds the groups' sums in the
 * order of K. */
enum { SUM_COLUMNS = 32, SUM_WARPS = 8 };

struct sum_plan {
    const keyed *sorted;
    const float *dy;
    float *out;
    int64_t positions, rows, cols; /* of dy [outer, positions, cols], out [outer, rows, cols] */
    int64_t ids;                   /* ids below this have positions */
};

/* Returns the sum of a group, which may be shorter than 64. */
RO_DEVICE float group_sum(const keyed *group, int64_t count, const float *dy, int64_t cols) {
    float sum = 0;
    for (int64_t k = 0; k < count; k++)
        sum = sum + dy[(int64_t)group[k].position * cols];
    return sum;
}

/* Returns where the positions of the id at `head` end. Most are few, so the distance doubles
 * first. */
RO_DEVICE int64_t end_of(const keyed *sorted, int64_t head, int64_t count) {
    const uint32_t id = sorted[head].key;
    int64_t low = head, distance = RO_COLUMN_GROUP;
    while (low + distance < count && sorted[low + distance].key == id) {
        low += distance;
        distance *= 2;
    }
    int64_t high = low + distance < count ? low + distance : count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (sorted[middle].key == id)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Sums one id's rows of dy in one column, by all warps. `column`: the thread's column exists. */
RO_DEVICE void sum_rows(const keyed *from, int64_t count, const float *dy, int64_t cols,
                        bool column, float *out, float *sums) {
    const unsigned lane = threadIdx.x % SUM_COLUMNS, warp = threadIdx.x / SUM_COLUMNS;
    const int64_t group = RO_COLUMN_GROUP;
    float level[ID_LEVELS] = {};
    int64_t groups = 0;
    for (int64_t first = 0; first < count; first += SUM_WARPS * group) {
        const int64_t at = first + warp * group, left = count - at < group ? count - at : group;
        if (left > 0 && column)
            sums[threadIdx.x] = group_sum(from + at, left, dy, cols);
        __syncthreads();
        for (int w = 0; warp == 0 && w < SUM_WARPS && first + w * group < count; w++)
            if (column)
                ro_push_group(level, ++groups, sums[w * SUM_COLUMNS + lane]);
        __syncthreads();
    }
    if (warp == 0 && column)
        *out = ro_canon(ro_sum_levels(level));
}

/* An id whose first position is in a block: that position, and the count of all; 0 if there is
 * none. */
struct id_run {
    uint32_t id;
    int64_t head, count;
};

#define NO_ID UINT32_MAX

RO_DEVICE uint32_t key_at(const sum_plan &p, int64_t at) {
    return at >= 0 && at < p.positions ? p.sorted[at].key : NO_ID;
}

/* Returns the run that begins at the warp's position, unless it is longer than a group. Lane k has
 * the key of the block's position k - 1. */
RO_DEVICE id_run short_run(const sum_plan &p, int64_t first, uint32_t key) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint32_t before = __shfl_sync(RO_ALL_LANES, key, warp);
    const uint32_t id = __shfl_sync(RO_ALL_LANES, key, warp + 1);
    const int64_t head = first + warp;
    if (id >= p.ids || id == before)
        return {id, head, 0};
    const bool low = key_at(p, head + lane) == id, high = key_at(p, head + 32 + lane) == id;
    const int count =
        __popc(__ballot_sync(RO_ALL_LANES, low)) + __popc(__ballot_sync(RO_ALL_LANES, high));
    return {id, head, key_at(p, head + RO_COLUMN_GROUP) == id ? 0 : count};
}

/* Returns the run that is longer than a group: it must include the block's last position. */
RO_DEVICE id_run long_run(const sum_plan &p, int64_t first, uint32_t key) {
    const int lane = threadIdx.x % 32;
    const uint32_t id = __shfl_sync(RO_ALL_LANES, key, SUM_WARPS);
    const uint32_t same = __ballot_sync(RO_ALL_LANES, lane <= SUM_WARPS && key == id);
    const int64_t head = first + __ffs((int)same) - 2;
    if (id >= p.ids || head < first || key_at(p, head + RO_COLUMN_GROUP) != id)
        return {id, head, 0};
    return {id, head, end_of(p.sorted, head, p.positions) - head};
}

/* For each SUM_WARPS positions there are tiles of SUM_COLUMNS columns, `across` in a row. At least
 * four blocks run on a multiprocessor: for more, the compiler would spill registers. */
__global__ void __launch_bounds__(SUM_COLUMNS *SUM_WARPS, 4)
    sum_kernel(sum_plan p, ro_divider tiles, ro_divider across) {
    RO_SMEM(float, sums); /* [SUM_WARPS][SUM_COLUMNS] */
    const int lane = threadIdx.x % SUM_COLUMNS;
    const int64_t block = tiles.quotient(blockIdx.x), tile = blockIdx.x - block * tiles.divisor;
    const int64_t o = across.quotient(tile);
    const int64_t column = (tile - o * across.divisor) * SUM_COLUMNS + lane;
    const float *dy = p.dy + o * p.positions * p.cols + column;
    float *out = p.out + o * p.rows * p.cols + column;
    const int64_t first = block * SUM_WARPS;
    const uint32_t key = lane <= SUM_WARPS ? key_at(p, first + lane - 1) : NO_ID;
    const id_run few = short_run(p, first, key);
    if (few.count > 0 && column < p.cols)
        out[few.id * p.cols] = ro_canon(group_sum(p.sorted + few.head, few.count, dy, p.cols));
    const id_run many = long_run(p, first, key);
    if (many.count > 0)
        sum_rows(p.sorted + many.head, many.count, dy, p.cols, column < p.cols,
                 out + many.id * p.cols, sums);
}

/* ---- the operator ---- */

/* Sizes: dy is [outer, positions, inner], out is [outer, n, inner]. */
struct scattering {
    const float *dy;
    const int32_t *ids;
    int64_t positions;
    float *out;
    ro_axis axis;
};

static ro_status add_sorted(ro_cuda *d, const scattering &s, const ro_sorted_ids &ids,
                            const char *what) {
    const ro_axis &a = s.axis;
    const sum_plan p = {ids.list, s.dy, s.out, s.positions, a.n, a.inner, ids.rows};
    const int64_t across = ceil_div(a.inner, SUM_COLUMNS), tiles = a.outer * across;
    const int64_t blocks = ceil_div(s.positions, SUM_WARPS);
    if (blocks > INT32_MAX / tiles)
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: %s of more than 2^31 blocks", what);
    RO_LAUNCH(sum_kernel, ro_grid(blocks * tiles), dim3(SUM_COLUMNS * SUM_WARPS),
              SUM_COLUMNS * SUM_WARPS * sizeof(float), d->stream, p, ro_divider(tiles),
              ro_divider(across));
    return ro_cuda_launched(d, what);
}

static ro_status scatter(ro_cuda *d, const scattering &s, const char *what) {
    const size_t size = (size_t)(s.axis.outer * s.axis.n * s.axis.inner) * sizeof(float);
    ro_sorted_ids ids;
    ro_status status = ro_cuda_check(d, cudaMemsetAsync(s.out, 0, size, d->stream), what);
    if (status != RO_OK || s.positions == 0)
        return status;
    status = ro_cuda_sort_ids(d, s.ids, s.positions, s.axis.n, &ids);
    if (status != RO_OK)
        return status;
    status = add_sorted(d, s, ids, what);
    ro_cuda_free(d, ids.memory);
    return status;
}

ro_status ro_cuda_add_by_id(ro_cuda *d, const ro_embedding_job &j, float *out) {
    return scatter(d, {j.dy, j.ids, j.positions, out, {1, j.rows, j.cols}}, "embedding_grad");
}

static ro_status gather_grad(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return scatter(d,
                   {static_cast<const float *>(in[0]), static_cast<const int32_t *>(in[1]),
                    in_numel(call, 1), static_cast<float *>(out),
                    ro_axis_of(&call->output, call->attr[RO_GATHER_GRAD_AXIS])},
                   "gather_grad");
}
RO_CUDA_KERNEL(gather_grad, gather_grad)
