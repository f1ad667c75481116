/* Operators that draw from Philox, SPEC.md sections 5, 6 and 10. */
#include "repops/cpu/elements/stochastic.h"
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"

/* Blocks of four words that are generated at a time. */
enum { BATCH = 64 };
_Static_assert(BATCH % PHILOX_BLOCKS == 0, "philox_words writes whole groups of blocks");

/* An item of normal, uniform and dropout is a block of four elements. */
static int64_t blocks(const ro_call *call) {
    return ceil_div(ro_shape_numel(&call->output), 4);
}

static philox philox_of(const ro_job *job, uint32_t step) {
    return (philox){(uint64_t)job->call->attr[RO_RANDOM_SEED], step,
                    (uint32_t)job->call->attr[RO_RANDOM_STREAM]};
}

/* An operator without an input has no step, and draws the same numbers in each step. */
static philox philox_of_draw(const ro_job *job) {
    return philox_of(job, job->call->input_count > 0 ? *(const uint32_t *)job->in[0] : 0);
}

/* ---- normal ---- */

static void normal_batch(const uint32_t *restrict word, float mean, float std,
                         float *restrict out) {
    for (int i = 0; i < 2 * BATCH; i++) {
        const uint32_t p = word[2 * i], turn = word[2 * i + 1] >> 8;
        const float u = (float)(int32_t)((p >> 8) + 1) * 0x1p-24f;
        const float radius = ro_sqrt(-2.0f * ro_log(u));
        out[2 * i] = ro_canon(ro_fma(std, radius * ro_cos_turn(turn), mean));
        out[2 * i + 1] = ro_canon(ro_fma(std, radius * ro_sin_turn(turn), mean));
    }
}

static void normal(const ro_job *job, int64_t first, int64_t last) {
    const philox from = philox_of_draw(job);
    const float mean = attr_f32(job, RO_NORMAL_MEAN), std = attr_f32(job, RO_NORMAL_STD);
    const int64_t end = min_i64(4 * last, ro_shape_numel(&job->call->output));
    uint32_t word[4 * BATCH];
    float value[4 * BATCH];
    for (int64_t block = first; block < last; block += BATCH) {
        philox_words(from, (uint64_t)block, BATCH, word);
        normal_batch(word, mean, std, value);
        const int64_t count = min_i64(4 * BATCH, end - 4 * block);
        memcpy((float *)job->out + 4 * block, value, (size_t)count * sizeof *value);
    }
}
RO_KERNEL(normal, .range = normal, .items = blocks)
RO_KERNEL(normal_at, .range = normal, .items = blocks)

/* ---- uniform ---- */

static void uniform(const ro_job *job, int64_t first, int64_t last) {
    const philox from = philox_of_draw(job);
    const float low = attr_f32(job, RO_UNIFORM_LOW), range = attr_f32(job, RO_UNIFORM_HIGH) - low;
    const int64_t end = min_i64(4 * last, ro_shape_numel(&job->call->output));
    uint32_t word[4 * BATCH];
    for (int64_t block = first; block < last; block += BATCH) {
        float *restrict out = (float *)job->out + 4 * block;
        const int64_t count = min_i64(4 * BATCH, end - 4 * block);
        philox_words(from, (uint64_t)block, BATCH, word);
        for (int64_t i = 0; i < count; i++) {
            const float u = (float)(int32_t)(word[i] >> 8) * 0x1p-24f;
            out[i] = ro_canon(ro_fma(range, u, low));
        }
    }
}
RO_KERNEL(uniform, .range = uniform, .items = blocks)
RO_KERNEL(uniform_at, .range = uniform, .items = blocks)

/* ---- permutation ---- */

static void permutation(const ro_job *job, int64_t first, int64_t last) {
    const philox from = philox_of(job, *(const uint32_t *)job->in[0]);
    const uint64_t count = (uint64_t)job->call->output.dim[0];
    for (int64_t i = first; i < last; i++)
        ((uint32_t *)job->out)[i] =
            (uint32_t)ro_permute(from.seed, from.stream, from.step, count, (uint64_t)i);
}
RO_KERNEL(permutation, .range = permutation)

