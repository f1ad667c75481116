/* Data movement, SPEC.md section 5: bits are kept. Rotary positions, section 13. */
#include "repops/cuda/cuda.cuh"
#include "repops/src/half.h"
#include "repops/src/rope.h"
#include "repops/op_attention.h"
#include "repops/op_movement.h"

/* ---- operators without an input ---- */

static ro_status fill(ro_cuda *d, const ro_call *call, const void *const *, void *out) {
    const uint32_t value = (uint32_t)call->attr[RO_FILL_VALUE];
    return map<uint32_t>(d, call, out, [=] __device__(int64_t) { return value; });
}
RO_CUDA_KERNEL(fill, fill)

static ro_status iota(ro_cuda *d, const ro_call *call, const void *const *, void *out) {
    return map<int32_t>(d, call, out, [=] __device__(int64_t i) { return (int32_t)i; });
}
RO_CUDA_KERNEL(iota, iota)

/* ---- one place per element: `f` is called with an unsigned type of the element's size ---- */

template <class F> static ro_status by_size(const ro_call *call, const F &f) {
    switch (ro_dtype_size(call->output.dtype)) {
    case 4: return f(uint32_t());
    case 2: return f(uint16_t());
    default: return f(uint8_t());
    }
}

/* Returns whether elements may be moved 16 bytes at once: if tensors start at multiples of that,
 * and runs of `run` elements, or of a power of two that divides `run`, are always contiguous.
 * Computing a place takes longer than one element's memory access. */
static bool in_runs(const ro_call *call, const void *const *in, int inputs, const void *out,
                    int64_t run) {
    uintptr_t at = reinterpret_cast<uintptr_t>(out);
    for (int i = 0; i < inputs; i++)
        at |= reinterpret_cast<uintptr_t>(in[i]);
    return run * (int64_t)ro_dtype_size(call->output.dtype) % 16 == 0 && at % 16 == 0;
}

/* Calls f(type, elements in one of it) for the first input. */
template <class F>
static ro_status by_runs(const ro_call *call, const void *const *in, const void *out, int64_t run,
                         const F &f) {
    if (in_runs(call, in, 1, out, run))
        return f(uint4(), 16 / (int64_t)ro_dtype_size(call->output.dtype));
    return by_size(call, [&](auto t) { return f(t, 1); });
}

/* Sets all elements of an operator's output, n in each T: out[e] = f(e). */
template <class T, class F>
static ro_status move(ro_cuda *d, const ro_call *call, void *out, int64_t n, const F &f) {
    constexpr int each = sizeof(T) == 16 ? MAP_EACH / 2 : MAP_EACH;
    return map<T, each>(d, out, ro_shape_numel(&call->output) / n, f,
                        ro_op_describe(call->op)->name);
}

/* out[o, j, i] = x[o, start + j step, i]. All members are in elements of a row [o] of the input. */
struct slice_view {
    int64_t row, start, step, length, inner;

    explicit slice_view(const ro_call *call) {
        const ro_axis a = ro_axis_of(&call->input[0], call->attr[RO_SLICE_AXIS]);
        row = a.n * a.inner, start = call->attr[RO_SLICE_START] * a.inner, inner = a.inner;
        length = call->attr[RO_SLICE_LENGTH],
        step = length > 1 ? call->attr[RO_SLICE_STEP] * inner : inner;
        if (step == inner) /* a row is one piece */
            inner *= length, length = 1, step = 0;
    }
};

template <class T>
ro_status slice_as(ro_cuda *d, const ro_call *call, const void *in, void *out, const slice_view &v,
                   int64_t n) {
    const int64_t row = v.row / n, start = v.start / n, step = v.step / n;
    const ro_divider inner(v.inner / n), length(v.length);
    const T *x = static_cast<const T *>(in);
    return move<T>(d, call, out, n, [=] __device__(int64_t e) {
        const int64_t r = inner.quotient(e), i = e - r * inner.divisor;
        const int64_t o = length.quotient(r), j = r - o * length.divisor;
        return x[o * row + start + j * step + i];
    });
}

static ro_status slice(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const slice_view v(call);
    return by_runs(call, in, out, v.row | v.start | v.step | v.inner, [&](auto t, int64_t n) {
        return slice_as<decltype(t)>(d, call, in[0], out, v, n);
    });
}
RO_CUDA_KERNEL(slice, slice)

