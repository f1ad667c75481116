/* Kernels that read a row once and keep it in registers, for sums by R (SPEC.md section 3.2) and
 * what follows from them. */
#ifndef REPOPS_CUDA_HELD_ROWS_CUH
#define REPOPS_CUDA_HELD_ROWS_CUH

#include "repops/cuda/rows/rows.cuh"

enum {
    SLOTS = RO_REDUCE_BLOCK / 32, /* elements of a thread in one block of R */
    AT_ONCE = 8,                  /* values that a thread computes before it stores them */
    HELD_WARPS = 16,
};

/* A row as its warps see it. Block b of R belongs to warp b, and if HELD there are as many warps as
 * blocks; threadIdx is (lane, warp, row of the thread block). N neighbours are read and written at
 * once. A "value" v is a function v(register, index in the row) that returns N neighbours; an F is
 * a function of numbers. */
template <bool HELD, int N> struct row_of {
    int cols;
    float *part; /* in shared memory: a number for each block of R */

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

    /* Calls f for this thread's elements of block b. */
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

    /* Returns the value f(v...). */
    template <class F, class... V> static RO_DEVICE auto of(F f, const V &...v) {
        return [=](int slot, int i) { return apply(f, v(slot, i)...); };
    }

    /* Returns a value that is computed now or, if there are more blocks than warps, at each use. */
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

    /* Returns R by lane = add(lane, values...), over the results of blocks, in every thread. */
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

    /* Sets out = canon(v). out may be the array that v reads. */
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

/* Runs rows. Rows of one block of R have one warp each, and eight of them share a thread block. */
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

#endif
