/* The gradients of layer norm and RMS norm, SPEC.md sections 7.1 and 7.3. If shared memory has room
 * for rows, one launch reads dy and x once: a thread block has a group of 64 rows (SPEC.md section
 * 3.3), and writes their dx and their sums for gamma and beta. Otherwise two launches read dy and
 * x, one for these sums and one for dx. */
#include "repops/cuda/ptx.cuh"
#include "repops/cuda/rows/columns.cuh"
#include "repops/cuda/rows/held_rows.cuh"

/* ---- dx ---- */

/* RMS norm has no mean: its dx is that of layer norm with a mean of 0 and without the first sum. */
RO_DEVICE float mean_of(const ro_row_grad_job &j, int64_t r) {
    return j.statistic[0] ? j.statistic[0][r] : 0.0f;
}

/* dy and x are values of row r; writes its dx if `wanted`. Returns the value (x - mean) * rstd. */
template <class R, class D, class X>
RO_DEVICE auto norm_row_dx(const ro_row_grad_job &j, const R &row, int64_t r, bool wanted,
                           const D &dy, const X &x) {
    const float n = (float)j.cols, mean = mean_of(j, r), rstd = j.statistic[1][r];
    const auto gamma = row.in(j.gamma);
    const auto xh = row.hold(row.of([=](float v) { return (v - mean) * rstd; }, x));
    const float s =
        row.sum([](float lane, float d, float w) { return ro_fma(d, w, lane); }, dy, gamma);
    const float sx =
        row.sum([](float lane, float d, float w, float h) { return ro_fma(d * w, h, lane); }, dy,
                gamma, xh);
    const float g = j.statistic[0] ? s / n : 0.0f, gx = sx / n;
    const auto dx = [=](float d, float w, float h) { return rstd * ro_fma(-h, gx, d * w - g); };
    if (wanted)
        row.store(j.dx + r * j.cols, row.of(dx, dy, gamma, xh));
    return xh;
}

struct norm_row_grad {
    ro_row_grad_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const auto dy = row.hold(row.in(j.dy + r * j.cols));
        norm_row_dx(j, row, r, true, dy, row.in(j.x + r * j.cols));
    }
};

/* ---- gradients of gamma and beta: groups of rows, then groups of these ---- */

__global__ void __launch_bounds__(COLUMN_THREADS)
    norm_columns_kernel(ro_row_grad_job j, column_view view, float *dgamma, float *dbeta) {
    const int64_t item = (int64_t)blockIdx.x * COLUMN_THREADS + threadIdx.x;
    if (item >= view.count)
        return;
    const column_group g = view.of(item);
    float sum = 0, sum_x = 0;
    for (int from = 0; from < g.rows; from += COLUMN_EACH) {
        float dy[COLUMN_EACH] = {}, x[COLUMN_EACH] = {};
#pragma unroll
        for (int u = 0; u < COLUMN_EACH; u++)
            if (from + u < g.rows) {
                dy[u] = j.dy[g.e + (from + u) * j.cols];
                x[u] = j.x[g.e + (from + u) * j.cols];
            }
#pragma unroll
        for (int u = 0; u < COLUMN_EACH; u++)
            if (from + u < g.rows) {
                const int64_t row = g.row + from + u;
                const float xh = (x[u] - mean_of(j, row)) * j.statistic[1][row];
                sum = sum + dy[u];
                sum_x = ro_fma(dy[u], xh, sum_x);
            }
    }
    dgamma[item] = ro_canon(sum_x);
    if (dbeta)
        dbeta[item] = ro_canon(sum);
}

/* The sums for gamma and those for beta as one array. */
struct either_sum {
    float *gamma, *beta;
    int64_t count; /* length of each */

    RO_DEVICE float &operator[](int64_t i) const {
        return i < count ? gamma[i] : beta[i - count];
    }
};

/* Adds up groups of rows of both sums, [2, groups, cols], or of gamma's, until one row is left. */
static ro_status sum_groups(ro_cuda *d, const ro_row_grad_job *j, int64_t groups, float *from) {
    while (groups > 1) {
        const int64_t left = ro_blocks_of(groups, RO_COLUMN_GROUP);
        const int64_t count = left * j->cols;
        float *to = from + 2 * groups * j->cols;
        const either_sum sums =
            left == 1 ? either_sum{j->dgamma, j->dbeta, count} : either_sum{to, to + count, count};
        const column_view view({j->dbeta ? 2 : 1, groups, j->cols});
        RO_LAUNCH((reduce_columns_kernel<COLUMN_EACH, row_sum, either_sum>),
                  ro_grid(ceil_div(view.count, COLUMN_THREADS)), dim3(COLUMN_THREADS), 0, d->stream,
                  sums, view, row_sum{{}, from});
        from = to, groups = left;
    }
    return ro_cuda_launched(d, "layer_norm_backward");
}

