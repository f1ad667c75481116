/* ro_layer_norm, ro_softmax, ro_log_softmax and their gradients (repops/fused.h): one launch reads
 * a row and keeps it in registers, where the operators of SPEC.md sections 7.1 and 7.2 would read
 * it several times. */
#include "repops/cuda/columns.cuh"

enum {
    SLOTS = RO_REDUCE_BLOCK / 32, /* elements of a thread in one block of R */
    AT_ONCE = 8,                  /* values that a thread computes before it stores them */
    HELD_WARPS = 16,
};

/* A row, as its warps see it: block b of R belongs to warp b, and with HELD there are as many warps
 * as blocks; threadIdx is (lane, warp, row of the thread block). Functions take the number of a
 * register and an element's place in the row. */
template <bool HELD> struct row_of {
    int cols;
    float *part; /* shared: a number for each block of R */

    struct registers {
        float at[SLOTS];
        RO_DEVICE float operator()(int slot, int) const {
            return at[slot];
        }
    };

    RO_DEVICE int parts() const {
        return (cols + RO_REDUCE_BLOCK - 1) / RO_REDUCE_BLOCK;
    }

    template <class F> RO_DEVICE void blocks(F f) const {
        if constexpr (HELD)
            f((int)threadIdx.y);
        else
            for (int b = threadIdx.y; b < parts(); b += blockDim.y)
                f(b);
    }

    /* This thread's elements of block b. */
    template <class F> RO_DEVICE void elements(int b, F f) const {
        const int first = b * RO_REDUCE_BLOCK + threadIdx.x;
#pragma unroll
        for (int u = 0; u < SLOTS; u++)
            if (first + 32 * u < cols)
                f(u, first + 32 * u);
    }

    /* f's values, computed now, or, where there are more blocks than warps, at each use. */
    template <class F> RO_DEVICE auto hold(F f) const {
        if constexpr (HELD) {
            registers r = {};
            elements(threadIdx.y, [&](int u, int i) { r.at[u] = f(u, i); });
            return r;
        } else {
            return f;
        }
    }

    /* R by lane = add(lane, slot, i); of blocks, R of their results. Every thread gets it. */
    template <class F> RO_DEVICE float sum(F add) const {
        float result = 0;
        blocks([&](int b) {
            float lane[4] = {};
            elements(b, [&](int u, int i) { lane[u % 4] = add(lane[u % 4], u, i); });
            result = ro_fold<1>(lane);
            if (parts() > 1 && threadIdx.x == 0)
                part[b] = result;
        });
        if (parts() == 1)
            return result;
        __syncthreads();
        float lane[4] = {};
        for (int i = threadIdx.x; i < parts(); i += RO_LANES)
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (i + 32 * k < parts())
                    lane[k] = lane[k] + part[i + 32 * k];
        __syncthreads();
        return ro_fold<1>(lane);
    }

    template <class F> RO_DEVICE float largest(const F &of) const {
        int32_t key = RO_KEY_LEAST;
        blocks([&](int b) {
            elements(b, [&](int u, int i) { key = ro_larger(key, ro_key(of(u, i))); });
        });
        key = ro_largest<32>(key);
        if (parts() == 1)
            return ro_of_key(key);
        int32_t *keys = reinterpret_cast<int32_t *>(part);
        if (threadIdx.x == 0)
            keys[threadIdx.y] = key;
        __syncthreads();
        for (int w = 0; w < (int)blockDim.y; w++)
            key = ro_larger(key, keys[w]);
        __syncthreads();
        return ro_of_key(key);
    }

    /* out[i] = canon(f); out may be what f reads there. */
    template <class F> RO_DEVICE void store(float *out, F f) const {
        blocks([&](int b) {
            const int first = b * RO_REDUCE_BLOCK + threadIdx.x;
#pragma unroll
            for (int from = 0; from < SLOTS; from += AT_ONCE) {
                float value[AT_ONCE];
#pragma unroll
                for (int k = 0; k < AT_ONCE; k++)
                    if (first + 32 * (from + k) < cols)
                        value[k] = ro_canon(f(from + k, first + 32 * (from + k)));
#pragma unroll
                for (int k = 0; k < AT_ONCE; k++)
                    if (first + 32 * (from + k) < cols)
                        out[first + 32 * (from + k)] = value[k];
            }
        });
    }

    RO_DEVICE bool once() const {
        return threadIdx.x == 0 && threadIdx.y == 0;
    }
};

