/* ro_layer_norm, ro_softmax, ro_log_softmax, their gradients and ro_rms_norm: one launch reads
 * a row and keeps it in registers, where the operators of SPEC.md sections 7.1 and 7.2 would read
 * it several times. */
#include "repops/cuda/rows/columns.cuh"

enum {
    SLOTS = RO_REDUCE_BLOCK / 32, /* elements of a thread in one block of R */
    AT_ONCE = 8,                  /* values that a thread computes before it stores them */
    HELD_WARPS = 16,
};

/* A row, as its warps see it: block b of R belongs to warp b, and with HELD there are as many warps
 * as blocks; threadIdx is (lane, warp, row of the thread block). N neighbours are read and written
 * at once. Values v are functions of the number of a register and an element's place in the row,
 * and give N neighbours; F are functions of numbers. */
template <bool HELD, int N> struct row_of {
    int cols;
    float *part; /* shared: a number for each block of R */

    struct registers {
        ro_pack<N> at[SLOTS / N];
        RO_DEVICE ro_pack<N> operator()(int slot, int) const {
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
        const int first = b * RO_REDUCE_BLOCK + N * threadIdx.x;
#pragma unroll
        for (int u = 0; u < SLOTS / N; u++)
            if (first + 32 * N * u < cols)
                f(u, first + 32 * N * u);
    }

    static RO_DEVICE auto in(const float *p) {
        return [=](int, int i) { return ro_load<N>(p + i); };
    }

    template <class F, class... P> static RO_DEVICE ro_pack<N> apply(const F &f, const P &...p) {
        ro_pack<N> out;
#pragma unroll
        for (int k = 0; k < N; k++)
            out.at[k] = f(p.at[k]...);
        return out;
    }

    /* f of values. */
    template <class F, class... V> static RO_DEVICE auto of(F f, const V &...v) {
        return [=](int slot, int i) { return apply(f, v(slot, i)...); };
    }

    /* Values, computed now, or, where there are more blocks than warps, at each use. */
    template <class V> RO_DEVICE auto hold(const V &v) const {
        if constexpr (HELD) {
            registers r = {};
            elements(threadIdx.y, [&](int u, int i) { r.at[u] = v(u, i); });
            return r;
        } else {
            return v;
        }
    }

    template <class F, class... P>
    static RO_DEVICE void add_to(float *lane, int slot, const F &add, const P &...p) {
#pragma unroll
        for (int k = 0; k < N; k++) {
            float &sum = lane[N == 4 ? k : slot % 4];
            sum = add(sum, p.at[k]...);
        }
    }

    /* R by lane = add(lane, values...); of blocks, R of their results. Every thread gets it. */
    template <class F, class... V> RO_DEVICE float sum(F add, const V &...v) const {
        float result = 0;
        blocks([&](int b) {
            float lane[4] = {};
            elements(b, [&](int u, int i) { add_to(lane, u, add, v(u, i)...); });
            result = ro_fold<N>(lane);
            if (parts() > 1 && threadIdx.x == 0)
                part[b] = result;
        });
        if (parts() == 1)
            return result;
        __syncthreads();
        float lane[4] = {};
#pragma unroll 1
        for (int i = threadIdx.x; i < parts(); i += RO_LANES)
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (i + 32 * k < parts())
                    lane[k] = lane[k] + part[i + 32 * k];
        __syncthreads();
        return ro_fold<1>(lane);
    }

    template <class V> RO_DEVICE float largest(const V &v) const {
        int32_t key = RO_KEY_LEAST;
        blocks([&](int b) {
            elements(b, [&](int u, int i) {
                const ro_pack<N> p = v(u, i);
#pragma unroll
                for (int k = 0; k < N; k++)
                    key = ro_larger(key, ro_key(p.at[k]));
            });
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

    /* out = canon(values); out may be where they are read. */
    template <class V> RO_DEVICE void store(float *out, const V &v) const {
        const auto value = of([](float x) { return ro_canon(x); }, v);
        blocks([&](int b) {
            const int first = b * RO_REDUCE_BLOCK + N * threadIdx.x;
#pragma unroll
            for (int from = 0; from < SLOTS / N; from += AT_ONCE / N) {
                ro_pack<N> p[AT_ONCE / N];
#pragma unroll
                for (int k = 0; k < AT_ONCE / N; k++)
                    if (first + 32 * N * (from + k) < cols)
                        p[k] = value(from + k, first + 32 * N * (from + k));
#pragma unroll
                for (int k = 0; k < AT_ONCE / N; k++)
                    if (first + 32 * N * (from + k) < cols)
                        ro_store<N>(out + first + 32 * N * (from + k), p[k]);
            }
        });
    }

    RO_DEVICE bool once() const {
        return threadIdx.x == 0 && threadIdx.y == 0;
    }
};

template <bool HELD, int N, class F>
__global__ void __launch_bounds__(HELD_WARPS * 32) rows_kernel(F f, int64_t rows, int cols) {
    RO_SMEM(float, part);
    const int64_t r = (int64_t)blockIdx.x * blockDim.z + threadIdx.z;
    if (r < rows)
        f(row_of<HELD, N>{cols, part}, r);
}

/* Rows of one block of R have a warp each, and eight share a thread block. */
template <int N, class F>
static ro_status run_rows(ro_cuda *d, const char *what, int64_t rows, int64_t cols, const F &f) {
    const int64_t parts = ro_blocks_of(cols, RO_REDUCE_BLOCK);
    const bool held = parts <= HELD_WARPS;
    const int64_t together = parts == 1 ? (int64_t)ROW_WARPS : 1;
    const dim3 block(32, (unsigned)(held ? parts : (int64_t)HELD_WARPS), (unsigned)together);
    const size_t smem = (size_t)parts * sizeof(float);
    if (rows == 0)
        return RO_OK;
    if (held)
        RO_LAUNCH((rows_kernel<true, N, F>), ro_grid(ceil_div(rows, together)), block, smem,
                  d->stream, f, rows, (int)cols);
    else
        RO_LAUNCH((rows_kernel<false, N, F>), ro_grid(rows), block, smem, d->stream, f, rows,
                  (int)cols);
    return ro_cuda_launched(d, what);
}

template <class F>
static ro_status run_rows(ro_cuda *d, const char *what, const ro_row_job &j, const F &f) {
    return ro_packable(j.cols, j.x, j.gamma, j.beta, j.y) ? run_rows<4>(d, what, j.rows, j.cols, f)
                                                          : run_rows<1>(d, what, j.rows, j.cols, f);
}

template <class F>
static ro_status run_rows(ro_cuda *d, const char *what, const ro_row_grad_job &j, const F &f) {
    return ro_packable(j.cols, j.x, j.gamma, j.dy, j.dx) ? run_rows<4>(d, what, j.rows, j.cols, f)
                                                         : run_rows<1>(d, what, j.rows, j.cols, f);
}

/* ---- layer norm ---- */

struct norm_row {
    ro_row_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const float n = (float)j.cols;
        const auto x = row.hold(row.in(j.x + r * j.cols));
        const float mean = ro_canon(row.sum([](float lane, float v) { return lane + v; }, x) / n);
        const auto add_square = [=](float lane, float v) {
            const float d = v - mean;
            return ro_fma(d, d, lane);
        };
        const float rstd = ro_rstd(row.sum(add_square, x), n, j.eps);
        const auto norm = [=](float v, float gamma, float beta) {
            return ro_fma((v - mean) * rstd, gamma, beta);
        };
        row.store(j.y + r * j.cols, row.of(norm, x, row.in(j.gamma), row.in(j.beta)));
        if (row.once())
            j.statistic[0][r] = mean, j.statistic[1][r] = rstd;
    }
};

struct rms_row {
    ro_row_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const auto x = row.hold(row.in(j.x + r * j.cols));
        const auto add_square = [](float lane, float v) { return ro_fma(v, v, lane); };
        const float rstd = ro_rstd(row.sum(add_square, x), (float)j.cols, j.eps);
        const auto norm = [=](float v, float gamma) { return (v * rstd) * gamma; };
        row.store(j.y + r * j.cols, row.of(norm, x, row.in(j.gamma)));
        if (row.once())
            j.statistic[0][r] = rstd;
    }
};

struct norm_row_grad {
    ro_row_grad_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const float n = (float)j.cols, mean = j.statistic[0][r], rstd = j.statistic[1][r];
        const auto gamma = row.in(j.gamma);
        const auto dy = row.hold(row.in(j.dy + r * j.cols));
        const auto xh =
            row.hold(row.of([=](float x) { return (x - mean) * rstd; }, row.in(j.x + r * j.cols)));
        const float s =
            row.sum([](float lane, float d, float w) { return ro_fma(d, w, lane); }, dy, gamma);
        const float sx =
            row.sum([](float lane, float d, float w, float h) { return ro_fma(d * w, h, lane); },
                    dy, gamma, xh);
        const float g = s / n, gx = sx / n;
        const auto dx = [=](float d, float w, float h) { return rstd * ro_fma(-h, gx, d * w - g); };
        row.store(j.dx + r * j.cols, row.of(dx, dy, gamma, xh));
    }
};

struct rms_row_grad {
    ro_row_grad_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const float rstd = j.statistic[1][r];
        const auto gamma = row.in(j.gamma);
        const auto dy = row.hold(row.in(j.dy + r * j.cols));
        const auto xh =
            row.hold(row.of([=](float x) { return x * rstd; }, row.in(j.x + r * j.cols)));
        const float sx =
            row.sum([](float lane, float d, float w, float h) { return ro_fma(d * w, h, lane); },
                    dy, gamma, xh);
        const float gx = sx / (float)j.cols;
        const auto dx = [=](float d, float w, float h) { return rstd * ro_fma(-h, gx, d * w); };
        row.store(j.dx + r * j.cols, row.of(dx, dy, gamma, xh));
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
        float *y = j.y + r * j.cols;
        const auto x = row.hold(row.in(j.x + r * j.cols));
        const float m = row.largest(x);
        const auto e = row.hold(row.of([=](float v) { return ro_exp(v - m); }, x));
        const float l = row.sum([](float lane, float v) { return lane + v; }, e);
        if constexpr (logarithm) {
            const float log_l = ro_log(l);
            row.store(y, row.of([=](float v) { return (v - m) - log_l; }, x));
        } else {
            const float scale = 1.0f / l;
            row.store(y, row.of([=](float v) { return v * scale; }, e));
        }
        if (row.once())
            j.statistic[0][r] = m, j.statistic[1][r] = l;
    }
};

