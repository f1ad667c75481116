/* Converts the numbers of conv_bytes.h to integers. */
#include "repops/cpu/image/conv_bytes.h"

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)

#if defined(RO_ISA_avx512)
typedef __m512i vi;
#define VI(name) _mm512_##name

RO_INLINE int all_equal(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ) == 0xffff;
}

RO_INLINE void store_numbers(bytes_x *to, vi x) {
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8(x));
}
#else
typedef __m256i vi;
#define VI(name) _mm256_##name

RO_INLINE int all_equal(vf a, vf b) {
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)) == 0xff;
}

RO_INLINE void store_numbers(bytes_x *to, vi x) {
    const __m128i low = _mm256_castsi256_si128(x), high = _mm256_extracti128_si256(x, 1);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_packs_epi32(low, high));
}
#endif

/* Converting back and forth changes any number that is no integer of 32 bits. */
bytes_range RO_NAME(ro_conv_bytes_range)(const float *x, int64_t count) {
    vi low = VI(set1_epi32)(0), high = low;
    int32_t lows[VW], highs[VW];
    int whole = 1;
    for (int64_t i = 0; i < count && whole; i += VW) {
        const vf at = vf_load_n(x + i, count - i);
        const vi number = VI(cvtps_epi32)(at);
        whole = all_equal(at, VI(cvtepi32_ps)(number));
        low = VI(min_epi32)(low, number), high = VI(max_epi32)(high, number);
    }
    memcpy(lows, &low, sizeof low);
    memcpy(highs, &high, sizeof high);
    bytes_range r = {0, 0, whole};
    for (int i = 0; i < VW; i++) {
        r.low = lows[i] < r.low ? lows[i] : r.low;
        r.high = highs[i] > r.high ? highs[i] : r.high;
    }
    r.whole = whole && (int64_t)r.high - r.low <= BYTES_RANGE;
    return r;
}

void RO_NAME(ro_conv_bytes_take)(const float *x, int64_t count, int32_t low, bytes_x *to) {
    const vi least = VI(set1_epi32)(low);
    int64_t i = 0;
    for (; i + VW <= count; i += VW)
        store_numbers(to + i, VI(sub_epi32)(VI(cvtps_epi32)(vf_load(x + i)), least));
    for (; i < count; i++)
        to[i] = (bytes_x)((int32_t)x[i] - low);
}

#endif
