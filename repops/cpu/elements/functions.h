/* Elementary functions of vectors, and loops over arrays: SPEC.md sections 2 and 6. Compilers could
 * vectorise loops over math.h, but gcc 12 cuts off with four masks, and has no vscalefps. */
#ifndef REPOPS_CPU_FUNCTIONS_H
#define REPOPS_CPU_FUNCTIONS_H

#include "repops/cpu/isa.h"

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)
RO_INLINE float most8(__m256 x) {
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}
#endif

#if defined(RO_ISA_avx512)

RO_INLINE vf bits512(uint32_t bits) {
    return _mm512_castsi512_ps(_mm512_set1_epi32((int)bits));
}
RO_INLINE vf vf_abs(vf x) {
    return _mm512_and_ps(x, bits512(0x7fffffff));
}
RO_INLINE vf vf_minus_abs(vf x) {
    return _mm512_or_ps(x, bits512(0x80000000));
}
RO_INLINE vf vf_cut_above(vf x, vf c) {
    return _mm512_min_ps(x, c);
}
RO_INLINE vf vf_cut_below(vf x, vf c) {
    return _mm512_max_ps(x, c);
}
RO_INLINE vf vf_if_ge(vf a, vf b, vf y, vf n) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GE_OQ), n, y);
}
RO_INLINE vf vf_with_sign(vf y, vf x) {
    return _mm512_or_ps(y, _mm512_and_ps(x, bits512(0x80000000)));
}
RO_INLINE vf vf_unless_nan(vf x, vf y) {
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits512(RO_QNAN_BITS));
}
RO_INLINE vf vf_scale(vf y, vf t) {
    return _mm512_scalef_ps(y, vf_sub(t, vf_set1(0x1.8p23f)));
}
RO_INLINE vf vf_scale_down(vf y, vf t) {
    return vf_scale(y, t);
}
RO_INLINE vf vf_scale_sum(vf p, vf t) {
    const __m512i k = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    const vf s = _mm512_castsi512_ps(_mm512_add_epi32(k, _mm512_set1_epi32(127 << 23)));
    return vf_fma(p, s, s);
}
/* The mask of the exponent is also -inf, which log needs: one register for both, the last one. */
RO_INLINE vf vf_log_split(vf x, vf *m) {
    const __m512i u = _mm512_castps_si512(x);
    const vf mask = vf_set1(ro_from_bits(RO_MINUS_INFINITY_BITS));
    const vf d = _mm512_castsi512_ps(_mm512_sub_epi32(u, _mm512_set1_epi32(0x3f2aaaab)));
    const __m512i e = _mm512_castps_si512(_mm512_and_ps(d, mask));
    *m = _mm512_castsi512_ps(_mm512_sub_epi32(u, e));
    return _mm512_cvtepi32_ps(e);
}
/* Lanes for which something is true. */
typedef __mmask16 vf_lanes;
RO_INLINE vf_lanes vf_within(vf x, float most) {
    return _mm512_cmp_ps_mask(vf_abs(x), vf_set1(most), _CMP_LE_OQ);
}
RO_INLINE vf_lanes vf_below(vf x, float c) {
    return _mm512_cmp_ps_mask(x, vf_set1(c), _CMP_LT_OQ);
}
RO_INLINE int vf_every(vf_lanes lanes) {
    return lanes == 0xffff;
}
/* +0 elsewhere */
RO_INLINE vf vf_only(vf_lanes lanes, vf x) {
    return _mm512_maskz_mov_ps(lanes, x);
}
/* Whether all lanes of both are normal numbers above 0. */
RO_INLINE int vf_positive_normal(vf a, vf b) {
    const __m512i x = _mm512_castps_si512(a), y = _mm512_castps_si512(b);
    const __m512i least = _mm512_min_epi32(x, y), most = _mm512_max_epi32(x, y);
    const __mmask16 low = _mm512_cmpgt_epi32_mask(least, _mm512_set1_epi32(0x007fffff));
    return (low & _mm512_cmplt_epi32_mask(most, _mm512_set1_epi32(0x7f800000))) == 0xffff;
}
/* SPEC.md section 3.2. x86 gives its second operand if both are zeros or one is a NaN; elsewhere
 * the two are equal. */