/* ---- all gradients at once: one thread block for each group of rows ---- */

/* Threads are (lane, block of R, row), as in rows_kernel, with at most GROUP_WARPS warps. At 128
 * registers per thread, two thread blocks share a multiprocessor; if elements are read one by one,
 * 128 are too few. */
enum { GROUP_WARPS = 8 };
template <int N> constexpr int GROUP_BOUND = N == 4 ? 512 : 32 * GROUP_WARPS;

struct norm_groups {
    ro_row_grad_job j;
    float *dgamma, *dbeta; /* [groups, cols] */
    int width;             /* stride of a row in shared memory */
};

/* Returns the bytes of shared memory: sums for beta and gamma; twice, dy and x of the rows at a
 * time; and a number for each warp. */
static int64_t group_bytes(int64_t width, int64_t parts, int64_t rows) {
    return (2 * width + 4 * rows * width + parts * rows) * (int64_t)sizeof(float);
}

/* Starts to copy this thread's elements of its row of dy and x, or zeros if the row is not
 * `wanted`. */
template <int N>
RO_DEVICE void copy_row(const row_of<true, N> &row, const ro_row_grad_job &j, int64_t r,
                        bool wanted, float *dy, float *x) {
    const int64_t from = wanted ? r * j.cols : 0;
    row.elements(threadIdx.y, [&](int, int i) {
        ro_copy_async<4 * N>(dy + i, j.dy + from + i, wanted);
        ro_copy_async<4 * N>(x + i, j.x + from + i, wanted);
    });
}

RO_DEVICE int thread_of_block() {
    return threadIdx.x + 32 * (threadIdx.y + blockDim.y * threadIdx.z);
}

RO_DEVICE int threads_of_block() {
    return 32 * blockDim.y * blockDim.z;
}

/* Adds rows to the sums in order: dy to beta's, dy * x to gamma's. A thread has the same columns
 * each time. */
template <int N>
RO_DEVICE void add_rows(float *sum, const float *rows, int count, int width, int cols) {
#pragma unroll 1
    for (int c = N * thread_of_block(); c < cols; c += N * threads_of_block()) {
        ro_pack<N> beta = ro_load<N>(sum + c), gamma = ro_load<N>(sum + width + c);
#pragma unroll 4
        for (int i = 0; i < count; i++) {
            const ro_pack<N> dy = ro_load<N>(rows + 2 * i * width + c);
            const ro_pack<N> xh = ro_load<N>(rows + (2 * i + 1) * width + c);
#pragma unroll
            for (int k = 0; k < N; k++) {
                beta.at[k] = beta.at[k] + dy.at[k];
                gamma.at[k] = ro_fma(dy.at[k], xh.at[k], gamma.at[k]);
            }
        }
        ro_store<N>(sum + c, beta);
        ro_store<N>(sum + width + c, gamma);
    }
}

/* While rows are summed, the next ones are copied to the other half of `rows`. */
template <int N>
__global__ void __launch_bounds__(GROUP_BOUND<N>) norm_group_kernel(norm_groups g) {
    RO_SMEM(float, sum);
    const int cols = (int)g.j.cols, width = g.width, at_once = blockDim.z, own = threadIdx.z;
    const int64_t first = (int64_t)blockIdx.x * RO_COLUMN_GROUP, left = g.j.rows - first;
    const int count = left < RO_COLUMN_GROUP ? (int)left : (int)RO_COLUMN_GROUP;
    float *rows = sum + 2 * width, *part = rows + 4 * at_once * width;
    const row_of<true, N> row = {cols, part + own * blockDim.y};
    const int half = 2 * at_once * width;
#pragma unroll 1
    for (int i = thread_of_block(); i < 2 * width; i += threads_of_block())
        sum[i] = 0.0f;
    copy_row<N>(row, g.j, first + own, own < count, rows + 2 * own * width,
                rows + (2 * own + 1) * width);
    ro_copy_commit();
    int now = 0;
#pragma unroll 1
    for (int from = 0; from < count; from += at_once, now = half - now) {
        const int r = from + own, next = r + at_once;
        float *dy = rows + now + 2 * own * width, *x = dy + width;
        float *dy_next = rows + (half - now) + 2 * own * width;
        __syncthreads(); /* all threads have summed the rows in the other half */
        if (from + at_once < count)
            copy_row<N>(row, g.j, first + next, next < count, dy_next, dy_next + width);
        ro_copy_commit();
        ro_copy_wait<1>();
        const auto xh = norm_row_dx(g.j, row, first + (r < count ? r : 0), r < count,
                                    row.hold(row.in(dy)), row.in(x));
        row.elements(threadIdx.y, [&](int u, int i) { ro_store<N>(x + i, xh(u, i)); });
        __syncthreads();
        add_rows<N>(sum, rows + now, count - from < at_once ? count - from : at_once, width, cols);
    }
    __syncthreads();
#pragma unroll 1
    for (int c = thread_of_block(); c < cols; c += threads_of_block()) {
        if (g.dbeta)
            g.dbeta[blockIdx.x * g.j.cols + c] = ro_canon(sum[c]);
        g.dgamma[blockIdx.x * g.j.cols + c] = ro_canon(sum[width + c]);
    }
}

