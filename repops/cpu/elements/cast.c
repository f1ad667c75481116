/* Conversions between element types, SPEC.md section 5. Compilers vectorise what is not written in
 * vectors. */
#include "repops/cpu/isa.h"

/* Toward zero, cut off at the ends of the range. Values that no i32 holds never reach the
 * conversion. */
RO_INLINE int32_t integer_of(float x) {
    const float inside = x > -0x1p31f && x < 0x1p31f ? x : 0.0f;
    const int32_t end = x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : 0;
    return (int32_t)inside + end;
}

/* Casts a vector. x86 converts numbers that no i32 holds, and NaN, to INT32_MIN. */
#if defined(RO_ISA_avx512)
RO_INLINE void store_integers(int32_t *out, vf x) {
    const __m512i y = _mm512_cvttps_epi32(x), most = _mm512_set1_epi32(INT32_MAX);
    const __mmask16 large = _mm512_cmp_ps_mask(x, vf_set1(0x1p31f), _CMP_GE_OQ);
    const __mmask16 number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
    _mm512_storeu_si512(out, _mm512_maskz_mov_epi32(number, _mm512_mask_mov_epi32(y, large, most)));
}
#elif defined(RO_ISA_avx2)
RO_INLINE void store_integers(int32_t *out, vf x) {
    const vf y = _mm256_castsi256_ps(_mm256_cvttps_epi32(x));
    const vf large = _mm256_cmp_ps(x, vf_set1(0x1p31f), _CMP_GE_OQ); /* INT32_MIN to INT32_MAX */
    vf_store((float *)out, _mm256_and_ps(_mm256_xor_ps(y, large), _mm256_cmp_ps(x, x, _CMP_ORD_Q)));
}
#elif defined(RO_ISA_neon)
RO_INLINE void store_integers(int32_t *out, vf x) {
    vst1q_s32(out, vcvtq_s32_f32(x));
}
#endif

static void integers_of(const float *x, int64_t n, int32_t *out) {
    int64_t i = 0;
#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2) || defined(RO_ISA_neon)
    for (; i + VW <= n; i += VW)
        store_integers(out + i, vf_load(x + i));
#endif
    for (; i < n; i++)
        out[i] = integer_of(x[i]);
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
    case RO_I32: integers_of(x + first, last - first, i32 + first); break;
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