template <bool HELD, class F>
__global__ void __launch_bounds__(HELD_WARPS * 32) rows_kernel(F f, int64_t rows, int cols) {
    RO_SMEM(float, part);
    const int64_t r = (int64_t)blockIdx.x * blockDim.z + threadIdx.z;
    if (r < rows)
        f(row_of<HELD>{cols, part}, r);
}

/* Rows of one block of R have a warp each, and eight share a thread block. */
template <class F>
static ro_status run_rows(ro_cuda *d, const char *what, int64_t rows, int64_t cols, const F &f) {
    const int64_t parts = ro_blocks_of(cols, RO_REDUCE_BLOCK);
    const bool held = parts <= HELD_WARPS;
    const int64_t together = parts == 1 ? (int64_t)ROW_WARPS : 1;
    const dim3 block(32, (unsigned)(held ? parts : (int64_t)HELD_WARPS), (unsigned)together);
    const size_t smem = (size_t)parts * sizeof(float);
    if (rows == 0)
        return RO_OK;
    if (held)
        RO_LAUNCH((rows_kernel<true, F>), ro_grid(ceil_div(rows, together)), block, smem, d->stream,
                  f, rows, (int)cols);
    else
        RO_LAUNCH((rows_kernel<false, F>), ro_grid(rows), block, smem, d->stream, f, rows,
                  (int)cols);
    return ro_cuda_launched(d, what);
}

/* ---- layer norm ---- */

struct norm_row {
    ro_row_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const float *from = j.x + r * j.cols, *gamma = j.gamma, *beta = j.beta;
        const float n = (float)j.cols;
        const auto x = row.hold([&](int, int i) { return from[i]; });
        const float mean =
            ro_canon(row.sum([&](float lane, int u, int i) { return lane + x(u, i); }) / n);
        const float ss = row.sum([&](float lane, int u, int i) {
            const float d = x(u, i) - mean;
            return ro_fma(d, d, lane);
        });
        const float rstd = ro_canon(1.0f / ro_sqrt(ss / n + j.eps));
        row.store(j.y + r * j.cols,
                  [&](int u, int i) { return ro_fma((x(u, i) - mean) * rstd, gamma[i], beta[i]); });
        if (row.once())
            j.statistic[0][r] = mean, j.statistic[1][r] = rstd;
    }
};

struct norm_row_grad {
    ro_row_grad_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const float *from = j.x + r * j.cols, *from_dy = j.dy + r * j.cols, *gamma = j.gamma;
        const float n = (float)j.cols, mean = j.statistic[0][r], rstd = j.statistic[1][r];
        const auto dy = row.hold([&](int, int i) { return from_dy[i]; });
        const auto xh = row.hold([&](int, int i) { return (from[i] - mean) * rstd; });
        const float s =
            row.sum([&](float lane, int u, int i) { return ro_fma(dy(u, i), gamma[i], lane); });
        const float sx = row.sum(
            [&](float lane, int u, int i) { return ro_fma(dy(u, i) * gamma[i], xh(u, i), lane); });
        const float g = s / n, gx = sx / n;
        row.store(j.dx + r * j.cols, [&](int u, int i) {
            return rstd * ro_fma(-xh(u, i), gx, dy(u, i) * gamma[i] - g);
        });
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
                const float xh = (x[u] - j.statistic[0][row]) * j.statistic[1][row];
                sum = sum + dy[u];
                sum_x = ro_fma(dy[u], xh, sum_x);
            }
    }
    dgamma[item] = ro_canon(sum_x);
    dbeta[item] = ro_canon(sum);
}

/* The sums for gamma and those for beta, as one array. */
struct either_sum {
    float *gamma, *beta;
    int64_t count; /* of each */

    RO_DEVICE float &operator[](int64_t i) const {
        return i < count ? gamma[i] : beta[i - count];
    }
};

/* Sums of groups of rows of both, [2, groups, cols], until one row is left. */
static ro_status sum_groups(ro_cuda *d, const ro_row_grad_job *j, int64_t groups, float *from) {
    while (groups > 1) {
        const int64_t left = ro_blocks_of(groups, RO_COLUMN_GROUP);
        const int64_t count = left * j->cols;
        float *to = from + 2 * groups * j->cols;
        const either_sum sums =
            left == 1 ? either_sum{j->dgamma, j->dbeta, count} : either_sum{to, to + count, count};
        const column_view view({2, groups, j->cols});
        RO_LAUNCH((reduce_columns_kernel<COLUMN_EACH, row_sum, either_sum>),
                  ro_grid(ceil_div(view.count, COLUMN_THREADS)), dim3(COLUMN_THREADS), 0, d->stream,
                  sums, view, row_sum{{}, from});
        from = to, groups = left;
    }
    return ro_cuda_launched(d, "layer_norm_backward");
}

