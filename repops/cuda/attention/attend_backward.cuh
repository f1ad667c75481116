/* Fused attention, backward (SPEC.md section 8): two kernels, each of which computes scores and
 * probabilities again. attend_queries.cu has a tile of queries and walks over blocks of keys, the
 * chunks of dq's sums; attend_keys.cu has a tile of keys and walks over blocks of queries, the
 * chunks of dk's and dv's. This takes seven products instead of five, but no block has to wait for
 * another one's sums. */
#ifndef REPOPS_CUDA_ATTEND_BACKWARD_CUH
#define REPOPS_CUDA_ATTEND_BACKWARD_CUH

#include "repops/cuda/attention/attend.cuh"

struct backward_job {
    const float *q, *k, *v, *m, *l, *dout, *delta;
    float *dq, *dk, *dv;
    attend_order order;
    attend_dropout dropout;
    attend_bias bias;
    attend_rows q_rows, k_rows, v_rows, out_rows; /* strides, of gradients too */
    ro_divider tokens;
    int64_t queries, keys, size, group; /* group: query heads that share a key-value head */
    float scale;
    int causal, fours, window;
};

/* The statistics of a query. */
struct query_statistics {
    float m, r, delta; /* r = 1 / l */

    RO_DEVICE void read(const backward_job &j, int64_t query) {
        m = j.m[query], r = 1.0f / j.l[query], delta = j.delta[query];
    }
    RO_DEVICE bool none() const {
        return ro_to_bits(m) == RO_MINUS_INFINITY_BITS;
    }
    /* attn_prob, for which `counts` must be false if none(), and attn_dscore. They return +0 if not
     * `counts`, chosen last: branches would keep the exponentials from overlapping. */
    RO_DEVICE float probability(bool counts, float score) const {
        const float p = ro_exp(score - m) * r;
        return counts ? p : 0.0f;
    }
    RO_DEVICE float gradient(bool counts, float p, float dp) const {
        const float ds = p * (dp - delta);
        return counts ? ds : 0.0f;
    }
};

ro_status ro_cuda_attend_queries(ro_cuda *d, const backward_job &j);
ro_status ro_cuda_attend_keys(ro_cuda *d, const backward_job &j);

#endif
