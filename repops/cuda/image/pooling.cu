/* Pooling, SPEC.md section 12.2. A thread has one element; neighbours differ in the channel. */
#include "repops/cuda/image/pooling.cuh"

/* A sum over taps in the order of dot_64. */
struct tap_sum {
    float total = 0, sum = 0;
    int64_t group = 0;

    RO_DEVICE void at(int64_t tap) {
        if (tap / RO_POOL_GROUP != group) {
            total = total + sum;
            sum = 0;
            group = tap / RO_POOL_GROUP;
        }
    }
    RO_DEVICE float value() const {
        return total + sum;
    }
};

template <bool index>
static ro_status max_pool(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]);
    const ro_pooling v = ro_pooling_of(call);
    const pixels y(v.out, v.channels);
    return map<uint32_t, 1>(d, call, out, [=] __device__(int64_t e) {
        int32_t most = INT32_MIN, tap = -1;
        each_tap(v, y.of(e), [&](int64_t t, int64_t at) {
            const int32_t rank = ro_rank(x[at]);
            if (tap < 0 || rank > most) {
                most = rank;
                tap = (int32_t)t;
            }
        });
        return index ? (uint32_t)tap : ro_unrank(most);
    });
}
RO_CUDA_KERNEL(max_pool2d, max_pool<false>)
RO_CUDA_KERNEL(max_pool2d_index, max_pool<true>)

static ro_status avg_pool(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]);
    const ro_pooling v = ro_pooling_of(call);
    const pixels y(v.out, v.channels);
    return map<float, 1>(d, call, out, [=] __device__(int64_t e) {
        const place p = y.of(e);
        tap_sum s;
        each_tap(v, p, [&](int64_t t, int64_t at) {
            s.at(t);
            s.sum = s.sum + x[at];
        });
        return ro_canon(s.value() / (float)ro_pool_count(&v, p.h, p.w));
    });
}
RO_CUDA_KERNEL(avg_pool2d, avg_pool)

static ro_status max_pool_grad(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *dy = static_cast<const float *>(in[0]);
    const int32_t *index = static_cast<const int32_t *>(in[1]);
    const ro_pooling v = ro_pooling_of(call);
    const pixels x(v.in, v.channels);
    return map<float, 1>(d, call, out, [=] __device__(int64_t e) {
        tap_sum s;
        each_window(v, x.of(e), [&](int64_t t, int64_t at, const place &) {
            s.at(t);
            if (index[at] == t)
                s.sum = s.sum + dy[at];
        });
        return ro_canon(s.value());
    });
}
RO_CUDA_KERNEL(max_pool2d_grad, max_pool_grad)

static ro_status avg_pool_grad(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *dy = static_cast<const float *>(in[0]);
    const ro_pooling v = ro_pooling_of(call);
    const pixels x(v.in, v.channels);
    return map<float, 1>(d, call, out, [=] __device__(int64_t e) {
        tap_sum s;
        each_window(v, x.of(e), [&](int64_t t, int64_t at, const place &w) {
            s.at(t);
            s.sum = s.sum + dy[at] / (float)ro_pool_count(&v, w.h, w.w);
        });
        return ro_canon(s.value());
    });
}
RO_CUDA_KERNEL(avg_pool2d_grad, avg_pool_grad)