static ro_status norm_columns(ro_cuda *d, const ro_row_grad_job *j) {
    const column_view view({1, j->rows, j->cols});
    const int64_t groups = view.groups.divisor;
    void *room = nullptr;
    int64_t all = 0;
    for (int64_t n = groups; n > 1; n = ro_blocks_of(n, RO_COLUMN_GROUP))
        all += 2 * n * j->cols;
    ro_status status = all ? ro_cuda_alloc(d, (size_t)all * sizeof(float), &room) : RO_OK;
    if (status != RO_OK)
        return status;
    float *gamma = groups > 1 ? static_cast<float *>(room) : j->dgamma;
    RO_LAUNCH(norm_columns_kernel, ro_grid(ceil_div(view.count, COLUMN_THREADS)),
              dim3(COLUMN_THREADS), 0, d->stream, *j, view, gamma,
              groups > 1 ? gamma + groups * j->cols : j->dbeta);
    status = sum_groups(d, j, groups, gamma);
    if (room)
        ro_cuda_free(d, room);
    return status;
}

/* ---- softmax and its logarithm ---- */

template <bool logarithm> struct softmax_row {
    ro_row_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const float *from = j.x + r * j.cols;
        float *y = j.y + r * j.cols;
        const auto x = row.hold([&](int, int i) { return from[i]; });
        const float m = row.largest(x);
        const auto e = row.hold([&](int u, int i) { return ro_exp(x(u, i) - m); });
        const float l = row.sum([&](float lane, int u, int i) { return lane + e(u, i); });
        if constexpr (logarithm) {
            const float log_l = ro_log(l);
            row.store(y, [&](int u, int i) { return (x(u, i) - m) - log_l; });
        } else {
            const float scale = 1.0f / l;
            row.store(y, [&](int u, int i) { return e(u, i) * scale; });
        }
        if (row.once())
            j.statistic[0][r] = m, j.statistic[1][r] = l;
    }
};

template <bool logarithm> struct softmax_row_grad {
    ro_row_grad_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const float *from_y = j.x + r * j.cols, *from_dy = j.dy + r * j.cols;
        float *dx = j.dx + r * j.cols;
        const auto y = row.hold([&](int, int i) { return from_y[i]; });
        const auto dy = row.hold([&](int, int i) { return from_dy[i]; });
        const float s = row.sum([&](float lane, int u, int i) {
            return logarithm ? lane + dy(u, i) : ro_fma(dy(u, i), y(u, i), lane);
        });
        row.store(dx, [&](int u, int i) {
            return logarithm ? ro_fma(-ro_exp(y(u, i)), s, dy(u, i)) : y(u, i) * (dy(u, i) - s);
        });
    }
};

/* ---- the functions ---- */

ro_status ro_cuda_layer_norm(ro_cuda *d, const ro_row_job *j) {
    return run_rows(d, "layer_norm", j->rows, j->cols, norm_row{*j});
}

/* Columns first: dx may be dy or x. */
ro_status ro_cuda_layer_norm_backward(ro_cuda *d, const ro_row_grad_job *j) {
    const ro_status status = norm_columns(d, j);
    return status == RO_OK ? run_rows(d, "layer_norm_backward", j->rows, j->cols, norm_row_grad{*j})
                           : status;
}

ro_status ro_cuda_softmax(ro_cuda *d, const ro_row_job *j) {
    return run_rows(d, "softmax", j->rows, j->cols, softmax_row<false>{*j});
}

ro_status ro_cuda_softmax_backward(ro_cuda *d, const ro_row_grad_job *j) {
    return run_rows(d, "softmax_backward", j->rows, j->cols, softmax_row_grad<false>{*j});
}

ro_status ro_cuda_log_softmax(ro_cuda *d, const ro_row_job *j) {
    return run_rows(d, "log_softmax", j->rows, j->cols, softmax_row<true>{*j});
}

ro_status ro_cuda_log_softmax_backward(ro_cuda *d, const ro_row_grad_job *j) {
    return run_rows(d, "log_softmax_backward", j->rows, j->cols, softmax_row_grad<true>{*j});
}
