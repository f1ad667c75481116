/* Batch norm, SPEC.md section 12.3. Columns are channels; rows go in groups of 64. */
#include "repops/cuda/cuda.cuh"

static const float *f32(const void *x) {
    return static_cast<const float *>(x);
}

/* Rows [from, to) of a group, and the column, of element e of the output. Reductions have `count`
 * of them, and read some rows before they add the first. */
struct columns {
    ro_divider cols;
    int64_t rows;

    explicit columns(const ro_call *call)
        : cols(call->attr[0]), rows(in_numel(call, 0) / cols.divisor) {}

    struct place {
        int64_t from, to, c;
        int64_t first; /* element */
        int count;
    };
    RO_DEVICE place of(int64_t e) const {
        const int64_t group = cols.quotient(e), from = group * RO_COLUMN_GROUP;
        const int64_t to = from + RO_COLUMN_GROUP < rows ? from + RO_COLUMN_GROUP : rows;
        const int64_t c = e - group * cols.divisor;
        return place{from, to, c, from * cols.divisor + c, (int)(to - from)};
    }
};

static ro_status bn_mean(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = f32(in[0]);
    const columns k(call);
    return map<float, 1>(d, call, out, [=] __device__(int64_t e) {
        const columns::place p = k.of(e);
        float sum = 0;
#pragma unroll 8
        for (int r = 0; r < p.count; r++)
            sum = sum + x[p.first + r * k.cols.divisor];
        return ro_canon(sum / (float)p.count);
    });
}

static ro_status bn_sqdev(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = f32(in[0]), *mean = f32(in[1]);
    const columns k(call);
    return map<float, 1>(d, call, out, [=] __device__(int64_t e) {
        const columns::place p = k.of(e);
        const float m = mean[e];
        float sum = 0;
#pragma unroll 8
        for (int r = 0; r < p.count; r++) {
            const float deviation = x[p.first + r * k.cols.divisor] - m;
            sum = ro_fma(deviation, deviation, sum);
        }
        return ro_canon(sum);
    });
}

static ro_status bn_dgamma(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *dy = f32(in[0]), *x = f32(in[1]), *mean = f32(in[2]), *rstd = f32(in[3]);
    const columns k(call);
    return map<float, 1>(d, call, out, [=] __device__(int64_t e) {
        const columns::place p = k.of(e);
        const float m = mean[p.c], s = rstd[p.c];
        float sum = 0;
#pragma unroll 8
        for (int r = 0; r < p.count; r++) {
            const int64_t at = p.first + r * k.cols.divisor;
            sum = ro_fma(dy[at], (x[at] - m) * s, sum);
        }
        return ro_canon(sum);
    });
}

/* ---- merging ---- */

/* How many rows entry i stands for. */
RO_DEVICE int64_t entry_rows(int64_t rows, int64_t per, int64_t i) {
    const int64_t left = rows - i * per;
    return left < per ? left : per;
}

template <bool sqdev>
static ro_status bn_merge(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *mean = f32(in[0]), *m2 = sqdev ? f32(in[1]) : nullptr;
    const int64_t rows = call->attr[1], per = call->attr[2];
    const columns k(call);
    return map<float, 1>(d, call, out, [=] __device__(int64_t e) {
        const columns::place p = k.of(e);
        int64_t n = entry_rows(rows, per, p.from), at = p.from * k.cols.divisor + p.c;
        float m = mean[at], s = sqdev ? m2[at] : 0;
        for (int64_t i = p.from + 1; i < p.to; i++) {
            const int64_t more = entry_rows(rows, per, i);
            const float a = (float)n, b = (float)more, all = (float)(n + more);
            at += k.cols.divisor;
            const float delta = mean[at] - m;
            if (sqdev)
                s = s + ro_fma(delta * delta, a * b / all, m2[at]);
            m = ro_fma(delta, b / all, m);
            n += more;
        }
        return ro_canon(sqdev ? s : m);
    });
}

/* ---- by element ---- */

static int64_t channels(const ro_call *call) {
    return call->input[0].dim[call->input[0].ndim - 1];
}

static ro_status batchnorm(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = f32(in[0]), *mean = f32(in[1]), *rstd = f32(in[2]);
    const float *gamma = f32(in[3]), *beta = f32(in[4]);
    const ro_divider cols(channels(call));
    return map<float>(d, call, out, [=] __device__(int64_t e) {
        const int64_t c = cols.remainder(e);
        return ro_canon(ro_fma((x[e] - mean[c]) * rstd[c], gamma[c], beta[c]));
    });
}

static ro_status bn_dx(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *dy = f32(in[0]), *x = f32(in[1]), *mean = f32(in[2]), *rstd = f32(in[3]);
    const float *gamma = f32(in[4]), *dbeta = f32(in[5]), *dgamma = f32(in[6]);
    const ro_divider cols(channels(call));
    const float n = (float)(in_numel(call, 0) / cols.divisor);
    return map<float>(d, call, out, [=] __device__(int64_t e) {
        const int64_t c = cols.remainder(e);
        const float xh = (x[e] - mean[c]) * rstd[c];
        return ro_canon((gamma[c] * rstd[c]) * ro_fma(-xh, dgamma[c] / n, dy[e] - dbeta[c] / n));
    });
}

static ro_status bn_running(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *r = f32(in[0]), *v = f32(in[1]);
    const float momentum = attr_f(call, 0), divisor = attr_f(call, 1);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_canon(ro_fma(momentum, v[i] / divisor - r[i], r[i]));
    });
}

void ro_cuda_add_batchnorm(ro_cuda_operator **table) {
    table[RO_OP_BN_MEAN] = bn_mean;
    table[RO_OP_BN_SQDEV] = bn_sqdev;
    table[RO_OP_BN_MERGE_MEAN] = bn_merge<false>;
    table[RO_OP_BN_MERGE_SQDEV] = bn_merge<true>;
    table[RO_OP_BATCHNORM] = batchnorm;
    table[RO_OP_BN_DGAMMA] = bn_dgamma;
    table[RO_OP_BN_DX] = bn_dx;
    table[RO_OP_BN_RUNNING] = bn_running;
}