RO_INLINE vf vf_max(vf a, vf b) {
    const vf m = _mm512_and_ps(_mm512_max_ps(a, b), _mm512_max_ps(b, a));
    return _mm512_mask_mov_ps(m, _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), bits512(RO_QNAN_BITS));
}
/* The largest lane; no NaN, and a zero has either sign. */
RO_INLINE float vf_most(vf x) {
    return most8(_mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
}

#elif defined(RO_ISA_avx2)

RO_INLINE vf bits256(uint32_t bits) {
    return _mm256_castsi256_ps(_mm256_set1_epi32((int)bits));
}
RO_INLINE vf vf_abs(vf x) {
    return _mm256_and_ps(x, bits256(0x7fffffff));
}
RO_INLINE vf vf_minus_abs(vf x) {
    return _mm256_or_ps(x, bits256(0x80000000));
}
RO_INLINE vf vf_cut_above(vf x, vf c) {
    return _mm256_min_ps(x, c);
}
RO_INLINE vf vf_cut_below(vf x, vf c) {
    return _mm256_max_ps(x, c);
}
RO_INLINE vf vf_if_ge(vf a, vf b, vf y, vf n) {
    return _mm256_blendv_ps(n, y, _mm256_cmp_ps(a, b, _CMP_GE_OQ));
}
RO_INLINE vf vf_with_sign(vf y, vf x) {
    return _mm256_or_ps(y, _mm256_and_ps(x, bits256(0x80000000)));
}
RO_INLINE vf vf_unless_nan(vf x, vf y) {
    return _mm256_blendv_ps(y, bits256(RO_QNAN_BITS), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
/* k * 2^23 */
RO_INLINE __m256i exponent(vf t) {
    return _mm256_slli_epi32(_mm256_castps_si256(t), 23);
}
/* 2^(k + offset); offset: that of the exponent's bits */
RO_INLINE vf power(__m256i k, __m256i offset) {
    return _mm256_castsi256_ps(_mm256_add_epi32(k, offset));
}
/* Two factors, as in math.h: the sign of k chooses. */
RO_INLINE vf vf_scale(vf y, vf t) {
    const __m256i k = exponent(t);
    const vf sign = _mm256_castsi256_ps(k);
    const vf offset = _mm256_blendv_ps(bits256((127 - 64) << 23), bits256((127u + 64) << 23), sign);
    const vf rest = _mm256_blendv_ps(vf_set1(0x1p64f), vf_set1(0x1p-64f), sign);
    return vf_mul(vf_mul(y, power(k, _mm256_castps_si256(offset))), rest);
}
RO_INLINE vf vf_scale_down(vf y, vf t) {
    const vf most = power(exponent(t), _mm256_set1_epi32((int)((127u + 64) << 23)));
    return vf_mul(vf_mul(y, most), vf_set1(0x1p-64f));
}
RO_INLINE vf vf_scale_sum(vf p, vf t) {
    const vf s = power(exponent(t), _mm256_set1_epi32(127 << 23));
    return vf_fma(p, s, s);
}
RO_INLINE vf vf_log_split(vf x, vf *m) {
    const __m256i u = _mm256_castps_si256(x);
    const __m256i e = _mm256_and_si256(_mm256_sub_epi32(u, _mm256_set1_epi32(0x3f2aaaab)),
                                       _mm256_set1_epi32((int)0xff800000));
    *m = _mm256_castsi256_ps(_mm256_sub_epi32(u, e));
    return _mm256_cvtepi32_ps(e);
}
typedef __m256i vf_lanes;
RO_INLINE vf_lanes vf_within(vf x, float most) {
    return _mm256_castps_si256(_mm256_cmp_ps(vf_abs(x), vf_set1(most), _CMP_LE_OQ));
}
RO_INLINE vf_lanes vf_below(vf x, float c) {
    return _mm256_castps_si256(_mm256_cmp_ps(x, vf_set1(c), _CMP_LT_OQ));
}
RO_INLINE int vf_every(vf_lanes lanes) {
    return _mm256_movemask_ps(_mm256_castsi256_ps(lanes)) == 0xff;
}
RO_INLINE vf vf_only(vf_lanes lanes, vf x) {
    return _mm256_and_ps(_mm256_castsi256_ps(lanes), x);
}
RO_INLINE int vf_positive_normal(vf a, vf b) {
    const __m256i x = _mm256_castps_si256(a), y = _mm256_castps_si256(b);
    const __m256i least = _mm256_min_epi32(x, y), most = _mm256_max_epi32(x, y);
    const __m256i low = _mm256_cmpgt_epi32(least, _mm256_set1_epi32(0x007fffff));
    const __m256i high = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x7f800000), most);
    return _mm256_movemask_epi8(_mm256_and_si256(low, high)) == -1;
}
RO_INLINE vf vf_max(vf a, vf b) {
    const vf m = _mm256_and_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a));
    return _mm256_blendv_ps(m, bits256(RO_QNAN_BITS), _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}
