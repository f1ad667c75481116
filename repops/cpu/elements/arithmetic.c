/* Arithmetic of two tensors, the second of which may be shorter and then repeats, and of a tensor
 * and a number. SPEC.md section 6. */
#include "repops/cpu/isa.h"
#include "repops/op_elementwise.h"

/* A short second operand is repeated to about this length, so that the loops over it are longer. */
enum { TILE = 512 };

typedef float binary(float a, float b);

RO_INLINE void with_row(binary *f, const float *a, const float *b, float *out, int64_t count) {
    RO_SAME_INDEX
    for (int64_t i = 0; i < count; i++)
        out[i] = ro_canon(f(a[i], b[i]));
}

RO_INLINE void with_number(binary *f, const float *a, float b, float *out, int64_t count) {
    RO_SAME_INDEX
    for (int64_t i = 0; i < count; i++)
        out[i] = ro_canon(f(a[i], b));
}

/* Fills `tile` with as many whole periods of b as fit. Returns how many elements these are. */
static int64_t repeat(const float *b, int64_t period, float *tile) {
    const int64_t length = TILE / period * period;
    for (int64_t i = 0; i < length; i += period)
        memcpy(tile + i, b, (size_t)period * sizeof *b);
    return length;
}

/* `f` is a constant in every call, so that it is inlined. */
RO_INLINE void combine(binary *f, const ro_job *job, int64_t first, int64_t last) {
    const float *a = job->in[0], *b = job->in[1];
    float *out = job->out, tile[TILE];
    int64_t period = in_numel(job, 1);
    if (period == 1) {
        with_number(f, a + first, b[0], out + first, last - first);
        return;
    }
    if (period < TILE / 2 && last - first > TILE) {
        period = repeat(b, period, tile);
        b = tile;
    }
    for (int64_t i = first; i < last;) {
        const int64_t at = i % period, count = min_i64(period - at, last - i);
        with_row(f, a + i, b + at, out + i, count);
        i += count;
    }
}

/* Defines the kernel `name`, which computes the expression of two numbers a and b. */
#define ARITHMETIC(name, expression)                                                               \
    RO_INLINE float name##_of(float a, float b) {                                                  \
        return expression;                                                                         \
    }                                                                                              \
    static void name##_all(const ro_job *job, int64_t first, int64_t last) {                       \
        combine(name##_of, job, first, last);                                                      \
    }                                                                                              \
    RO_KERNEL(name, .range = name##_all)
ARITHMETIC(add, a + b)
ARITHMETIC(sub, a - b)
ARITHMETIC(mul, (a * b))
ARITHMETIC(div, a / b)
ARITHMETIC(max, ro_max(a, b))
ARITHMETIC(min, ro_min(a, b))
#undef ARITHMETIC

static void scale(const ro_job *job, int64_t first, int64_t last) {
    const float *a = job->in[0];
    with_number(mul_of, a + first, attr_f32(job, RO_SCALE_FACTOR), (float *)job->out + first,
                last - first);
}
RO_KERNEL(scale, .range = scale)

static void div_const(const ro_job *job, int64_t first, int64_t last) {
    const float *a = job->in[0];
    with_number(div_of, a + first, attr_f32(job, RO_DIV_CONST_DIVISOR), (float *)job->out + first,
                last - first);
}
RO_KERNEL(div_const, .range = div_const)
