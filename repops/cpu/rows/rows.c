/* Row reductions, SPEC.md section 3.2. An item is one element of the output: a block of a row. */
#include "repops/cpu/elements/functions.h"
#include "repops/cpu/rows/lanes.h"
#include "repops/cpu/rows/max.h"
#include "repops/op_reduce.h"

/* ---- the block of an item ---- */

typedef struct {
    int64_t row, at; /* where its first element is: row, offset in the row, */
    int64_t e;       /* and offset in the whole input */
    int64_t count;
} row_block;

static row_block block_of(const ro_job *job, int64_t item) {
    const int64_t cols = job->call->attr[RO_ROWS_COLS], size = job->call->attr[RO_ROWS_BLOCK];
    const int64_t blocks = ro_blocks_of(cols, size), row = item / blocks, at = item % blocks * size;
    return (row_block){row, at, row * cols + at, min_i64(size, cols - at)};
}

static void reduce_sum(const ro_job *job, int64_t first, int64_t last) {
    const float *x = job->in[0];
    for (int64_t i = first; i < last; i++) {
        const row_block b = block_of(job, i);
        ((float *)job->out)[i] = lane_sum(x + b.e, b.count);
    }
}
RO_KERNEL(reduce_sum, .range = reduce_sum)

/* Returns elements e, e + 1, ... of an operand that repeats: copied only if they wrap around. */
static const float *repeated(const float *y, int64_t period, int64_t e, int64_t count,
                             float *copy) {
    const int64_t at = period > 0 ? e % period : 0;
    if (at + count <= period)
        return y + at;
    for (int64_t i = 0, from = at; i < count; i++) {
        copy[i] = y[from];
        from = from + 1 < period ? from + 1 : 0;
    }
    return copy;
}

static void reduce_dot(const ro_job *job, int64_t first, int64_t last) {
    const float *a = job->in[0], *y = job->in[1];
    const int64_t period = in_numel(job, 1);
    float copy[RO_REDUCE_BLOCK];
    for (int64_t i = first; i < last; i++) {
        const row_block b = block_of(job, i);
        const float *q = repeated(y, period, b.e, b.count, copy);
        ((float *)job->out)[i] = lane_dot(a + b.e, q, b.count);
    }
}
RO_KERNEL(reduce_dot, .range = reduce_dot)

static void reduce_sqdev(const ro_job *job, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const row_block b = block_of(job, i);
        const terms t = {.a = (const float *)job->in[0] + b.e,
                         .mean = ((const float *)job->in[1])[b.row]};
        ((float *)job->out)[i] = lane_reduce(&t, b.count, add_squares, add_square);
    }
}
RO_KERNEL(reduce_sqdev, .range = reduce_sqdev)

/* ---- exponentials ---- */

static void reduce_expsum(const ro_job *job, int64_t first, int64_t last) {
    float t[RO_REDUCE_BLOCK];
    for (int64_t i = first; i < last; i++) {
        const row_block b = block_of(job, i);
        const constants s = {.a = ((const float *)job->in[1])[b.row]};
        map(exp_minus, s, (const float *)job->in[0] + b.e, b.count, t);
        ((float *)job->out)[i] = lane_sum(t, b.count);
    }
}
RO_KERNEL(reduce_expsum, .range = reduce_expsum)

/* ---- gradients of norms: a is dy, b gamma, c x ---- */

static void reduce_ln_gx(const ro_job *job, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const row_block b = block_of(job, i);
        const terms t = {(const float *)job->in[0] + b.e, (const float *)job->in[1] + b.at,
                         (const float *)job->in[2] + b.e, ((const float *)job->in[3])[b.row],
                         ((const float *)job->in[4])[b.row]};
        ((float *)job->out)[i] = lane_reduce(&t, b.count, add_ln_terms, add_ln_term);
    }
}
RO_KERNEL(reduce_ln_gx, .range = reduce_ln_gx)

static void reduce_rms_gx(const ro_job *job, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
        const row_block b = block_of(job, i);
        const terms t = {(const float *)job->in[0] + b.e, (const float *)job->in[1] + b.at,
                         (const float *)job->in[2] + b.e, 0, ((const float *)job->in[3])[b.row]};
        ((float *)job->out)[i] = lane_reduce(&t, b.count, add_rms_terms, add_rms_term);
    }
}
RO_KERNEL(reduce_rms_gx, .range = reduce_rms_gx)

/* ---- max ---- */

static void reduce_max(const ro_job *job, int64_t first, int64_t last) {
    const float *x = job->in[0];
    for (int64_t i = first; i < last; i++) {
        const row_block b = block_of(job, i);
        ((float *)job->out)[i] = max_of(x + b.e, b.count);
    }
}
RO_KERNEL(reduce_max, .range = reduce_max)