/* ---- dropout ---- */

static void dropout(const ro_job *job, int64_t first, int64_t last) {
    const philox from = philox_of(job, *(const uint32_t *)job->in[1]);
    const uint32_t threshold = (uint32_t)job->call->attr[RO_DROPOUT_THRESHOLD];
    const float scale = attr_f32(job, RO_DROPOUT_SCALE);
    const int64_t end = min_i64(4 * last, ro_shape_numel(&job->call->output));
    uint32_t word[4 * BATCH];
    for (int64_t block = first; block < last; block += BATCH) {
        const float *x = (const float *)job->in[0] + 4 * block;
        float *out = (float *)job->out + 4 * block;
        const int64_t count = min_i64(4 * BATCH, end - 4 * block);
        philox_words(from, (uint64_t)block, BATCH, word);
        RO_SAME_INDEX
        for (int64_t i = 0; i < count; i++) {
            const float kept = ro_canon(x[i] * scale);
            out[i] = word[i] >= threshold ? kept : 0.0f;
        }
    }
}
RO_KERNEL(dropout, .range = dropout, .items = blocks)

/* ---- cast_stochastic: an item is a block of eight elements ---- */

static int64_t eights(const ro_call *call) {
    return ceil_div(ro_shape_numel(&call->output), 8);
}

static void cast_stochastic(const ro_job *job, int64_t first, int64_t last) {
    const philox from = philox_of(job, *(const uint32_t *)job->in[1]);
    const int64_t end = min_i64(8 * last, ro_shape_numel(&job->call->output));
    for (int64_t e = 8 * first; e < end; e += STOCHASTIC_MOST)
        stochastic_bf16(from, e, min_i64(STOCHASTIC_MOST, end - e), (const float *)job->in[0] + e,
                        (uint16_t *)job->out + e);
}
RO_KERNEL(cast_stochastic, .range = cast_stochastic, .items = eights)

/* ---- read_batch: an item is a row ---- */

static int64_t read_batch_rows(const ro_call *call) {
    return call->output.dim[0];
}

/* Returns the number of windows of tokens in data tensor q. */
static uint64_t windows_in(const ro_job *job, int q) {
    return ((uint64_t)in_numel(job, q) - 1) / (uint64_t)job->call->output.dim[1];
}

/* Returns which window row r reads, numbered over all data tensors. */
static uint64_t window(const ro_job *job, uint64_t windows, int64_t r) {
    const int64_t *attr = job->call->attr;
    const uint64_t step = *(const uint32_t *)job->in[job->call->input_count - 1];
    const uint64_t g = step * (uint64_t)attr[RO_READ_BATCH_BATCH] +
                       (uint64_t)attr[RO_READ_BATCH_FIRST] + (uint64_t)r;
    return ro_permute((uint64_t)attr[RO_READ_BATCH_SEED], (uint32_t)attr[RO_READ_BATCH_STREAM],
                      g / windows, windows, g % windows);
}

static void copy_tokens(int dtype, const void *data, int64_t from, int64_t length, int32_t *out) {
    if (dtype == RO_I32)
        memcpy(out, (const int32_t *)data + from, (size_t)length * sizeof *out);
    else
        for (int64_t t = 0; t < length; t++)
            out[t] = dtype == RO_U8 ? ((const uint8_t *)data)[from + t]
                                    : ((const uint16_t *)data)[from + t];
}

static void read_batch(const ro_job *job, int64_t first, int64_t last) {
    const ro_call *call = job->call;
    const int64_t length = call->output.dim[1];
    uint64_t windows = 0;
    for (int q = 0; q < call->input_count - 1; q++)
        windows += windows_in(job, q);
    for (int64_t r = first; r < last; r++) {
        uint64_t w = window(job, windows, r);
        int q = 0;
        for (; w >= windows_in(job, q); q++)
            w -= windows_in(job, q);
        copy_tokens(call->input[q].dtype, job->in[q],
                    (int64_t)w * length + call->attr[RO_READ_BATCH_SHIFT], length,
                    (int32_t *)job->out + r * length);
    }
}
RO_KERNEL(read_batch, .range = read_batch, .items = read_batch_rows)
