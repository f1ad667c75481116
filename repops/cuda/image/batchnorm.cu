/* Batch norm, SPEC.md section 12.3. Columns are channels; rows go in groups of 64. */
#include "repops/cuda/rows/columns.cuh"
#include "repops/op_image.h"

static const float *f32(const void *x) {
    return static_cast<const float *>(x);
}

/* ---- groups of rows ---- */

struct group_mean {
    const float *x;
    typedef float data;
    struct state {
        float sum;
        int rows;
    };
    static RO_DEVICE state start(int64_t, const column_group &g) {
        return {0.0f, g.rows};
    }
    RO_DEVICE data read(int64_t, int64_t e) const {
        return x[e];
    }
    static RO_DEVICE state add(state s, data x) {
        return {s.sum + x, s.rows};
    }
    static RO_DEVICE float close(state s) {
        return ro_canon(s.sum / (float)s.rows);
    }
};

/* Squared deviations from the group's own mean. */
struct group_sqdev {
    const float *x, *mean;
    typedef float data;
    struct state {
        float sum, mean;
    };
    RO_DEVICE state start(int64_t item, const column_group &) const {
        return {0.0f, mean[item]};
    }
    RO_DEVICE data read(int64_t, int64_t e) const {
        return x[e];
    }
    static RO_DEVICE state add(state s, data x) {
        const float deviation = x - s.mean;
        return {ro_fma(deviation, deviation, s.sum), s.mean};
    }
    static RO_DEVICE float close(state s) {
        return ro_canon(s.sum);
    }
};

struct group_dgamma {
    const float *dy, *x, *mean, *rstd;
    int64_t cols;
    struct data {
        float dy, x;
    };
    struct state {
        float sum, mean, rstd;
    };
    RO_DEVICE state start(int64_t, const column_group &g) const {
        const int64_t c = g.e - g.row * cols;
        return {0.0f, mean[c], rstd[c]};
    }
    RO_DEVICE data read(int64_t, int64_t e) const {
        return {dy[e], x[e]};
    }
    static RO_DEVICE state add(state s, data v) {
        return {ro_fma(v.dy, (v.x - s.mean) * s.rstd, s.sum), s.mean, s.rstd};
    }
    static RO_DEVICE float close(state s) {
        return ro_canon(s.sum);
    }
};

static ro_status bn_mean(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return reduce_view(d, call, out, group_mean{f32(in[0])});
}
RO_CUDA_KERNEL(bn_mean, bn_mean)

static ro_status bn_sqdev(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return reduce_view(d, call, out, group_sqdev{f32(in[0]), f32(in[1])});
}
RO_CUDA_KERNEL(bn_sqdev, bn_sqdev)

static ro_status bn_dgamma(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return reduce_view(d, call, out,
                       group_dgamma{f32(in[0]), f32(in[1]), f32(in[2]), f32(in[3]),
                                    call->attr[RO_BN_DGAMMA_COLS]});
}
RO_CUDA_KERNEL(bn_dgamma, bn_dgamma)

/* ---- merging ---- */

/* Fewer than elsewhere, as divisions need registers. */
enum { MERGE_EACH = 8 };

/* Each entry stands for `per` rows of all `rows`, the last one for the rest. */
template <bool sqdev> struct merged {
    const float *mean, *m2;
    int64_t rows, per;
    struct data {
        float mean, m2;
    };
    struct state {
        int64_t left, n; /* rows of the group and of those after it; rows merged so far */
        float mean, m2;
    };
    RO_DEVICE state start(int64_t, const column_group &g) const {
        return {rows - g.row * per, 0, 0.0f, 0.0f};
    }
    RO_DEVICE data read(int64_t, int64_t e) const {
        return {mean[e], sqdev ? m2[e] : 0.0f};
    }
    RO_DEVICE state add(state s, data v) const {
        const int64_t n = s.n + per < s.left ? s.n + per : s.left;
        if (s.n == 0)
            return {s.left, n, v.mean, v.m2};
        const float a = (float)s.n, b = (float)(n - s.n), all = (float)n;
        const float delta = v.mean - s.mean;
        return {s.left, n, ro_fma(delta, b / all, s.mean),
                sqdev ? s.m2 + ro_fma(delta * delta, a * b / all, v.m2) : 0.0f};
    }
    static RO_DEVICE float close(state s) {
        return ro_canon(sqdev ? s.m2 : s.mean);
    }
};

template <bool sqdev>
static ro_status bn_merge(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return reduce_view<MERGE_EACH>(d, call, out,
                                   merged<sqdev>{f32(in[0]), sqdev ? f32(in[1]) : nullptr,
                                                 call->attr[RO_MERGE_ROWS],
                                                 call->attr[RO_MERGE_PER]});
}
RO_CUDA_KERNEL(bn_merge_mean, bn_merge<false>)
RO_CUDA_KERNEL(bn_merge_sqdev, bn_merge<true>)

