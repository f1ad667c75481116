/* Optimizers, SPEC.md section 9. */
#include "repops/cuda/cuda.cuh"

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

static ro_status bias_correction(ro_cuda *d, const ro_call *call, const void *const *in,
                                 void *out) {
    const float *c = f32(in[0]), beta = attr_f(call, 0);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_canon(ro_fma(beta, c[i], 1.0f - beta));
    });
}

static ro_status clip_scale(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *sum = f32(in[0]), limit = attr_f(call, 0);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        const float norm = ro_sqrt(sum[i]);
        return ro_canon(norm > limit ? limit / norm : 1.0f);
    });
}

static ro_status adamw_m(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *m = f32(in[0]), *g = f32(in[1]), *clip = f32(in[2]), beta = attr_f(call, 0);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_canon(ro_fma(beta, m[i], (1.0f - beta) * (g[i] * *clip)));
    });
}

static ro_status adamw_v(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *v = f32(in[0]), *g = f32(in[1]), *clip = f32(in[2]), beta = attr_f(call, 0);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        const float clipped = g[i] * *clip;
        return ro_canon(ro_fma(beta, v[i], (1.0f - beta) * (clipped * clipped)));
    });
}

static ro_status adamw_w(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *w = f32(in[0]), *m = f32(in[1]), *v = f32(in[2]);
    const float *c1 = f32(in[3]), *c2 = f32(in[4]), *lr = f32(in[5]);
    const float eps = attr_f(call, 0), decay = attr_f(call, 1);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        const float u = (m[i] / *c1) / (ro_sqrt(v[i] / *c2) + eps);
        return ro_canon(ro_fma(-*lr, ro_fma(decay, w[i], u), w[i]));
    });
}

static ro_status sgd_m(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *m = f32(in[0]), *g = f32(in[1]), *w = f32(in[2]), *clip = f32(in[3]);
    const float momentum = attr_f(call, 0), decay = attr_f(call, 1);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_canon(ro_fma(momentum, m[i], ro_fma(decay, w[i], g[i] * *clip)));
    });
}

static ro_status sgd_w(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *w = f32(in[0]), *m = f32(in[1]), *lr = f32(in[2]);
    return map<float>(d, call, out,
                      [=] __device__(int64_t i) { return ro_canon(ro_fma(-*lr, m[i], w[i])); });
}

static ro_status sgd_nesterov(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *w = f32(in[0]), *m = f32(in[1]), *g = f32(in[2]), *clip = f32(in[3]);
    const float *lr = f32(in[4]), momentum = attr_f(call, 0), decay = attr_f(call, 1);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        const float direction = ro_fma(decay, w[i], g[i] * *clip);
        return ro_canon(ro_fma(-*lr, ro_fma(momentum, m[i], direction), w[i]));
    });
}

void ro_cuda_add_optimizer(ro_cuda_operator **table) {
    table[RO_OP_LR_SCHEDULE] = lr_schedule;
    table[RO_OP_BIAS_CORRECTION] = bias_correction;
    table[RO_OP_CLIP_SCALE] = clip_scale;
    table[RO_OP_ADAMW_M] = adamw_m;
    table[RO_OP_ADAMW_V] = adamw_v;
    table[RO_OP_ADAMW_W] = adamw_w;
    table[RO_OP_SGD_M] = sgd_m;
    table[RO_OP_SGD_W] = sgd_w;
    table[RO_OP_SGD_NESTEROV] = sgd_nesterov;
}
