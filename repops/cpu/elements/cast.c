/* Conversions between element types, SPEC.md section 5. Compilers vectorise the plain loops. */
#include "repops/cpu/elements/integers.h"
#include "repops/src/half.h"
#include "repops/op_movement.h"

RO_INLINE int32_t cut(int32_t x, int32_t least, int32_t most) {
    const int32_t above = x > least ? x : least;
    return above < most ? above : most;
}

/* out[i] = VALUE for all i. */
#define EACH(TYPE, VALUE)                                                                          \
    do {                                                                                           \
        TYPE *restrict to = out;                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = (TYPE)(VALUE);                                                                 \
    } while (0)

static void from_f32(const float *restrict x, int64_t n, int type, void *out) {
    switch (type) {
    case RO_I32: integers_of(x, n, out); break;
    case RO_U16: EACH(uint16_t, cut(integer_of(x[i]), 0, UINT16_MAX)); break;
    case RO_U8: EACH(uint8_t, cut(integer_of(x[i]), 0, UINT8_MAX)); break;
    case RO_I8: EACH(int8_t, cut(integer_of(x[i]), INT8_MIN, INT8_MAX)); break;
    case RO_BF16: EACH(uint16_t, ro_to_bf16(x[i])); break;
    default: EACH(uint16_t, ro_to_f16(x[i])); break;
    }
}

/* Defines a function that casts integers of type FROM to any type. */
#define FROM_INTEGER(name, FROM)                                                                   \
    static void name(const FROM *restrict x, int64_t n, int type, void *out) {                     \
        switch (type) {                                                                            \
        case RO_F32: EACH(float, x[i]); break;                                                     \
        case RO_I32: EACH(int32_t, x[i]); break;                                                   \
        case RO_U16: EACH(uint16_t, cut(x[i], 0, UINT16_MAX)); break;                              \
        case RO_U8: EACH(uint8_t, cut(x[i], 0, UINT8_MAX)); break;                                 \
        default: EACH(int8_t, cut(x[i], INT8_MIN, INT8_MAX)); break;                               \
        }                                                                                          \
    }
FROM_INTEGER(from_i32, int32_t)
FROM_INTEGER(from_u16, uint16_t)
FROM_INTEGER(from_u8, uint8_t)
FROM_INTEGER(from_i8, int8_t)

static void f32_from_bf16(const uint16_t *restrict x, int64_t n, void *out) {
    EACH(float, ro_from_bf16(x[i]));
}

static void f32_from_f16(const uint16_t *restrict x, int64_t n, void *out) {
    EACH(float, ro_from_f16(x[i]));
}

/* Casts n elements. If one type is bf16 or f16, the other one must be f32 or the same. */
static void cast_run(int from, const void *x, int64_t n, int to, void *out) {
    if (from == to)
        memcpy(out, x, (size_t)n * ro_dtype_size(from));
    else if (from == RO_F32)
        from_f32(x, n, to, out);
    else if (from == RO_I32)
        from_i32(x, n, to, out);
    else if (from == RO_U16)
        from_u16(x, n, to, out);
    else if (from == RO_U8)
        from_u8(x, n, to, out);
    else if (from == RO_I8)
        from_i8(x, n, to, out);
    else if (from == RO_BF16)
        f32_from_bf16(x, n, out);
    else
        f32_from_f16(x, n, out);
}

static int is_half(int64_t dtype) {
    return dtype == RO_BF16 || dtype == RO_F16;
}

static void cast(const ro_job *job, int64_t first, int64_t last) {
    enum { BLOCK = 512 };
    const int from = job->call->input[0].dtype, to = (int)job->call->attr[RO_CAST_DTYPE];
    const size_t from_size = ro_dtype_size(from), to_size = ro_dtype_size(to);
    const char *x = (const char *)job->in[0] + (size_t)first * from_size;
    char *out = (char *)job->out + (size_t)first * to_size;
    float number[BLOCK];
    if (from == to || from == RO_F32 || to == RO_F32 || !(is_half(from) || is_half(to))) {
        cast_run(from, x, last - first, to, out);
        return;
    }
    for (int64_t i = first; i < last; i += BLOCK, x += BLOCK * from_size, out += BLOCK * to_size) {
        const int64_t n = min_i64(BLOCK, last - i);
        cast_run(from, x, n, RO_F32, number);
        cast_run(RO_F32, number, n, to, out);
    }
}
RO_KERNEL(cast, .range = cast)
