/* Copies the operands of gemm.cuh to shared memory. An operand has an outer index (m of a, n of b)
 * and k. A stage is K lines of W floats, one line per k step, PITCH = W + 4 apart.
 *
 * Memory is contiguous along one of the two indices. Along the outer index, it is copied unchanged,
 * 16 bytes at a time where everything is aligned. Along k, eight lanes read eight steps of a row
 * (one sector) and scatter them over eight lines: bank 4 k + row, without conflicts in a warp. */
#ifndef REPOPS_CUDA_GEMM_LOAD_CUH
#define REPOPS_CUDA_GEMM_LOAD_CUH

#include "repops/cuda/ptx.cuh"
#include "repops/src/half.h"

#include <type_traits>

/* The copies of one thread: OUTERS x STEPS pieces of V floats, from (outer, k) on. The pieces of a
 * line are shared evenly by LANES lanes, at most a warp. */
template <int T, int W, int K, bool along_k, int V> struct gemm_share {
    static constexpr int PIECES = W / V & -(W / V);
    static constexpr int LANES = along_k ? 8 : PIECES < 32 ? PIECES : 32;
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

/* How much of a stage exists. */
enum gemm_stage {
    GEMM_SOME,  /* a part, perhaps */
    GEMM_ALL,   /* all of it */
    GEMM_QUICK, /* all of it, in the largest pieces, or of one tap */
};

/* Copies V elements of 16 bits to floats in shared memory, through registers, where they are
 * widened. */
template <int V>
RO_DEVICE void copy_widened(float *to, const uint16_t *from, bool wanted, bool binary16) {
    uint32_t pair[2] = {0, 0};
    if constexpr (V == 4) {
        const uint64_t both = wanted ? *reinterpret_cast<const uint64_t *>(from) : 0;
        pair[0] = (uint32_t)both, pair[1] = (uint32_t)(both >> 32);
    } else if (wanted) {
        pair[0] = *from;
    }
    float x[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
        const uint16_t word = (uint16_t)(pair[i / 2] >> (i % 2 * 16));
        x[i] = binary16 ? ro_from_f16(word) : ro_from_bf16(word);
    }
    if constexpr (V == 4)
        *reinterpret_cast<float4 *>(to) = make_float4(x[0], x[1], x[2], x[3]);
    else
        to[0] = x[0];
}

/* A matrix of contiguous lines, `line` elements apart. E is float, or uint16_t for elements that
 * are widened as they are copied. */
template <bool along_k, class E = float> struct strided {
    const E *data;
    int64_t line, next, count; /* next: stride of products; count: size of the outer index */
    bool vectors;
    bool binary16; /* if E is uint16_t: elements are f16; false: bf16 */

    /* Returns element (outer, k) of a product, for kernels that read single elements. */
    RO_DEVICE float at(int64_t batch, int64_t outer, int64_t k) const {
        const E x = data[batch * next + (along_k ? outer * line + k : outer + k * line)];
        if constexpr (std::is_same_v<E, float>)
            return x;
        else
            return binary16 ? ro_from_f16(x) : ro_from_bf16(x);
    }

    /* Copies stages in ascending order. */
    template <int T, int W, int K> class loader {
        const strided &x;
        const E *from; /* this thread's first element of the next stage */
        int left;

        template <int V> RO_DEVICE void start(int thread, int64_t first) {
            typedef gemm_share<T, W, K, along_k, V> share;
            const int outer = share::outer(thread), k = share::k(thread);
            from += along_k ? (first + outer) * x.line + k : first + outer + k * x.line;
        }

        /* Copies one line of memory after the other, and moves `from` to the next stage. */
        template <int V, bool whole> RO_DEVICE void copies(float *stage, int steps) {
            typedef gemm_share<T, W, K, along_k, V> share;
            constexpr int LINES = along_k ? share::OUTERS : share::STEPS;
            constexpr int EACH = along_k ? share::STEPS : share::OUTERS;
            const int outer = share::outer((int)threadIdx.x), k = share::k((int)threadIdx.x);
            const int64_t apart = x.line * (along_k ? share::OUTER_STEP : share::K_STEP);
            const E *at = from;
            stage += k * share::PITCH + outer;
#pragma unroll
            for (int i = 0; i < LINES; i++, at += apart) {
                at = ro_as_it_is(at);
#pragma unroll
                for (int j = 0; j < EACH; j++) {
                    const int u = (along_k ? i : j) * share::OUTER_STEP;
                    const int p = (along_k ? j : i) * share::K_STEP;
                    const bool wanted = whole || (outer + u < left && k + p < steps);
                    if constexpr (std::is_same_v<E, float>)
                        ro_copy_async<4 * V>(stage + p * share::PITCH + u, at + (along_k ? p : u),
                                             wanted);
                    else
                        copy_widened<V>(stage + p * share::PITCH + u, at + (along_k ? p : u),
                                        wanted, x.binary16);
                }
            }
            from = along_k ? from + K : at;
        }

      public:
        static constexpr int TABLE = 0;

        RO_DEVICE loader(const strided &operand, int64_t batch, int64_t first, int thread, float *)
            : x(operand), from(operand.data + batch * operand.next),
              left((int)(operand.count - first < W ? operand.count - first : W)) {
            if (!along_k && x.vectors)
                start<along_k ? 1 : 4>(thread, first);
            else
                start<1>(thread, first);
        }

        /* Returns the first stage from `stage` on that has terms. */
        RO_DEVICE int skip(int stage, int) const {
            return stage;
        }

        /* Starts with this stage; called before the first copy. */
        RO_DEVICE void go_to(int stage) {
            from += (int64_t)stage * K * (along_k ? 1 : x.line);
        }

        /* Returns whether all outer indices of the tile exist. */
        RO_DEVICE bool whole() const {
            return left == W;
        }

        /* Returns whether they do, and are copied in the largest pieces. */
        RO_DEVICE bool quick() const {
            return whole() && (along_k || x.vectors);
        }

        template <gemm_stage kind> RO_DEVICE void copy(float *to_stage, int stage, int64_t all) {
            const int64_t left_k = all - (int64_t)stage * K;
            const int steps = kind != GEMM_SOME || left_k > K ? K : (int)left_k;
            if (!along_k && (kind == GEMM_QUICK || x.vectors))
                copies<along_k ? 1 : 4, kind != GEMM_SOME>(to_stage, steps);
            else
                copies<1, kind != GEMM_SOME>(to_stage, steps);
        }
    };
};

/* ---- gathered: SPEC.md section 12.1 ---- */

/* One half of a term's position in an image: row, column, and offset in elements. The outer index
 * gives one half and k the other; their sum is the position. */
struct alignas(16) place {
    int h, w;
    int64_t at;
};

enum { PLACE_ABSENT = -(1 << 30), PLACE_MOST = 1 << 29 };

RO_DEVICE place absent_place() {
    return {PLACE_ABSENT, PLACE_ABSENT, 0};
}

/* Copies operands gathered from an image. Terms outside the image become +0. The positions of the
 * outer index are computed once per block, in a table in shared memory.
 *
 * `Operand` has data, height, width, vectors, start(batch), outer(batch, i), step_of(batch, k) and
 * skip(), and says whether memory is contiguous ALONG_K. If so, it has even(steps), which returns
 * whether so many steps are always of one tap. */
template <class Operand, int T, int W, int K> class gathered {
    const Operand &x;
    const float *from;
    int batch;
    const place *table;

    /* Returns the table's entry of row i. Threads that copy four rows at once read every fourth
     * entry, so these are contiguous to avoid bank conflicts. */
    RO_DEVICE int slot(int i) const {
        return !Operand::ALONG_K && x.vectors ? i % 4 * (W / 4) + i / 4 : i;
    }

    /* Copies a stage of one tap, whose steps are contiguous: finds the tap's position once, and
     * checks each row of the tile once. */
    RO_DEVICE void copy_even(float *stage, int64_t done) const {
        typedef gemm_share<T, W, K, true, 1> share;
        const int outer = share::outer((int)threadIdx.x), k = share::k((int)threadIdx.x);
        const place s = x.step_of(batch, done);
        const float *at = from + s.at + k;
        stage += k * share::PITCH + outer;
        place o[share::OUTERS];
#pragma unroll
        for (int i = 0; i < share::OUTERS; i++)
            o[i] = table[outer + i * share::OUTER_STEP];
#pragma unroll
        for (int i = 0; i < share::OUTERS; i++) {
            const bool inside = (unsigned)(o[i].h + s.h) < (unsigned)x.height &&
                                (unsigned)(o[i].w + s.w) < (unsigned)x.width;
            const float *p = at + o[i].at;
#pragma unroll
            for (int j = 0; j < share::STEPS; j++)
                ro_copy_async<4>(stage + j * share::K_STEP * share::PITCH + i * share::OUTER_STEP,
                                 p + j * share::K_STEP, inside);
        }
    }

    template <int V> RO_DEVICE void copies(float *stage, int64_t done, int64_t all) const {
        typedef gemm_share<T, W, K, Operand::ALONG_K, V> share;
        const int outer = share::outer((int)threadIdx.x), k = share::k((int)threadIdx.x);
        place steps[share::STEPS];
#pragma unroll
        for (int j = 0; j < share::STEPS; j++) {
            const int64_t at = done + k + j * share::K_STEP;
            steps[j] = at < all ? x.step_of(batch, at) : absent_place();
        }
        stage += k * share::PITCH + outer;
#pragma unroll
        for (int i = 0; i < share::OUTERS; i++) {
            const int u = i * share::OUTER_STEP;
            const place o = table[slot(outer + u)];
#pragma unroll
            for (int j = 0; j < share::STEPS; j++) {
                const place &s = steps[j];
                const bool inside = (unsigned)(o.h + s.h) < (unsigned)x.height &&
                                    (unsigned)(o.w + s.w) < (unsigned)x.width;
                ro_copy_async<4 * V>(stage + j * share::K_STEP * share::PITCH + u,
                                     from + (o.at + s.at), inside);
            }
        }
    }

  public:
    static constexpr int TABLE = W * (int)(sizeof(place) / sizeof(float));

    RO_DEVICE gathered(const Operand &operand, int64_t product, int64_t first, int thread,
                       float *room)
        : x(operand), from(operand.start((int)product)), batch((int)product),
          table(reinterpret_cast<place *>(room)) {
        for (int i = thread; i < W; i += T)
            reinterpret_cast<place *>(room)[slot(i)] = x.outer(batch, first + i);
    }

    RO_DEVICE int skip(int stage, int end) const {
        return x.template skip<K>(batch, stage, end);
    }

    RO_DEVICE void go_to(int) const {}
    RO_DEVICE bool whole() const {
        return true;
    }
    RO_DEVICE bool quick() const {
        return !Operand::ALONG_K || x.even(K);
    }

    template <gemm_stage kind> RO_DEVICE void copy(float *stage, int number, int64_t all) const {
        if constexpr (Operand::ALONG_K && kind == GEMM_QUICK) {
            copy_even(stage, (int64_t)number * K);
            return;
        }
        if (!Operand::ALONG_K && x.vectors)
            copies<Operand::ALONG_K ? 1 : 4>(stage, (int64_t)number * K, all);
        else
            copies<1>(stage, (int64_t)number * K, all);
    }
};

#endif
