/* Operators that need Philox, SPEC.md sections 5, 6, 10 and 12.4. */
#include "repops/cuda/rows/rows.cuh"
#include "repops/src/half.h"
#include "repops/src/philox.h"
#include "repops/op_elementwise.h"
#include "repops/op_image.h"
#include "repops/op_movement.h"

/* ---- blocks of four elements, one per thread ---- */

enum { QUAD_THREADS = 256 };

/* Element i of a block is f(x's element, i, its word, the words that its pair shares). `packed`:
 * blocks are whole and aligned. x is read before the output is stored, as both may be the same. */
template <bool packed, class F>
__global__ void __launch_bounds__(QUAD_THREADS)
    quad_kernel(const float *x, float *out, int64_t count, F f) {
    const int64_t block = (int64_t)blockIdx.x * QUAD_THREADS + threadIdx.x, first = 4 * block;
    uint32_t word[4];
    ro_pack<4> value = {};
    if (first >= count)
        return;
    if (F::READS && packed)
        value = ro_load<4>(x + first);
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (F::READS && !packed && first + i < count)
            value.at[i] = x[first + i];
    f.words(block, word);
#pragma unroll
    for (int i = 0; i < 4; i++)
        value.at[i] = f(value.at[i], i, word[i], word[i & 2], word[(i & 2) + 1]);
    if (packed)
        ro_store<4>(out + first, value);
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (!packed && first + i < count)
            out[first + i] = value.at[i];
}

/* A source of Philox words; *step is read if `step` is not NULL. */
struct source {
    static const bool READS = false; /* whether elements of an input are read, too */
    uint64_t seed;
    uint32_t stream;
    const uint32_t *step;

    RO_DEVICE void words(int64_t block, uint32_t word[4]) const {
        ro_philox_block(seed, (uint64_t)block, step ? *step : 0, stream, word);
    }
};

static source source_of(const ro_call *call, const void *step) {
    return source{(uint64_t)call->attr[RO_RANDOM_SEED], (uint32_t)call->attr[RO_RANDOM_STREAM],
                  static_cast<const uint32_t *>(step)};
}

/* An operator without an input has no step, and draws the same numbers in each step. */
static source source_of_draw(const ro_call *call, const void *const *in) {
    return source_of(call, call->input_count > 0 ? in[0] : nullptr);
}

/* x: NULL if F reads no input. */
template <class F>
static ro_status quads(ro_cuda *d, const ro_call *call, const void *x, void *out, const F &f) {
    const int64_t count = ro_shape_numel(&call->output);
    const dim3 grid = ro_grid(ceil_div(count, 4 * QUAD_THREADS)), block(QUAD_THREADS);
    const float *from = static_cast<const float *>(x);
    float *to = static_cast<float *>(out);
    if (ro_packable(count, from, to))
        RO_LAUNCH((quad_kernel<true, F>), grid, block, 0, d->stream, from, to, count, f);
    else
        RO_LAUNCH((quad_kernel<false, F>), grid, block, 0, d->stream, from, to, count, f);
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}

struct normal_of : source {
    float mean, deviation;

    RO_DEVICE float operator()(float, int i, uint32_t, uint32_t p, uint32_t q) const {
        const float u = (float)((p >> 8) + 1) * 0x1p-24f, radius = ro_sqrt(-2.0f * ro_log(u));
        const float z = radius * (i & 1 ? ro_sin_turn(q >> 8) : ro_cos_turn(q >> 8));
        return ro_canon(ro_fma(deviation, z, mean));
    }
};

static ro_status normal(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return quads(d, call, nullptr, out,
                 normal_of{source_of_draw(call, in), attr_f(call, RO_NORMAL_MEAN),
                           attr_f(call, RO_NORMAL_STD)});
}
RO_CUDA_KERNEL(normal, normal)
RO_CUDA_KERNEL(normal_at, normal)

struct uniform_of : source {
    float low, high;