RO_INLINE float vf_most(vf x) {
    return most8(x);
}

#elif defined(RO_ISA_neon)

RO_INLINE vf vf_abs(vf x) {
    return vabsq_f32(x);
}
RO_INLINE vf vf_minus_abs(vf x) {
    return vnegq_f32(vabsq_f32(x));
}
RO_INLINE vf vf_cut_above(vf x, vf c) {
    return vbslq_f32(vcltq_f32(x, c), x, c);
}
RO_INLINE vf vf_cut_below(vf x, vf c) {
    return vbslq_f32(vcgtq_f32(x, c), x, c);
}
RO_INLINE vf vf_if_ge(vf a, vf b, vf y, vf n) {
    return vbslq_f32(vcgeq_f32(a, b), y, n);
}
RO_INLINE vf vf_with_sign(vf y, vf x) {
    return vbslq_f32(vdupq_n_u32(0x80000000), x, y);
}
RO_INLINE vf vf_unless_nan(vf x, vf y) {
    return vbslq_f32(vceqq_f32(x, x), y, vreinterpretq_f32_u32(vdupq_n_u32(RO_QNAN_BITS)));
}
/* 2^(k + offset); offset: that of the exponent's bits */
RO_INLINE vf power(vf t, uint32x4_t offset) {
    const uint32x4_t k = vshlq_n_u32(vreinterpretq_u32_f32(t), 23);
    return vreinterpretq_f32_u32(vaddq_u32(k, offset));
}
/* Two factors, as in math.h. */
RO_INLINE vf vf_scale(vf y, vf t) {
    const uint32x4_t down = vcltq_f32(t, vdupq_n_f32(0x1.8p23f));
    const uint32x4_t offset =
        vbslq_u32(down, vdupq_n_u32((127u + 64) << 23), vdupq_n_u32((127u - 64) << 23));
    const vf rest = vbslq_f32(down, vdupq_n_f32(0x1p-64f), vdupq_n_f32(0x1p64f));
    return vf_mul(vf_mul(y, power(t, offset)), rest);
}
RO_INLINE vf vf_scale_down(vf y, vf t) {
    return vf_mul(vf_mul(y, power(t, vdupq_n_u32((127u + 64) << 23))), vdupq_n_f32(0x1p-64f));
}
RO_INLINE vf vf_scale_sum(vf p, vf t) {
    const vf s = power(t, vdupq_n_u32(127u << 23));
    return vf_fma(p, s, s);
}
RO_INLINE vf vf_log_split(vf x, vf *m) {
    const uint32x4_t u = vreinterpretq_u32_f32(x);
    const uint32x4_t e = vandq_u32(vsubq_u32(u, vdupq_n_u32(0x3f2aaaab)), vdupq_n_u32(0xff800000));
    *m = vreinterpretq_f32_u32(vsubq_u32(u, e));
    return vcvtq_f32_s32(vreinterpretq_s32_u32(e));
}
typedef uint32x4_t vf_lanes;
RO_INLINE vf_lanes vf_within(vf x, float most) {
    return vcleq_f32(vf_abs(x), vdupq_n_f32(most));
}
RO_INLINE vf_lanes vf_below(vf x, float c) {
    return vcltq_f32(x, vdupq_n_f32(c));
}
RO_INLINE int vf_every(vf_lanes lanes) {
    return vminvq_u32(lanes) != 0;
}
RO_INLINE vf vf_only(vf_lanes lanes, vf x) {
    return vreinterpretq_f32_u32(vandq_u32(lanes, vreinterpretq_u32_f32(x)));
}
RO_INLINE int vf_positive_normal(vf a, vf b) {
    const int32x4_t x = vreinterpretq_s32_f32(a), y = vreinterpretq_s32_f32(b);
    return vminvq_s32(vminq_s32(x, y)) > 0x007fffff && vmaxvq_s32(vmaxq_s32(x, y)) < 0x7f800000;
}
RO_INLINE vf vf_max(vf a, vf b) {
    return vf_canon(vmaxq_f32(a, b));
}
RO_INLINE float vf_most(vf x) {
    return vmaxvq_f32(x);
}

