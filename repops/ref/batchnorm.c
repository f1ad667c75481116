/* Batch norm. SPEC.md section 12.3. */
#include "repops/ref/ref.h"
#include "repops/op_image.h"

void ro_ref_group(int64_t e, int64_t cols, int64_t rows, int64_t *from, int64_t *to) {
    *from = e / cols * RO_COLUMN_GROUP;
    *to = *from + RO_COLUMN_GROUP < rows ? *from + RO_COLUMN_GROUP : rows;
}

static uint32_t bn_mean(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    int64_t cols = call->attr[RO_BN_MEAN_COLS], from, to;
    float sum = 0;
    (void)acc;
    ro_ref_group(e, cols, numel(call, 0) / cols, &from, &to);
    for (int64_t r = from; r < to; r++)
        sum = sum + loadf(in, 0, r * cols + e % cols);
    return result(sum / (float)(to - from));
}
RO_LOADS(bn_mean_loads, RO_COLUMN_GROUP)
RO_REFERENCE(bn_mean, .finish = bn_mean, .loads = bn_mean_loads)

static uint32_t bn_sqdev(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    int64_t cols = call->attr[RO_BN_SQDEV_COLS], from, to;
    float sum = 0, mean = loadf(in, 1, e);
    (void)acc;
    ro_ref_group(e, cols, numel(call, 0) / cols, &from, &to);
    for (int64_t r = from; r < to; r++) {
        float d = loadf(in, 0, r * cols + e % cols) - mean;
        sum = ro_fma(d, d, sum);
    }
    return result(sum);
}
RO_LOADS(bn_sqdev_loads, RO_COLUMN_GROUP + 1)
RO_REFERENCE(bn_sqdev, .finish = bn_sqdev, .loads = bn_sqdev_loads)

int64_t ro_ref_entry_rows(const ro_call *call, int64_t i) {
    int64_t left = call->attr[RO_MERGE_ROWS] - i * call->attr[RO_MERGE_PER];
    return left < call->attr[RO_MERGE_PER] ? left : call->attr[RO_MERGE_PER];
}

/* Merges the entries of a group into one: the mean or, if sqdev, the sum of squared deviations. */
static uint32_t merge(const ro_call *call, int64_t e, const ro_access *in, int sqdev) {
    int64_t cols = call->attr[RO_MERGE_COLS], from, to;
    ro_ref_group(e, cols, numel(call, 0) / cols, &from, &to);
    int64_t n = ro_ref_entry_rows(call, from), first = from * cols + e % cols;
    float mean = loadf(in, 0, first), m2 = sqdev ? loadf(in, 1, first) : 0;
    for (int64_t i = from + 1; i < to; i++) {
        int64_t more = ro_ref_entry_rows(call, i), x = i * cols + e % cols;
        float a = (float)n, b = (float)more, all = (float)(n + more);
        float d = loadf(in, 0, x) - mean;
        if (sqdev)
            m2 = m2 + ro_fma(d * d, a * b / all, loadf(in, 1, x));
        mean = ro_fma(d, b / all, mean);
        n += more;
    }
    return result(sqdev ? m2 : mean);
}

static uint32_t bn_merge_mean(const ro_call *call, int64_t e, const ro_acc *acc,
                              const ro_access *in) {
    (void)acc;
    return merge(call, e, in, 0);
}
RO_REFERENCE(bn_merge_mean, .finish = bn_merge_mean, .loads = bn_mean_loads)

static uint32_t bn_merge_sqdev(const ro_call *call, int64_t e, const ro_acc *acc,
                               const ro_access *in) {
    (void)acc;
    return merge(call, e, in, 1);
}
RO_LOADS(bn_merge_sqdev_loads, 2 * RO_COLUMN_GROUP)
RO_REFERENCE(bn_merge_sqdev, .finish = bn_merge_sqdev, .loads = bn_merge_sqdev_loads)

static uint32_t batchnorm(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    int64_t c = e % last_dim(&call->input[0]);
    (void)acc;
    float xh = (loadf(in, 0, e) - loadf(in, 1, c)) * loadf(in, 2, c);
    return result(ro_fma(xh, loadf(in, 3, c), loadf(in, 4, c)));
}
RO_REFERENCE(batchnorm, .finish = batchnorm)

static uint32_t bn_dgamma(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    int64_t cols = call->attr[RO_BN_DGAMMA_COLS], c = e % cols, from, to;
    float sum = 0, mean = loadf(in, 2, c), rstd = loadf(in, 3, c);
    (void)acc;
    ro_ref_group(e, cols, numel(call, 0) / cols, &from, &to);
    for (int64_t r = from; r < to; r++) {
        float xh = (loadf(in, 1, r * cols + c) - mean) * rstd;
        sum = ro_fma(loadf(in, 0, r * cols + c), xh, sum);
    }
    return result(sum);
}
RO_LOADS(bn_dgamma_loads, 2 * RO_COLUMN_GROUP + 2)
RO_REFERENCE(bn_dgamma, .finish = bn_dgamma, .loads = bn_dgamma_loads)

static uint32_t bn_dx(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    int64_t cols = last_dim(&call->input[0]), c = e % cols;
    (void)acc;
    float n = (float)(numel(call, 0) / cols), rstd = loadf(in, 3, c);
    float xh = (loadf(in, 1, e) - loadf(in, 2, c)) * rstd;
    float dbeta = loadf(in, 5, c) / n, dgamma = loadf(in, 6, c) / n;
    return result((loadf(in, 4, c) * rstd) * ro_fma(-xh, dgamma, loadf(in, 0, e) - dbeta));
}
RO_REFERENCE(bn_dx, .finish = bn_dx)

static uint32_t bn_running(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)acc;
    float r = loadf(in, 0, e), v = loadf(in, 1, e) / attrf(call, RO_BN_RUNNING_DIVISOR);
    return result(ro_fma(attrf(call, RO_BN_RUNNING_MOMENTUM), v - r, r));
}
RO_REFERENCE(bn_running, .finish = bn_running)