    RO_DEVICE float operator()(float, int, uint32_t word, uint32_t, uint32_t) const {
        return ro_canon(ro_fma(high - low, (float)(word >> 8) * 0x1p-24f, low));
    }
};

static ro_status uniform(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return quads(d, call, nullptr, out,
                 uniform_of{source_of_draw(call, in), attr_f(call, RO_UNIFORM_LOW),
                            attr_f(call, RO_UNIFORM_HIGH)});
}
RO_CUDA_KERNEL(uniform, uniform)
RO_CUDA_KERNEL(uniform_at, uniform)

struct dropout_of : source {
    static const bool READS = true;
    uint32_t threshold;
    float scale;

    RO_DEVICE float operator()(float x, int, uint32_t word, uint32_t, uint32_t) const {
        return word >= threshold ? ro_canon(x * scale) : 0.0f;
    }
};

static ro_status dropout(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return quads(d, call, in[0], out,
                 dropout_of{source_of(call, in[1]), (uint32_t)call->attr[RO_DROPOUT_THRESHOLD],
                            attr_f(call, RO_DROPOUT_SCALE)});
}
RO_CUDA_KERNEL(dropout, dropout)

/* ---- cast_stochastic: a thread has one block of Philox, for eight elements ---- */

__global__ void __launch_bounds__(QUAD_THREADS)
    cast_kernel(source from, const float *x, uint16_t *out, int64_t count) {
    const int64_t block = (int64_t)blockIdx.x * QUAD_THREADS + threadIdx.x, first = 8 * block;
    uint32_t word[4];
    if (first >= count)
        return;
    from.words(block, word);
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (first + i < count)
            out[first + i] =
                ro_to_bf16_at_random(x[first + i], word[i / 2] >> 16 * (i % 2) & 0xffff);
}

static ro_status cast_stochastic(ro_cuda *d, const ro_call *call, const void *const *in,
                                 void *out) {
    const int64_t count = ro_shape_numel(&call->output);
    const dim3 grid = ro_grid(ceil_div(count, 8 * QUAD_THREADS)), block(QUAD_THREADS);
    RO_LAUNCH(cast_kernel, grid, block, 0, d->stream, source_of(call, in[1]),
              static_cast<const float *>(in[0]), static_cast<uint16_t *>(out), count);
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}
RO_CUDA_KERNEL(cast_stochastic, cast_stochastic)

/* ---- permutations ---- */

static ro_status permutation(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const source s = source_of(call, in[0]);
    const uint64_t count = (uint64_t)call->output.dim[0];
    return map<uint32_t>(d, call, out, [=] __device__(int64_t i) {
        return (uint32_t)ro_permute(s.seed, s.stream, *s.step, count, (uint64_t)i);
    });
}
RO_CUDA_KERNEL(permutation, permutation)

/* Finds which of `count` records is read as row `row` of a batch. */
struct shuffle {
    source s;
    uint64_t batch, first, count;

    RO_DEVICE uint64_t record(int64_t row) const {
        const uint64_t slot = (uint64_t)*s.step * batch + first + (uint64_t)row;
        return ro_permute(s.seed, s.stream, slot / count, count, slot % count);
    }
};

static shuffle shuffle_of(const ro_call *call, const void *step, int64_t count) {
    return shuffle{source_of(call, step), (uint64_t)call->attr[RO_READER_BATCH],
                   (uint64_t)call->attr[RO_READER_FIRST], (uint64_t)count};
}

static int64_t windows_in(const ro_call *call, int q) {
    return (call->input[q].dim[0] - 1) / call->output.dim[1];
}

template <class T>
static ro_status read_windows(ro_cuda *d, const ro_call *call, const shuffle &rows, const void *in,
                              void *out) {
    const T *data = static_cast<const T *>(in);
    const int64_t length = call->output.dim[1], shift = call->attr[RO_READ_BATCH_SHIFT];
    return map<int32_t>(d, call, out, [=] __device__(int64_t i) {
        const int64_t window = (int64_t)rows.record(i / length);
        return (int32_t)data[window * length + i % length + shift];
    });
}