template <bool logarithm> struct softmax_row_grad {
    ro_row_grad_job j;

    template <class R> RO_DEVICE void operator()(const R &row, int64_t r) const {
        const auto y = row.hold(row.in(j.x + r * j.cols));
        const auto dy = row.hold(row.in(j.dy + r * j.cols));
        const auto add = [](float lane, float d, float v) {
            return logarithm ? lane + d : ro_fma(d, v, lane);
        };
        const float s = row.sum(add, dy, y);
        const auto dx = [=](float d, float v) {
            return logarithm ? ro_fma(-ro_exp(v), s, d) : v * (d - s);
        };
        row.store(j.dx + r * j.cols, row.of(dx, dy, y));
    }
};

/* ---- the functions ---- */

/* Without beta it is RMS norm. */
ro_status ro_cuda_layer_norm(ro_cuda *d, const ro_row_job *j) {
    return j->beta ? run_rows(d, "layer_norm", *j, norm_row{*j})
                   : run_rows(d, "rms_norm", *j, rms_row{*j});
}

/* Columns first: dx may be dy or x. Without a mean it is RMS norm's dx alone. */
ro_status ro_cuda_layer_norm_backward(ro_cuda *d, const ro_row_grad_job *j) {
    if (!j->statistic[0])
        return run_rows(d, "rms_norm_backward", *j, rms_row_grad{*j});
    const ro_status status = norm_columns(d, j);
    return status == RO_OK ? run_rows(d, "layer_norm_backward", *j, norm_row_grad{*j}) : status;
}

ro_status ro_cuda_softmax(ro_cuda *d, const ro_row_job *j) {
    return run_rows(d, "softmax", *j, softmax_row<false>{*j});
}

ro_status ro_cuda_softmax_backward(ro_cuda *d, const ro_row_grad_job *j) {
    return run_rows(d, "softmax_backward", *j, softmax_row_grad<false>{*j});
}

ro_status ro_cuda_log_softmax(ro_cuda *d, const ro_row_job *j) {
    return run_rows(d, "log_softmax", *j, softmax_row<true>{*j});
}

ro_status ro_cuda_log_softmax_backward(ro_cuda *d, const ro_row_grad_job *j) {
    return run_rows(d, "log_softmax_backward", *j, softmax_row_grad<true>{*j});
}
