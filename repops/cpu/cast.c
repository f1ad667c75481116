/* Conversions between element types, SPEC.md section 5. Compilers vectorise these loops. */
#include "repops/cpu/isa.h"

/* Toward zero, cut off at the ends of the range. Values that no i32 holds never reach the
 * conversion. */
RO_INLINE int32_t integer_of(float x) {
    const float inside = x > -0x1p31f && x < 0x1p31f ? x : 0.0f;
    const int32_t end = x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : 0;
    return (int32_t)inside + end;
}

RO_INLINE int32_t cut(int32_t x, int32_t most) {
    const int32_t positive = x > 0 ? x : 0;
    return positive < most ? positive : most;
}

static void from_f32(const ro_job *job, int64_t first, int64_t last) {
    const float *restrict x = job->in[0];
    int32_t *restrict i32 = job->out;
    uint16_t *restrict u16 = job->out;
    uint8_t *restrict u8 = job->out;
    switch (job->call->attr[0]) {
    case RO_I32:
        for (int64_t i = first; i < last; i++)
            i32[i] = integer_of(x[i]);
        break;
    case RO_U16:
        for (int64_t i = first; i < last; i++)
            u16[i] = (uint16_t)cut(integer_of(x[i]), 65535);
        break;
    default:
        for (int64_t i = first; i < last; i++)
            u8[i] = (uint8_t)cut(integer_of(x[i]), 255);
        break;
    }
}

static void from_i32(const ro_job *job, int64_t first, int64_t last) {
    const int32_t *restrict x = job->in[0];
    float *restrict f32 = job->out;
    uint16_t *restrict u16 = job->out;
    uint8_t *restrict u8 = job->out;
    switch (job->call->attr[0]) {
    case RO_F32:
        for (int64_t i = first; i < last; i++)
            f32[i] = (float)x[i];
        break;
    case RO_U16:
        for (int64_t i = first; i < last; i++)
            u16[i] = (uint16_t)cut(x[i], 65535);
        break;
    default:
        for (int64_t i = first; i < last; i++)
            u8[i] = (uint8_t)cut(x[i], 255);
        break;
    }
}

static void from_u16(const ro_job *job, int64_t first, int64_t last) {
    const uint16_t *restrict x = job->in[0];
    float *restrict f32 = job->out;
    int32_t *restrict i32 = job->out;
    uint8_t *restrict u8 = job->out;
    switch (job->call->attr[0]) {
    case RO_F32:
        for (int64_t i = first; i < last; i++)
            f32[i] = (float)x[i];
        break;
    case RO_I32:
        for (int64_t i = first; i < last; i++)
            i32[i] = x[i];
        break;
    default:
        for (int64_t i = first; i < last; i++)
            u8[i] = (uint8_t)cut(x[i], 255);
        break;
    }
}

static void from_u8(const ro_job *job, int64_t first, int64_t last) {
    const uint8_t *restrict x = job->in[0];
    float *restrict f32 = job->out;
    int32_t *restrict i32 = job->out;
    uint16_t *restrict u16 = job->out;
    switch (job->call->attr[0]) {
    case RO_F32:
        for (int64_t i = first; i < last; i++)
            f32[i] = (float)x[i];
        break;
    case RO_I32:
        for (int64_t i = first; i < last; i++)
            i32[i] = x[i];
        break;
    default:
        for (int64_t i = first; i < last; i++)
            u16[i] = x[i];
        break;
    }
}

static void cast(const ro_job *job, int64_t first, int64_t last) {
    const int from = job->call->input[0].dtype;
    const size_t size = ro_dtype_size(from);
    if (from == job->call->attr[0])
        memcpy((char *)job->out + (size_t)first * size,
               (const char *)job->in[0] + (size_t)first * size, (size_t)(last - first) * size);
    else if (from == RO_F32)
        from_f32(job, first, last);
    else if (from == RO_I32)
        from_i32(job, first, last);
    else if (from == RO_U16)
        from_u16(job, first, last);
    else
        from_u8(job, first, last);
}

void RO_NAME(ro_add_cast)(ro_table *table) {
    table->kernel[RO_OP_CAST] = (ro_kernel){.range = cast};
}
