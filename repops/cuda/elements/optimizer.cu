/* Optimizers, SPEC.md section 9. */
#include "repops/cuda/elements/adamw.cuh"
#include "repops/cuda/rows/store.cuh"
#include "repops/op_optimizer.h"
#include "repops/src/schedule.h"

static const float *f32(const void *x) {
    return static_cast<const float *>(x);
}

struct schedule {
    int64_t attr[5];
};

static ro_status lr_schedule(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int32_t *step = static_cast<const int32_t *>(in[0]);
    schedule a;
    memcpy(a.attr, call->attr, sizeof a.attr);
    return map<float>(d, call, out, [=] __device__(int64_t) {
        return ro_canon(ro_learning_rate(a.attr, *step));
    });
}
RO_CUDA_KERNEL(lr_schedule, lr_schedule)

static ro_status bias_correction(ro_cuda *d, const ro_call *call, const void *const *in,
                                 void *out) {
    const float *c = f32(in[0]), beta = attr_f(call, RO_BIAS_CORRECTION_BETA);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_canon(ro_fma(beta, c[i], 1.0f - beta));
    });
}
RO_CUDA_KERNEL(bias_correction, bias_correction)

static ro_status clip_scale(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *sum = f32(in[0]), limit = attr_f(call, RO_CLIP_SCALE_MAX_NORM);
    return map<float>(d, call, out,
                      [=] __device__(int64_t i) { return ro_clip_scale(sum[i], limit); });
}
RO_CUDA_KERNEL(clip_scale, clip_scale)

/* ---- AdamW ---- */

static ro_status adamw_m(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *m = f32(in[0]), *g = f32(in[1]), *clip = f32(in[2]),
                beta = attr_f(call, RO_ADAMW_M_BETA);
    return map<float>(d, call, out,
                      [=] __device__(int64_t i) { return ro_next_m(m[i], g[i], *clip, beta); });
}
RO_CUDA_KERNEL(adamw_m, adamw_m)

static ro_status adamw_v(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *v = f32(in[0]), *g = f32(in[1]), *clip = f32(in[2]),
                beta = attr_f(call, RO_ADAMW_V_BETA);
    return map<float>(d, call, out,
                      [=] __device__(int64_t i) { return ro_next_v(v[i], g[i], *clip, beta); });
}
RO_CUDA_KERNEL(adamw_v, adamw_v)

static ro_status adamw_w(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *w = f32(in[0]), *m = f32(in[1]), *v = f32(in[2]);
    const float *c1 = f32(in[3]), *c2 = f32(in[4]), *lr = f32(in[5]);
    const float eps = attr_f(call, RO_ADAMW_W_EPS), decay = attr_f(call, RO_ADAMW_W_DECAY);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_adamw_w(w[i], m[i], v[i], {1.0f / *c1, 1.0f / *c2, *lr, eps, decay});
    });
}
RO_CUDA_KERNEL(adamw_w, adamw_w)

/* ---- AdamW of many parameters ----
 *
 * One launch. The parameters' addresses are kernel arguments: nothing is copied to the device
 * before, and a captured graph keeps them. A block steps a part of one parameter. */
enum {
    STEP_THREADS = 256,
    STEP_STRETCH = 16 * STEP_THREADS, /* elements of a block */
    ADAMW_MOST = 256                  /* parameters; arguments are at most 32,764 bytes */
};

struct adamw_list {
    int64_t first[ADAMW_MOST]; /* number of each parameter's first block */
    ro_adamw_job job[ADAMW_MOST];
    int count;
};
static_assert(sizeof(adamw_list) <= 32764, "");

template <int N>
RO_DEVICE void step_elements(const ro_adamw_job &p, const ro_adamw_scalars &u, float clip,
                             int64_t from, int64_t end) {
    for (int64_t i = from + N * threadIdx.x; i < end; i += N * STEP_THREADS) {
        const ro_pack<N> g = ro_load<N>(p.gradient + i);
        ro_pack<N> w = ro_load<N>(p.w + i), m = ro_load<N>(p.m + i), v = ro_load<N>(p.v + i);
#pragma unroll
        for (int k = 0; k < N; k++) {
            m.at[k] = ro_next_m(m.at[k], g.at[k], clip, p.beta1);
            v.at[k] = ro_next_v(v.at[k], g.at[k], clip, p.beta2);
            w.at[k] = ro_adamw_w(w.at[k], m.at[k], v.at[k], u);
        }
        ro_store_whole<N>(p.m_out + i, m);
        ro_store_whole<N>(p.v_out + i, v);
        ro_store_whole<N>(p.w_out + i, w);
    }
}

RO_DEVICE bool in_fours(const ro_adamw_job &p) {
    const uintptr_t all =
        reinterpret_cast<uintptr_t>(p.w) | reinterpret_cast<uintptr_t>(p.m) |
        reinterpret_cast<uintptr_t>(p.v) | reinterpret_cast<uintptr_t>(p.gradient) |
        reinterpret_cast<uintptr_t>(p.w_out) | reinterpret_cast<uintptr_t>(p.m_out) |
        reinterpret_cast<uintptr_t>(p.v_out);
    return all % 16 == 0;
}