/* ---- by channel ----
 *
 * A thread has one channel in CHANNEL_EACH rows, so that the channel's numbers are read, and
 * divided, once for all of them. Neighbouring threads have neighbouring elements; the rows of a
 * thread are CHANNEL_STEP elements apart, rounded to whole rows. */
enum { CHANNEL_THREADS = 256, CHANNEL_EACH = 8, CHANNEL_STEP = 1024 };

/* F: channel, the numbers of a channel, which of(c) returns; data, which read(e) returns for
 * element e; at(channel, data), an element of the output. Reads overlap. */
template <class F>
__global__ void __launch_bounds__(CHANNEL_THREADS)
    channel_kernel(float *out, int64_t count, ro_divider step, ro_divider channels, F f) {
    const int64_t thread = (int64_t)blockIdx.x * CHANNEL_THREADS + threadIdx.x;
    const int64_t stretch = step.quotient(thread), place = thread - stretch * step.divisor;
    const int64_t first = stretch * (CHANNEL_EACH * step.divisor) + place;
    if (first >= count)
        return;
    const typename F::channel channel = f.of(channels.remainder(place));
    typename F::data v[CHANNEL_EACH] = {};
#pragma unroll
    for (int u = 0; u < CHANNEL_EACH; u++)
        if (first + u * step.divisor < count)
            v[u] = f.read(first + u * step.divisor);
#pragma unroll
    for (int u = 0; u < CHANNEL_EACH; u++)
        if (first + u * step.divisor < count)
            out[first + u * step.divisor] = F::at(channel, v[u]);
}

template <class F>
static ro_status by_channel(ro_cuda *d, const ro_call *call, void *out, const F &f) {
    const int64_t count = ro_shape_numel(&call->output);
    const ro_divider channels(call->input[0].dim[call->input[0].ndim - 1]);
    const int64_t rows = CHANNEL_STEP / channels.divisor;
    const ro_divider step(channels.divisor * (rows > 1 ? rows : 1));
    const int64_t threads = ceil_div(count, CHANNEL_EACH * step.divisor) * step.divisor;
    float *to = static_cast<float *>(out);
    RO_LAUNCH(channel_kernel<F>, ro_grid(ceil_div(threads, CHANNEL_THREADS)), dim3(CHANNEL_THREADS),
              0, d->stream, to, count, step, channels, f);
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}

struct normalized {
    const float *x, *mean, *rstd, *gamma, *beta;
    typedef float data;
    struct channel {
        float mean, rstd, gamma, beta;
    };
    RO_DEVICE channel of(int64_t c) const {
        return {mean[c], rstd[c], gamma[c], beta[c]};
    }
    RO_DEVICE data read(int64_t e) const {
        return x[e];
    }
    static RO_DEVICE float at(const channel &c, data x) {
        return ro_canon(ro_fma((x - c.mean) * c.rstd, c.gamma, c.beta));
    }
};

struct normalized_dx {
    const float *dy, *x, *mean, *rstd, *gamma, *dbeta, *dgamma;
    float n; /* number of rows */
    struct data {
        float dy, x;
    };
    struct channel {
        float mean, rstd, scale, dgamma, dbeta; /* dgamma, dbeta: means over the rows */
    };
    RO_DEVICE channel of(int64_t c) const {
        return {mean[c], rstd[c], gamma[c] * rstd[c], dgamma[c] / n, dbeta[c] / n};
    }
    RO_DEVICE data read(int64_t e) const {
        return {dy[e], x[e]};
    }
    static RO_DEVICE float at(const channel &c, data v) {
        const float xh = (v.x - c.mean) * c.rstd;
        return ro_canon(c.scale * ro_fma(-xh, c.dgamma, v.dy - c.dbeta));
    }
};

static ro_status batchnorm(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return by_channel(d, call, out,
                      normalized{f32(in[0]), f32(in[1]), f32(in[2]), f32(in[3]), f32(in[4])});
}
RO_CUDA_KERNEL(batchnorm, batchnorm)

static ro_status bn_dx(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float n = (float)(in_numel(call, 0) / call->input[0].dim[call->input[0].ndim - 1]);
    return by_channel(d, call, out,
                      normalized_dx{f32(in[0]), f32(in[1]), f32(in[2]), f32(in[3]), f32(in[4]),
                                    f32(in[5]), f32(in[6]), n});
}
RO_CUDA_KERNEL(bn_dx, bn_dx)

static ro_status bn_running(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *r = f32(in[0]), *v = f32(in[1]);
    const float momentum = attr_f(call, RO_BN_RUNNING_MOMENTUM),
                divisor = attr_f(call, RO_BN_RUNNING_DIVISOR);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_canon(ro_fma(momentum, v[i] / divisor - r[i], r[i]));
    });
}
RO_CUDA_KERNEL(bn_running, bn_running)