#endif

/* ---- two vectors side by side: gcc keeps their instructions in this order, so that the second one
 * runs while the first one waits ---- */

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2) || defined(RO_ISA_neon)

typedef struct {
    vf x, y;
} wide;
enum { WIDE = 2 * VW };

RO_INLINE vf vf_div(vf a, vf b) {
    return a / b;
}
RO_INLINE vf vf_neg(vf a) {
    return -a;
}

RO_INLINE wide wide_set1(float c) {
    return (wide){vf_set1(c), vf_set1(c)};
}
RO_INLINE wide wide_load(const float *p) {
    return (wide){vf_load(p), vf_load(p + VW)};
}
RO_INLINE void wide_store(float *p, wide a) {
    vf_store(p, a.x), vf_store(p + VW, a.y);
}
/* The first n < WIDE. */
RO_INLINE wide wide_load_n(const float *p, int64_t n) {
    return (wide){vf_load_n(p, n), n > VW ? vf_load_n(p + VW, n - VW) : vf_set1(0.0f)};
}
RO_INLINE void wide_store_n(float *p, wide a, int64_t n) {
    vf_store_n(p, a.x, n);
    if (n > VW)
        vf_store_n(p + VW, a.y, n - VW);
}
#define WIDE1(name)                                                                                \
    RO_INLINE wide wide_##name(wide a) {                                                           \
        return (wide){vf_##name(a.x), vf_##name(a.y)};                                             \
    }
#define WIDE2(name)                                                                                \
    RO_INLINE wide wide_##name(wide a, wide b) {                                                   \
        return (wide){vf_##name(a.x, b.x), vf_##name(a.y, b.y)};                                   \
    }
WIDE1(neg)
WIDE1(abs)
WIDE1(minus_abs)
WIDE1(canon)
WIDE2(add)
WIDE2(sub)
WIDE2(mul)
WIDE2(div)
WIDE2(cut_above)
WIDE2(cut_below)
WIDE2(with_sign)
WIDE2(unless_nan)
WIDE2(scale)
WIDE2(scale_down)
WIDE2(scale_sum)
#undef WIDE1
#undef WIDE2
RO_INLINE wide wide_fma(wide a, wide b, wide c) {
    return (wide){vf_fma(a.x, b.x, c.x), vf_fma(a.y, b.y, c.y)};
}
RO_INLINE wide wide_if_ge(wide a, wide b, wide y, wide n) {
    return (wide){vf_if_ge(a.x, b.x, y.x, n.x), vf_if_ge(a.y, b.y, y.y, n.y)};
}
RO_INLINE wide wide_log_split(wide a, wide *m) {
    return (wide){vf_log_split(a.x, &m->x), vf_log_split(a.y, &m->y)};
}

#define RO_F     wide
#define RO_OF(x) wide_##x
#include "repops/src/functions.h"
#undef RO_F
#undef RO_OF

/* The bits of wide_exp and wide_log, which run only where a lane is a special case. Below -104
 * exp(x) is +0. */
RO_INLINE wide fast_exp(wide x) {
    const vf_lanes a = vf_within(x.x, 87.0f), b = vf_within(x.y, 87.0f);
    const vf_lanes plain = (a | vf_below(x.x, -104.0f)) & (b | vf_below(x.y, -104.0f));
    if (__builtin_expect(!vf_every(plain), 0))
        return wide_exp(x);
    const wide y = wide_exp_plain(x);
    return (wide){vf_only(a, y.x), vf_only(b, y.y)};
}
RO_INLINE wide fast_log(wide x) {
    return __builtin_expect(vf_positive_normal(x.x, x.y), 1) ? wide_log_plain(x) : wide_log(x);
}

