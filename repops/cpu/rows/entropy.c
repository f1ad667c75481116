/* Softmax cross-entropy, SPEC.md section 7.2. An item is a row. */
#include "repops/cpu/elements/functions.h"
#include "repops/op_softmax.h"

static int64_t width(const ro_call *call) {
    return call->input[0].dim[call->input[0].ndim - 1];
}

static int64_t rows(const ro_call *call) {
    return ro_shape_numel(&call->input[3]);
}

/* Returns the label that is ignored, or INT64_MIN, which is no label, for operators that ignore
 * none. */
static int64_t ignored(const ro_call *call) {
    return ro_op_describe(call->op)->attr_count ? call->attr[RO_LABELS_IGNORE] : INT64_MIN;
}

static void xent(const ro_job *job, int64_t first, int64_t last) {
    const float *x = job->in[0], *m = job->in[1], *l = job->in[2];
    const int32_t *ids = job->in[3];
    const int64_t cols = width(job->call), ignore = ignored(job->call);
    float *out = job->out;
    for (int64_t r = first; r < last; r++) {
        const int valid = ids[r] >= 0 && ids[r] < cols;
        if (ids[r] == ignore)
            out[r] = 0.0f;
        else
            out[r] = valid ? ro_canon(ro_log(l[r]) - (x[r * cols + ids[r]] - m[r]))
                           : ro_from_bits(RO_QNAN_BITS);
    }
}
RO_KERNEL(xent, .range = xent, .items = rows)
RO_KERNEL(xent_ignore, .range = xent, .items = rows)

/* Returns the slope of an element that is not the target: p - 0 is p, so only the target needs a
 * subtraction. */
RO_INLINE wide xent_slope(wide x, constants s) {
    return wide_canon(wide_mul(wide_mul(exp_minus(x, s), wide_set1(s.b)), wide_set1(s.c)));
}

static void xent_grad(const ro_job *job, int64_t first, int64_t last) {
    const float *x = job->in[0], *m = job->in[1], *l = job->in[2], *dloss = job->in[4];
    const int32_t *ids = job->in[3];
    const int64_t cols = width(job->call), ignore = ignored(job->call);
    for (int64_t row = first; row < last; row++) {
        const float *xs = x + row * cols, r = 1.0f / l[row];
        float *out = (float *)job->out + row * cols;
        const int32_t id = ids[row];
        if (id == ignore) {
            memset(out, 0, (size_t)cols * sizeof *out);
            continue;
        }
        const int valid = id >= 0 && id < cols;
        const float target = valid ? xs[id] : 0.0f; /* read before it is overwritten */
        map(xent_slope, (constants){m[row], r, dloss[row]}, xs, cols, out);
        if (valid)
            out[id] = ro_canon((ro_exp(target - m[row]) * r - 1.0f) * dloss[row]);
    }
}
RO_KERNEL(xent_grad, .range = xent_grad, .items = rows)
RO_KERNEL(xent_ignore_grad, .range = xent_grad, .items = rows)

static void kept(const ro_job *job, int64_t first, int64_t last) {
    const int32_t *restrict ids = job->in[0], ignore = (int32_t)job->call->attr[RO_KEPT_IGNORE];
    float *restrict out = job->out;
    for (int64_t i = first; i < last; i++)
        out[i] = ids[i] == ignore ? 0.0f : 1.0f;
}
RO_KERNEL(kept, .range = kept)