template <class T>
ro_status pad_as(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_axis a = ro_axis_of(&call->input[0], call->attr[RO_PAD_AXIS]);
    const int64_t before = call->attr[RO_PAD_BEFORE];
    const ro_divider inner(a.inner), length(call->output.dim[call->attr[RO_PAD_AXIS]]),
        step(call->attr[RO_PAD_STEP]);
    const T *x = static_cast<const T *>(in[0]), value = (T)call->attr[RO_PAD_VALUE];
    return map<T>(d, call, out, [=] __device__(int64_t e) {
        const int64_t row = inner.quotient(e), i = e - row * a.inner;
        const int64_t o = length.quotient(row), at = row - o * length.divisor - before;
        const int64_t k = at >= 0 ? step.quotient(at) : a.n;
        return k < a.n && k * step.divisor == at ? x[(o * a.n + k) * a.inner + i] : value;
    });
}

static ro_status pad(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return by_size(call, [=](auto t) { return pad_as<decltype(t)>(d, call, in, out); });
}
RO_CUDA_KERNEL(pad, pad)

/* Returns the value that is read outside a tensor. */
template <class T> static T outside_of(const ro_call *call) {
    const uint32_t value = ro_nan_of(call->output.dtype);
    const uint32_t word = ro_dtype_size(call->output.dtype) == 2 ? value * 0x10001 : value;
    if constexpr (sizeof(T) == 16)
        return make_uint4(word, word, word, word);
    else
        return (T)value;
}

template <class T>
ro_status gather_as(ro_cuda *d, const ro_call *call, const void *const *in, void *out,
                    const ro_axis &a, int64_t n) {
    const ro_divider inner(a.inner / n), count(in_numel(call, 1));
    const int64_t rows = a.n;
    const int32_t *ids = static_cast<const int32_t *>(in[1]);
    const T *x = static_cast<const T *>(in[0]), outside = outside_of<T>(call);
    return move<T>(d, call, out, n, [=] __device__(int64_t e) {
        const int64_t row = inner.quotient(e), i = e - row * inner.divisor;
        const int64_t o = count.quotient(row), id = ids[row - o * count.divisor];
        return id >= 0 && id < rows ? x[(o * rows + id) * inner.divisor + i] : outside;
    });
}

static ro_status gather_along(ro_cuda *d, const ro_call *call, const void *const *in, void *out,
                              int64_t axis) {
    const ro_axis a = ro_axis_of(&call->input[0], axis);
    return by_runs(call, in, out, a.inner, [&](auto t, int64_t n) {
        return gather_as<decltype(t)>(d, call, in, out, a, n);
    });
}

static ro_status gather(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return gather_along(d, call, in, out, call->attr[RO_GATHER_AXIS]);
}
RO_CUDA_KERNEL(gather, gather)

static ro_status embedding(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return gather_along(d, call, in, out, 0);
}
RO_CUDA_KERNEL(embedding, embedding)

static ro_status reshape(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const size_t size = (size_t)ro_shape_numel(&call->output) * ro_dtype_size(call->output.dtype);
    return ro_cuda_check(d, cudaMemcpyAsync(out, in[0], size, cudaMemcpyDeviceToDevice, d->stream),
                         "reshape");
}
RO_CUDA_KERNEL(reshape, reshape)

/* ---- heads ---- */

template <class T>
ro_status split_heads_as(ro_cuda *d, const ro_call *call, const void *in, void *out, int64_t n) {
    const int64_t *s = call->output.dim; /* shape [B, H, T, D] */
    const int64_t heads = s[1], part = call->attr[RO_SPLIT_HEADS_PART],
                  width = call->input[0].dim[2] / n;
    const ro_divider size(s[3] / n), length(s[2]), head(heads);
    const T *x = static_cast<const T *>(in);
    return move<T>(d, call, out, n, [=] __device__(int64_t e) {
        const int64_t row = size.quotient(e), i = e - row * size.divisor;
        const int64_t bh = length.quotient(row), t = row - bh * length.divisor;
        const int64_t b = head.quotient(bh), h = bh - b * heads;
        return x[(b * length.divisor + t) * width + (part * heads + h) * size.divisor + i];
    });
}