/* A small number, so that generated cases (CASE_INPUTS) need several launches, too. */
enum { SHARDS = 4 };

/* The data tensors of one launch: shard i has windows [from[i], from[i + 1]). */
template <class T> struct shard_list {
    const T *data[SHARDS];
    int64_t from[SHARDS + 1];
    int count;
};

/* Elements whose window is in another launch's shards are left as they are. */
template <class T>
static ro_status read_shards(ro_cuda *d, const ro_call *call, const shuffle &rows,
                             const shard_list<T> &shards, int32_t *out) {
    const int64_t length = call->output.dim[1], shift = call->attr[RO_READ_BATCH_SHIFT];
    return map<int32_t, 1>(d, call, out, [=] __device__(int64_t i) {
        const int64_t window = (int64_t)rows.record(i / length);
        int q = 0;
        if (window < shards.from[0] || window >= shards.from[shards.count])
            return shards.from[0] == 0 ? 0 : out[i];
        while (window >= shards.from[q + 1])
            q++;
        return (int32_t)shards.data[q][(window - shards.from[q]) * length + i % length + shift];
    });
}

template <class T>
static ro_status read_all(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int tensors = call->input_count - 1;
    int64_t windows = 0, from = 0;
    for (int q = 0; q < tensors; q++)
        windows += windows_in(call, q);
    const shuffle rows = shuffle_of(call, in[tensors], windows);
    if (tensors == 1)
        return read_windows<T>(d, call, rows, in[0], out);
    ro_status status = RO_OK;
    for (int first = 0; status == RO_OK && first < tensors; first += SHARDS) {
        shard_list<T> shards = {};
        shards.from[0] = from;
        for (int q = first; q < tensors && q < first + SHARDS; q++) {
            shards.data[shards.count++] = static_cast<const T *>(in[q]);
            shards.from[shards.count] = from += windows_in(call, q);
        }
        status = read_shards<T>(d, call, rows, shards, static_cast<int32_t *>(out));
    }
    return status;
}

static ro_status read_batch(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    switch (call->input[0].dtype) {
    case RO_U8: return read_all<uint8_t>(d, call, in, out);
    case RO_U16: return read_all<uint16_t>(d, call, in, out);
    default: return read_all<int32_t>(d, call, in, out);
    }
}
RO_CUDA_KERNEL(read_batch, read_batch)

/* ---- images ---- */

static ro_status read_images(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const uint8_t *data = static_cast<const uint8_t *>(in[0]);
    const int64_t height = call->output.dim[1], width = call->output.dim[2];
    const ro_divider channels(call->output.dim[3]), columns(width), lines(height);
    const int64_t size = call->attr[RO_READ_IMAGES_RECORD],
                  offset = call->attr[RO_READ_IMAGES_OFFSET];
    const float scale = attr_f(call, RO_READ_IMAGES_SCALE),
                bias = attr_f(call, RO_READ_IMAGES_SHIFT);
    const shuffle rows = shuffle_of(call, in[1], call->input[0].dim[0] / size);
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        const int64_t pixel = channels.quotient(i), line = columns.quotient(pixel);
        const int64_t row = lines.quotient(line), c = i - pixel * channels.divisor;
        const int64_t from = (int64_t)rows.record(row) * size + offset;
        const int64_t at = (c * height + line - row * height) * width + pixel - line * width;
        return ro_canon(ro_fma((float)data[from + at], scale, bias));
    });
}
RO_CUDA_KERNEL(read_images, read_images)

static ro_status read_labels(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const uint8_t *data = static_cast<const uint8_t *>(in[0]);
    const int64_t size = call->attr[RO_READ_LABELS_RECORD],
                  offset = call->attr[RO_READ_LABELS_OFFSET];
    const shuffle rows = shuffle_of(call, in[1], call->input[0].dim[0] / size);
    return map<int32_t>(d, call, out, [=] __device__(int64_t i) {
        return (int32_t)data[(int64_t)rows.record(i) * size + offset];
    });
}
RO_CUDA_KERNEL(read_labels, read_labels)