/* Returns how many rows of a group a thread block holds at once; 0 if there is no room, there are
 * no rows, or groups are too few for the device. */
static int64_t rows_at_once(const ro_cuda *d, const ro_row_grad_job *j, int64_t groups,
                            int64_t width) {
    const int64_t parts = ro_blocks_of(j->cols, RO_REDUCE_BLOCK);
    int64_t rows = GROUP_WARPS / parts;
    if (j->rows == 0 || 2 * groups < d->multiprocessors)
        return 0;
    while (rows > 0 && group_bytes(width, parts, rows) > d->shared_memory)
        rows--;
    return rows;
}

template <int N>
static ro_status run_groups(ro_cuda *d, const norm_groups &g, int64_t groups, int64_t rows) {
    const int64_t parts = ro_blocks_of(g.j.cols, RO_REDUCE_BLOCK);
    const ro_status status = ro_cuda_allow(d, norm_group_kernel<N>, "layer_norm_backward");
    if (status != RO_OK)
        return status;
    RO_LAUNCH(norm_group_kernel<N>, ro_grid(groups), dim3(32, (unsigned)parts, (unsigned)rows),
              (size_t)group_bytes(g.width, parts, rows), d->stream, g);
    return ro_cuda_launched(d, "layer_norm_backward");
}

/* Computes sums of groups of rows and dx, by one launch or, if rows_at_once returns 0, by two.
 * Columns come first, as dx may be dy or x. */
static ro_status group_gradients(ro_cuda *d, const ro_row_grad_job *j, int64_t groups, float *gamma,
                                 float *beta) {
    const int64_t width = ceil_div(j->cols, 4) * 4, rows = rows_at_once(d, j, groups, width);
    const norm_groups g = {*j, gamma, beta, (int)width};
    if (rows > 0)
        return ro_packable(j->cols, j->x, j->gamma, j->dy, j->dx)
                   ? run_groups<4>(d, g, groups, rows)
                   : run_groups<1>(d, g, groups, rows);
    const column_view view({1, j->rows, j->cols});
    RO_LAUNCH(norm_columns_kernel, ro_grid(ceil_div(view.count, COLUMN_THREADS)),
              dim3(COLUMN_THREADS), 0, d->stream, *j, view, gamma, beta);
    const ro_status status = ro_cuda_launched(d, "layer_norm_backward");
    return status == RO_OK ? run_rows(d, "layer_norm_backward", *j, norm_row_grad{*j}) : status;
}

static ro_status norm_gradients(ro_cuda *d, const ro_row_grad_job *j) {
    const int64_t groups = ro_blocks_of(j->rows, RO_COLUMN_GROUP);
    void *room = nullptr;
    int64_t all = 0;
    for (int64_t n = groups; n > 1; n = ro_blocks_of(n, RO_COLUMN_GROUP))
        all += 2 * n * j->cols;
    ro_status status = all ? ro_cuda_alloc(d, (size_t)all * sizeof(float), &room) : RO_OK;
    if (status != RO_OK)
        return status;
    float *gamma = groups > 1 ? static_cast<float *>(room) : j->dgamma;
    float *beta = groups > 1 && j->dbeta ? gamma + groups * j->cols : j->dbeta;
    status = group_gradients(d, j, groups, gamma, beta);
    if (status == RO_OK)
        status = sum_groups(d, j, groups, gamma);
    if (room)
        ro_cuda_free(d, room);
    return status;
}

/* Without dgamma, computes dx alone, which only RMS norm may ask for. */
ro_status ro_cuda_layer_norm_backward(ro_cuda *d, const ro_row_grad_job *j) {
    return j->dgamma ? norm_gradients(d, j)
                     : run_rows(d, "rms_norm_backward", *j, norm_row_grad{*j});
}