__global__ void __launch_bounds__(STEP_THREADS)
    adamw_kernel(const __grid_constant__ adamw_list list) {
    int low = 0, high = list.count;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (list.first[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    const ro_adamw_job &p = list.job[low];
    const ro_adamw_scalars u = {1.0f / *p.c1, 1.0f / *p.c2, *p.rate, p.eps, p.decay};
    const float clip = *p.clip;
    const int64_t from = (blockIdx.x - list.first[low]) * STEP_STRETCH;
    const int64_t left = p.count - from, most = STEP_STRETCH, end = left < most ? left : most;
    const int64_t whole = in_fours(p) ? end / 4 * 4 : 0;
    step_elements<4>(p, u, clip, from, from + whole);
    step_elements<1>(p, u, clip, from + whole, from + end);
}

/* Lists as many of the next non-empty parameters as fit. Returns the number of blocks. */
static int64_t fill_list(adamw_list *list, int64_t count, const ro_adamw_job *job, int64_t *next) {
    int64_t blocks = 0;
    for (list->count = 0; *next < count && list->count < ADAMW_MOST; ++*next) {
        if (job[*next].count == 0)
            continue;
        list->first[list->count] = blocks;
        list->job[list->count++] = job[*next];
        blocks += ceil_div(job[*next].count, STEP_STRETCH);
    }
    return blocks;
}

ro_status ro_cuda_adamw(ro_cuda *d, int64_t count, const ro_adamw_job *job) {
    for (int64_t next = 0; next < count;) {
        adamw_list list = {};
        const int64_t blocks = fill_list(&list, count, job, &next);
        if (blocks > 0)
            RO_LAUNCH(adamw_kernel, ro_grid(blocks), dim3(STEP_THREADS), 0, d->stream, list);
    }
    return ro_cuda_launched(d, "adamw");
}

/* ---- SGD ---- */

static ro_status sgd_m(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *m = f32(in[0]), *g = f32(in[1]), *w = f32(in[2]), *clip = f32(in[3]);
    const float momentum = attr_f(call, RO_SGD_M_MOMENTUM), decay = attr_f(call, RO_SGD_M_DECAY);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_canon(ro_fma(momentum, m[i], ro_fma(decay, w[i], g[i] * *clip)));
    });
}
RO_CUDA_KERNEL(sgd_m, sgd_m)

static ro_status sgd_w(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *w = f32(in[0]), *m = f32(in[1]), *lr = f32(in[2]);
    return map<float>(d, call, out,
                      [=] __device__(int64_t i) { return ro_canon(ro_fma(-*lr, m[i], w[i])); });
}
RO_CUDA_KERNEL(sgd_w, sgd_w)

static ro_status sgd_nesterov(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *w = f32(in[0]), *m = f32(in[1]), *g = f32(in[2]), *clip = f32(in[3]);
    const float *lr = f32(in[4]), momentum = attr_f(call, RO_SGD_NESTEROV_MOMENTUM),
                decay = attr_f(call, RO_SGD_NESTEROV_DECAY);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        const float direction = ro_fma(decay, w[i], g[i] * *clip);
        return ro_canon(ro_fma(-*lr, ro_fma(momentum, m[i], direction), w[i]));
    });
}
RO_CUDA_KERNEL(sgd_nesterov, sgd_nesterov)

/* ---- SGD, both operators at once ---- */

template <int N>
RO_DEVICE void sgd_elements(const ro_sgd_job &j, float clip, float rate, int64_t from,
                            int64_t end) {
    const float momentum = j.step.momentum, decay = j.step.decay;
    for (int64_t i = from + N * threadIdx.x; i < end; i += N * STEP_THREADS) {
        const ro_pack<N> g = ro_load<N>(j.gradient + i);
        ro_pack<N> w = ro_load<N>(j.w + i), m = ro_load<N>(j.m + i);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float direction = ro_fma(decay, w.at[k], g.at[k] * clip);
            m.at[k] = ro_canon(ro_fma(momentum, m.at[k], direction));
            w.at[k] = ro_canon(ro_fma(
                -rate, j.step.nesterov ? ro_fma(momentum, m.at[k], direction) : m.at[k], w.at[k]));
        }
        ro_store_whole<N>(j.m_out + i, m);
        ro_store_whole<N>(j.w_out + i, w);
    }
}

__global__ void __launch_bounds__(STEP_THREADS) sgd_kernel(ro_sgd_job j, int64_t whole) {
    const float clip = *j.step.clip, rate = *j.step.rate;
    const int64_t from = blockIdx.x * (int64_t)STEP_STRETCH, left = j.step.count - from;
    const int64_t most = STEP_STRETCH, end = from + (left < most ? left : most);
    const int64_t fours = end < whole ? end : whole > from ? whole : from;
    sgd_elements<4>(j, clip, rate, from, fours);
    sgd_elements<1>(j, clip, rate, fours, end);
}

ro_status ro_cuda_sgd(ro_cuda *d, const ro_sgd_job *j) {
    const bool packed = ro_packable(4, j->w, j->m, j->gradient, j->w_out, j->m_out);
    const int64_t whole = packed ? j->step.count / 4 * 4 : 0;
    if (j->step.count > 0)
        RO_LAUNCH(sgd_kernel, ro_grid(ceil_div(j->step.count, STEP_STRETCH)), dim3(STEP_THREADS), 0,
                  d->stream, *j, whole);
    return ro_cuda_launched(d, "sgd");
}