static ro_status split_heads(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return by_runs(call, in, out, call->output.dim[3], [&](auto t, int64_t n) {
        return split_heads_as<decltype(t)>(d, call, in[0], out, n);
    });
}
RO_CUDA_KERNEL(split_heads, split_heads)

enum { MOST_PARTS = 8 };
template <class T> struct head_parts { const T *x[MOST_PARTS]; };

template <class T>
ro_status join_heads_as(ro_cuda *d, const ro_call *call, const void *const *in, void *out,
                        int64_t n) {
    const int64_t *s = call->input[0].dim; /* shape [B, H, T, D] */
    const int64_t heads = s[1];
    const ro_divider width(call->output.dim[2] / n), length(s[2]), size(s[3] / n), head(heads);
    head_parts<T> parts;
    for (int i = 0; i < MOST_PARTS; i++)
        parts.x[i] = static_cast<const T *>(in[i < call->input_count ? i : 0]);
    return move<T>(d, call, out, n, [=] __device__(int64_t e) {
        const int64_t row = width.quotient(e), column = e - row * width.divisor;
        const int64_t b = length.quotient(row), t = row - b * length.divisor;
        const int64_t ph = size.quotient(column), i = column - ph * size.divisor;
        const int64_t p = head.quotient(ph), h = ph - p * heads;
        return parts.x[p][((b * heads + h) * length.divisor + t) * size.divisor + i];
    });
}

static ro_status join_heads(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    if (in_runs(call, in, call->input_count, out, call->input[0].dim[3]))
        return join_heads_as<uint4>(d, call, in, out,
                                    16 / (int64_t)ro_dtype_size(call->output.dtype));
    return by_size(call, [&](auto t) { return join_heads_as<decltype(t)>(d, call, in, out, 1); });
}
RO_CUDA_KERNEL(join_heads, join_heads)

/* Treats the output as [key-value heads, rows and columns of a head]. */
template <class T>
ro_status repeat_heads_as(ro_cuda *d, const ro_call *call, const void *in, void *out) {
    const T *x = static_cast<const T *>(in);
    const int64_t one = call->output.dim[2] * call->output.dim[3];
    const ro_divider head(one), times(call->attr[RO_REPEAT_HEADS_TIMES]);
    return map<T>(d, call, out, [=] __device__(int64_t i) {
        const int64_t h = head.quotient(i);
        return x[times.quotient(h) * one + (i - h * one)];
    });
}

static ro_status repeat_heads(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return by_size(call, [&](auto t) { return repeat_heads_as<decltype(t)>(d, call, in[0], out); });
}
RO_CUDA_KERNEL(repeat_heads, repeat_heads)

/* ---- parts that follow one another in each row of the output ---- */

enum { PARTS = 64, PART_THREADS = 256, PART_EACH = 8 };

template <class T> struct part {
    const T *x = nullptr;
    int64_t count = 0, at = 0;       /* elements in a row, and their offset in the output's row */
    ro_divider rows = ro_divider(1); /* divides by count */
};
template <class T> struct part_list { part<T> list[PARTS]; };

/* gridDim.y: parts. A thread moves PART_EACH elements of a part, a block's width apart. */
template <class T>
__global__ void __launch_bounds__(PART_THREADS)
    join_kernel(T *out, part_list<T> parts, int64_t rows, int64_t row) {
    const part<T> p = parts.list[blockIdx.y];
    const int64_t total = rows * p.count;
    int64_t e = (int64_t)blockIdx.x * (PART_THREADS * PART_EACH) + threadIdx.x;
    for (int u = 0; u < PART_EACH && e < total; u++, e += PART_THREADS) {
        const int64_t o = rows == 1 ? 0 : p.rows.quotient(e);
        out[o * row + p.at + e - o * p.count] = p.x[e];
    }
}

