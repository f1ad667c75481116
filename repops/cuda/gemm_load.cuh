/* Operands of gemm.cuh: how a block copies them to shared memory. An operand has an outer index (m
 * of a, n of b) and k; a stage is K lines of W floats, a line for each k, PITCH = W + 4 apart.
 *
 * Memory runs along one of the two. Along the outer index it is copied as it lies, 16 bytes at a
 * time where everything is aligned. Along k, eight lanes read eight steps of a row (one sector) and
 * scatter them over eight lines: bank 4 k + row, each once in a warp. */
#ifndef REPOPS_CUDA_GEMM_LOAD_CUH
#define REPOPS_CUDA_GEMM_LOAD_CUH

#include "repops/cuda/ptx.cuh"

/* The copies of one thread: from (outer, k) on, OUTERS x STEPS of V floats. */
template <int T, int W, int K, bool along_k, int V> struct gemm_share {
    static constexpr int LANES = along_k ? 8 : W / V < 32 ? W / V : 32;
    static constexpr int OUTER_STEP = along_k ? T / LANES : LANES * V;
    static constexpr int K_STEP = along_k ? LANES : T / LANES;
    static constexpr int OUTERS = W / OUTER_STEP, STEPS = K / K_STEP, PITCH = W + 4;
    static_assert(OUTERS * OUTER_STEP == W && STEPS * K_STEP == K && (V == 1 || !along_k), "");

    static RO_DEVICE int outer(int thread) {
        return along_k ? thread / LANES : thread % LANES * V;
    }
    static RO_DEVICE int k(int thread) {
        return along_k ? thread % LANES : thread / LANES;
    }
};

/* A matrix: lines of neighbours, `line` elements apart. */
template <bool along_k> struct strided {
    const float *data;
    int64_t line, next, count; /* next: to the next product; count: of the outer index */
    bool vectors;

    template <int T, int W, int K> class loader {
        const strided &x;
        const float *from; /* this thread's first element of stage 0 */
        int left;

        template <int V> RO_DEVICE void start(int thread, int64_t first) {
            typedef gemm_share<T, W, K, along_k, V> share;
            const int outer = share::outer(thread), k = share::k(thread);
            left = (int)(x.count - first < W ? x.count - first : W);
            from += along_k ? (first + outer) * x.line + k : first + outer + k * x.line;
        }

        template <int V, bool whole>
        RO_DEVICE void copies(float *stage, const float *now, int steps) const {
            typedef gemm_share<T, W, K, along_k, V> share;
            const int outer = share::outer((int)threadIdx.x), k = share::k((int)threadIdx.x);
            const int to = k * share::PITCH + outer;
#pragma unroll
            for (int j = 0; j < share::STEPS; j++)
#pragma unroll
                for (int i = 0; i < share::OUTERS; i++) {
                    const int u = i * share::OUTER_STEP, p = j * share::K_STEP;
                    ro_copy_async<4 * V>(stage + to + p * share::PITCH + u,
                                         now + (along_k ? u * x.line + p : u + p * x.line),
                                         whole || (outer + u < left && k + p < steps));
                }
        }

      public:
        static constexpr int TABLE = 0;

        RO_DEVICE loader(const strided &operand, int64_t batch, int64_t first, int thread, float *)
            : x(operand), from(operand.data + batch * operand.next) {
            if (!along_k && x.vectors)
                start<along_k ? 1 : 4>(thread, first);
            else
                start<1>(thread, first);
        }

        /* The first stage from `stage` on that has terms. */
        RO_DEVICE int skip(int stage, int) const {
            return stage;
        }

        RO_DEVICE void copy(float *to_stage, int stage, int64_t all) const {
            const int64_t done = (int64_t)stage * K;
            const int steps = (int)(all - done < K ? all - done : K);
            const float *now = from + (along_k ? done : done * x.line);
            const bool whole = left == W && steps == K;
            if (!along_k && x.vectors) {
                if (whole)
                    copies<along_k ? 1 : 4, true>(to_stage, now, steps);
                else
                    copies<along_k ? 1 : 4, false>(to_stage, now, steps);
            } else if (whole) {
                copies<1, true>(to_stage, now, steps);
            } else {
                copies<1, false>(to_stage, now, steps);
            }
        }
    };
};

#endif