#define WIDE_SAME_INDEX /* these are vectors */

/* Prefetches 2 KiB ahead, for a loop whose arithmetic takes as long as memory does: the hardware's
 * own prefetches wait behind it. Beyond an array it does nothing. */
RO_INLINE void fetch_ahead(const float *p) {
    for (size_t line = 0; line < WIDE * sizeof *p; line += 64)
        __builtin_prefetch((const void *)((uintptr_t)p + 2048 + line));
}

#else

#define vf_max              ro_max

/* Compilers vectorise the loops. */
typedef float wide;
enum { WIDE = 1 };
#define wide_set1           ro_set1
#define wide_neg            ro_neg
#define wide_sub            ro_sub
#define wide_mul            ro_mul
#define wide_fma            ro_fma
#define wide_canon          ro_canon
#define wide_unless_nan     ro_unless_nan
#define wide_if_ge          ro_if_ge
#define fast_exp            ro_exp
#define fast_log            ro_log
#define wide_tanh           ro_tanh
#define wide_erf            ro_erf
#define wide_sigmoid        ro_sigmoid
#define wide_relu           ro_relu
#define wide_silu           ro_silu
#define wide_gelu           ro_gelu
#define wide_gelu_erf       ro_gelu_erf
#define wide_gelu_slope     ro_gelu_slope
#define wide_tanh_slope     ro_tanh_slope
#define wide_erf_slope      ro_erf_slope
#define wide_sigmoid_slope  ro_sigmoid_slope
#define wide_silu_slope     ro_silu_slope
#define wide_gelu_erf_slope ro_gelu_erf_slope
#define wide_load           vf_load
#define WIDE_SAME_INDEX     RO_SAME_INDEX
#define fetch_ahead(p)      (void)0
#define wide_store          vf_store
#define wide_load_n         vf_load_n
#define wide_store_n        vf_store_n

#endif

/* ---- loops. The output may be an input. ---- */

/* Constants that all elements share. */
typedef struct {
    float a, b, c;
} constants;

/* Elements of the output, from those of one input or of two. */
typedef wide function1(wide x, constants s);
typedef wide function2(wide x, wide y, constants s);

RO_INLINE void map(function1 *f, constants s, const float *x, int64_t n, float *out) {
    const int64_t whole = n / WIDE * WIDE, left = n - whole;
    WIDE_SAME_INDEX
    for (int64_t i = 0; i < whole; i += WIDE) {
        fetch_ahead(x + i);
        wide_store(out + i, f(wide_load(x + i), s));
    }
    if (left)
        wide_store_n(out + whole, f(wide_load_n(x + whole, left), s), left);
}

/* ahead: whether to fetch, for functions of much arithmetic. Others take a fifth longer for it,
 * from the third-level cache. */
RO_INLINE void map2(function2 *f, constants s, const float *x, const float *y, int64_t n,
                    float *out, int ahead) {
    const int64_t whole = n / WIDE * WIDE, left = n - whole;
    WIDE_SAME_INDEX
    for (int64_t i = 0; i < whole; i += WIDE) {
        if (ahead)
            fetch_ahead(x + i), fetch_ahead(y + i);
        wide_store(out + i, f(wide_load(x + i), wide_load(y + i), s));
    }
    if (left)
        wide_store_n(out + whole, f(wide_load_n(x + whole, left), wide_load_n(y + whole, left), s),
                     left);
}

/* exp(x - a) */
RO_INLINE wide exp_minus(wide x, constants s) {
    return fast_exp(wide_sub(x, wide_set1(s.a)));
}

/* exp(x - y) */
RO_INLINE wide exp_difference(wide x, wide y, constants s) {
    (void)s;
    return fast_exp(wide_sub(x, y));
}

/* exp(x - a) * b */
RO_INLINE wide exp_scaled(wide x, constants s) {
    return wide_canon(wide_mul(exp_minus(x, s), wide_set1(s.b)));
}

#endif
