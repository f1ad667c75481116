/* Operators on integers, and rounding to whole numbers: SPEC.md section 6. */
#include "repops/cpu/isa.h"
#include "repops/op_number.h"
#include "repops/src/integer.h"

/* ---- integers ---- */

/* If `each`, b has an element for every one of a; otherwise b[0] serves all. */
#define INTEGER_RUN(kind)                                                                          \
    case kind:                                                                                     \
        RO_SAME_INDEX                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = ro_integer(kind, a[i], each ? b[i] : one);                                    \
        break;

static void integer_run(int kind, const int32_t *a, const int32_t *b, int each, int64_t count,
                        int32_t *out) {
    const int32_t one = b[0];
    switch (kind) {
        INTEGER_RUN(RO_PRODUCT)
        INTEGER_RUN(RO_QUOTIENT)
        INTEGER_RUN(RO_REMAINDER)
        INTEGER_RUN(RO_FLOOR_QUOTIENT)
        INTEGER_RUN(RO_FLOOR_REMAINDER)
        INTEGER_RUN(RO_SHIFT_LEFT)
        INTEGER_RUN(RO_SHIFT_RIGHT)
        INTEGER_RUN(RO_AND)
        INTEGER_RUN(RO_OR)
        INTEGER_RUN(RO_XOR)
        INTEGER_RUN(RO_SMALLER)
        INTEGER_RUN(RO_LARGER)
    default: break;
    }
}

static void integer(const ro_job *job, int64_t first, int64_t last) {
    const int kind = (int)job->call->attr[RO_INTEGER_KIND];
    const int32_t *a = job->in[0], *b = job->in[1];
    int32_t *out = job->out;
    const int64_t period = in_numel(job, 1);
    for (int64_t i = first, count; i < last; i += count) {
        const int64_t at = i % period;
        const int each = period > 1;
        count = each ? min_i64(period - at, last - i) : last - i;
        integer_run(kind, a + i, b + at, each, count, out + i);
    }
}
RO_KERNEL(integer, .range = integer)

/* ---- rounding ---- */

#ifdef RO_ISA_scalar

/* Without an instruction for rounding, a compiler may call the C library. So these functions
 * compute with the magnitude of a number. From 2^23 on every number is whole. */
RO_INLINE float toward_zero(float size) {
    const float small = size < 0x1p23f ? size : 0.0f, whole = (float)(int32_t)small;
    return size < 0x1p23f ? whole : size;
}

RO_INLINE float away_from_zero(float size) {
    const float whole = toward_zero(size);
    return whole < size ? whole + 1.0f : whole;
}

RO_INLINE float nearest(float size) {
    return size < 0x1p23f ? size + 0x1p23f - 0x1p23f : size;
}

RO_INLINE float rounded(int kind, float x) {
    const uint32_t bits = ro_to_bits(x), sign = bits & UINT32_C(1) << 31;
    const float size = ro_from_bits(bits ^ sign);
    const int far = kind == (sign ? RO_DOWN : RO_UP);
    const float y = kind == RO_NEAREST ? nearest(size)
                    : far              ? away_from_zero(size)
                                       : toward_zero(size);
    return ro_from_bits(ro_to_bits(y) | sign);
}

#else

RO_INLINE float rounded(int kind, float x) {
    return kind == RO_DOWN      ? __builtin_floorf(x)
           : kind == RO_UP      ? __builtin_ceilf(x)
           : kind == RO_NEAREST ? __builtin_rintf(x)
                                : __builtin_truncf(x);
}

#endif

#define ROUND_RUN(kind)                                                                            \
    case kind:                                                                                     \
        RO_SAME_INDEX                                                                              \
        for (int64_t i = first; i < last; i++)                                                     \
            out[i] = ro_canon(rounded(kind, x[i]));                                                \
        break;

static void round_to(const ro_job *job, int64_t first, int64_t last) {
    const float *x = job->in[0];
    float *out = job->out;
    switch (job->call->attr[RO_ROUND_KIND]) {
        ROUND_RUN(RO_DOWN)
        ROUND_RUN(RO_UP)
        ROUND_RUN(RO_NEAREST)
        ROUND_RUN(RO_TOWARD_ZERO)
    default: break;
    }
}
RO_KERNEL(round, .range = round_to)