template <class T>
ro_status join(ro_cuda *d, const ro_call *call, const void *const *in, void *out, int64_t rows,
               int64_t row, const ro_axis *view, int inputs) {
    int64_t at = 0;
    for (int first = 0; first < inputs; first += PARTS) {
        part_list<T> parts = {};
        const int count = inputs - first < PARTS ? inputs - first : PARTS;
        int64_t largest = 0;
        for (int i = 0; i < count; i++) {
            const ro_axis *v = &view[first + i];
            const int64_t in_row = v->n * v->inner;
            parts.list[i] =
                part<T>{static_cast<const T *>(in[first + i]), in_row, at, ro_divider(in_row)};
            at += in_row;
            largest = in_row > largest ? in_row : largest;
        }
        const int64_t blocks = ceil_div(rows * largest, PART_THREADS * PART_EACH);
        if (blocks > 0)
            RO_LAUNCH(join_kernel<T>, ro_grid(blocks, (unsigned)count), dim3(PART_THREADS), 0,
                      d->stream, static_cast<T *>(out), parts, rows, row);
    }
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}

static ro_status concat(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    ro_axis view[RO_MAX_INPUTS];
    for (int i = 0; i < call->input_count; i++)
        view[i] = ro_axis{1, in_numel(call, i), 1};
    return join<uint32_t>(d, call, in, out, 1, ro_shape_numel(&call->output), view,
                          call->input_count);
}
RO_CUDA_KERNEL(concat, concat)

static ro_status concat_axis(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    ro_axis view[RO_MAX_INPUTS];
    const ro_axis whole = ro_axis_of(&call->output, call->attr[RO_CONCAT_AXIS_AXIS]);
    for (int i = 0; i < call->input_count; i++)
        view[i] = ro_axis_of(&call->input[i], call->attr[RO_CONCAT_AXIS_AXIS]);
    return by_size(call, [&](auto t) {
        return join<decltype(t)>(d, call, in, out, whole.outer, whole.n * whole.inner, view,
                                 call->input_count);
    });
}
RO_CUDA_KERNEL(concat_axis, concat_axis)

/* ---- rotary positions ---- */

static ro_status rope_turns(ro_cuda *d, const ro_call *call, const void *const *, void *out) {
    const uint64_t log = ro_rope_log((uint32_t)call->attr[RO_ROPE_TURNS_BASE]);
    const uint64_t half = (uint64_t)call->output.dim[0];
    const ro_rope_scaling scaling = ro_rope_scaling_of(call);
    return map<uint32_t>(d, call, out, [=] __device__(int64_t e) {
        const uint64_t f = ro_rope_scaled(&scaling, ro_rope_frequency(log, half, (uint64_t)e / 2));
        return (uint32_t)(e % 2 ? f >> 32 : f);
    });
}
RO_CUDA_KERNEL(rope_turns, rope_turns)

template <bool neighbours>
static ro_status rope_pairs(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_rotation v = ro_rotation_of(call);
    const ro_divider width(2 * v.half), positions(v.positions), apart(v.apart);
    const int64_t half = v.half, distance = neighbours ? 1 : half;
    const bool lines = v.lines > 1;
    const uint32_t flip = call->attr[RO_ROPE_INVERSE] ? UINT32_C(0x80000000) : 0;
    const float *x = static_cast<const float *>(in[0]);
    const int32_t *position = static_cast<const int32_t *>(in[1]);
    const uint32_t *words = static_cast<const uint32_t *>(in[2]);
    return map<float>(d, call, out, [=] __device__(int64_t e) {
        const int64_t row = width.quotient(e), j = e - row * width.divisor;
        const int64_t i = neighbours ? j / 2 : j < half ? j : j - half;
        const bool second = neighbours ? j & 1 : j >= half;
        const int64_t line = lines ? apart.quotient(row) * positions.divisor : 0;
        const uint64_t f = ro_rope_words(words[2 * i], words[2 * i + 1]);
        const uint32_t turn = ro_rope_turn(f, position[line + positions.remainder(row)]);
        const float cosine = ro_cos_turn(turn);
        const float sine = ro_from_bits(ro_to_bits(ro_sin_turn(turn)) ^ flip);
        const float a = second ? x[e - distance] : x[e], b = second ? x[e] : x[e + distance];
        return ro_canon(second ? ro_fma(b, cosine, a * sine) : ro_fma(a, cosine, -(b * sine)));
    });
}

static ro_status rope(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    return call->attr[RO_ROPE_PAIRS] ? rope_pairs<true>(d, call, in, out)
                                     : rope_pairs<false>(d, call, in, out);
}
RO_CUDA_KERNEL(rope, rope)
