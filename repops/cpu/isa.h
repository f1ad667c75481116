/* Names and vectors of the instruction set that this object is compiled for.
 *
 * Every file of this folder is compiled once per instruction set, with -DRO_ISA=<name> and
 * -DRO_ISA_<name>=1. All functions but the RO_NAME ones are static, and nothing here is inline
 * across objects: a linker that keeps the AVX-512 copy of a shared function would break older
 * machines.
 *
 * Most kernels are plain loops, which compilers vectorise; the vectors below serve where values
 * must stay in registers, those of functions.h where compilers do worse. Each lane computes what
 * math.h computes. */
#ifndef REPOPS_CPU_ISA_H
#define REPOPS_CPU_ISA_H

#include "repops/src/backend.h"
#include "repops/src/call.h"
#include "repops/src/math.h"

#define RO_PASTE_(name, isa) name##_##isa
#define RO_PASTE(name, isa)  RO_PASTE_(name, isa)
#define RO_NAME(name)        RO_PASTE(name, RO_ISA)

/* Unrolls a loop of constant length, so that an array of vectors becomes registers. */
#if defined(__clang__)
#define RO_UNROLL    _Pragma("clang loop unroll(full)")
#define RO_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define RO_UNROLL    _Pragma("GCC unroll 32")
#define RO_NO_UNROLL _Pragma("GCC unroll 1")
#endif

/* Hides from the compiler how p was computed. Otherwise it keeps one address for every row or step,
 * and runs out of registers. */
RO_INLINE const float *whole_address(const float *p) {
    __asm__("" : "+r"(p));
    return p;
}

/* Stands before a loop whose iterations each read and write one index only. The output may be an
 * input, at exactly the same address (ro_op_in_place), so the pointers cannot be `restrict`. */
#if defined(__clang__)
#define RO_SAME_INDEX _Pragma("clang loop vectorize(assume_safety)")
#else
#define RO_SAME_INDEX _Pragma("GCC ivdep")
#endif

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)
#include <immintrin.h>
#elif defined(RO_ISA_neon)
#include <arm_neon.h>
#endif

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)
/* Returns the sum of eight lanes in the order of SPEC.md section 3.2: adds lanes i and i + w, for w
 * = 4, 2, 1. */
RO_INLINE float fold8(__m256 x) {
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
#endif

#if defined(RO_ISA_avx512)

enum { VW = 16 };
typedef __m512 vf;

typedef __mmask16 vf_mask;

/* Returns a mask of the first n lanes; n may be outside 0..VW. */
RO_INLINE vf_mask vf_first(int64_t n) {
    return n >= VW ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}
RO_INLINE vf vf_set1(float x) {
    return _mm512_set1_ps(x);
}
RO_INLINE vf vf_load(const float *p) {
    return _mm512_loadu_ps(p);
}
RO_INLINE void vf_store(float *p, vf x) {
    _mm512_storeu_ps(p, x);
}
/* Loads the lanes of the mask, and +0 in the others. */
RO_INLINE vf vf_load_mask(const float *p, vf_mask mask) {
    return _mm512_maskz_loadu_ps(mask, p);
}
RO_INLINE vf vf_load_n(const float *p, int64_t n) {
    return vf_load_mask(p, vf_first(n));
}
RO_INLINE void vf_store_n(float *p, vf x, int64_t n) {
    _mm512_mask_storeu_ps(p, vf_first(n), x);
}
RO_INLINE vf vf_add(vf a, vf b) {
    return _mm512_add_ps(a, b);
}
RO_INLINE vf vf_sub(vf a, vf b) {
    return _mm512_sub_ps(a, b);
}
RO_INLINE vf vf_mul(vf a, vf b) {
    return _mm512_mul_ps(a, b);
}
RO_INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}
/* Returns *a * b + c. The fma itself loads *a: compilers would load once for several of them, in an
 * instruction of its own, which takes an issue slot. */
RO_INLINE vf vf_fma_at(const float *a, vf b, vf c) {
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
}
RO_INLINE vf vf_canon(vf x) {
    const vf nan = _mm512_castsi512_ps(_mm512_set1_epi32((int)RO_QNAN_BITS));
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
}
RO_INLINE float vf_fold(vf x) {
    return fold8(_mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
}

#elif defined(RO_ISA_avx2)

enum { VW = 8 };
typedef __m256 vf;

typedef __m256i vf_mask;

RO_INLINE vf_mask vf_first(int64_t n) {
    const int count = n >= VW ? VW : n <= 0 ? 0 : (int)n;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
RO_INLINE vf vf_set1(float x) {
    return _mm256_set1_ps(x);
}
RO_INLINE vf vf_load(const float *p) {
    return _mm256_loadu_ps(p);
}
RO_INLINE void vf_store(float *p, vf x) {
    _mm256_storeu_ps(p, x);
}
RO_INLINE vf vf_load_mask(const float *p, vf_mask mask) {
    return _mm256_maskload_ps(p, mask);
}
RO_INLINE vf vf_load_n(const float *p, int64_t n) {
    return n >= VW ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, vf_first(n));
}
RO_INLINE void vf_store_n(float *p, vf x, int64_t n) {
    if (n >= VW)
        _mm256_storeu_ps(p, x);
    else
        _mm256_maskstore_ps(p, vf_first(n), x);
}
RO_INLINE vf vf_add(vf a, vf b) {
    return _mm256_add_ps(a, b);
}
RO_INLINE vf vf_sub(vf a, vf b) {
    return _mm256_sub_ps(a, b);
}
RO_INLINE vf vf_mul(vf a, vf b) {
    return _mm256_mul_ps(a, b);
}
RO_INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm256_fmadd_ps(a, b, c);
}
RO_INLINE vf vf_canon(vf x) {
    const vf nan = _mm256_castsi256_ps(_mm256_set1_epi32((int)RO_QNAN_BITS));
    return _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
RO_INLINE float vf_fold(vf x) {
    return fold8(x);
}

#elif defined(RO_ISA_neon)

enum { VW = 4 };
typedef float32x4_t vf;
typedef int64_t vf_mask;

RO_INLINE vf_mask vf_first(int64_t n) {
    return n;
}
RO_INLINE vf vf_set1(float x) {
    return vdupq_n_f32(x);
}
RO_INLINE vf vf_load(const float *p) {
    return vld1q_f32(p);
}
RO_INLINE void vf_store(float *p, vf x) {
    vst1q_f32(p, x);
}
RO_INLINE vf vf_load_n(const float *p, int64_t n) {
    vf x = vdupq_n_f32(0.0f);
    if (n >= VW)
        return vld1q_f32(p);
    x = n > 0 ? vsetq_lane_f32(p[0], x, 0) : x;
    x = n > 1 ? vsetq_lane_f32(p[1], x, 1) : x;
    return n > 2 ? vsetq_lane_f32(p[2], x, 2) : x;
}
RO_INLINE vf vf_load_mask(const float *p, vf_mask mask) {
    return vf_load_n(p, mask);
}
RO_INLINE void vf_store_n(float *p, vf x, int64_t n) {
    if (n >= VW) {
        vst1q_f32(p, x);
        return;
    }
    if (n > 0)
        vst1q_lane_f32(p, x, 0);
    if (n > 1)
        vst1q_lane_f32(p + 1, x, 1);
    if (n > 2)
        vst1q_lane_f32(p + 2, x, 2);
}
RO_INLINE vf vf_add(vf a, vf b) {
    return vaddq_f32(a, b);
}
RO_INLINE vf vf_sub(vf a, vf b) {
    return vsubq_f32(a, b);
}
RO_INLINE vf vf_mul(vf a, vf b) {
    return vmulq_f32(a, b);
}
RO_INLINE vf vf_fma(vf a, vf b, vf c) {
    return vfmaq_f32(c, a, b);
}
RO_INLINE vf vf_canon(vf x) {
    return vbslq_f32(vceqq_f32(x, x), x, vreinterpretq_f32_u32(vdupq_n_u32(RO_QNAN_BITS)));
}
RO_INLINE float vf_fold(vf x) {
    const float32x2_t y = vadd_f32(vget_low_f32(x), vget_high_f32(x));
    return vget_lane_f32(y, 0) + vget_lane_f32(y, 1);
}

#else

enum { VW = 1 };
typedef float vf;
typedef int vf_mask;

RO_INLINE vf_mask vf_first(int64_t n) {
    return n >= 1;
}
RO_INLINE vf vf_set1(float x) {
    return x;
}
RO_INLINE vf vf_load(const float *p) {
    return *p;
}
RO_INLINE void vf_store(float *p, vf x) {
    *p = x;
}
RO_INLINE vf vf_load_mask(const float *p, vf_mask mask) {
    return mask ? *p : 0.0f;
}
RO_INLINE vf vf_load_n(const float *p, int64_t n) {
    return n >= 1 ? *p : 0.0f;
}
RO_INLINE void vf_store_n(float *p, vf x, int64_t n) {
    if (n >= 1)
        *p = x;
}
RO_INLINE vf vf_add(vf a, vf b) {
    return a + b;
}
RO_INLINE vf vf_sub(vf a, vf b) {
    return a - b;
}
RO_INLINE vf vf_mul(vf a, vf b) {
    return a * b;
}
RO_INLINE vf vf_fma(vf a, vf b, vf c) {
    return ro_fma(a, b, c);
}
RO_INLINE vf vf_canon(vf x) {
    return ro_canon(x);
}
RO_INLINE float vf_fold(vf x) {
    return x;
}

#endif

/* Stands below a kernel: its entry in the table of the instruction set, under the operator's name
 * in operators.def. table.c needs an entry of every operator, or linking fails. */
#define RO_KERNEL(name, ...) const ro_kernel RO_NAME(ro_kernel_##name) = {__VA_ARGS__};

/* The same for a fused function, which is no operator: a member of ro_table. */
#define RO_FUSED(member, function) RO_FUSED_TYPE(member) RO_NAME(ro_fused_##member) = function;
#define RO_FUSED_TYPE(member)      const __typeof__(((ro_table *)0)->member)

/* Returns the number of elements of input i. */
RO_INLINE int64_t in_numel(const ro_job *job, int i) {
    return ro_shape_numel(&job->call->input[i]);
}
RO_INLINE float attr_f32(const ro_job *job, int i) {
    return ro_from_bits((uint32_t)job->call->attr[i]);
}
RO_INLINE int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}
RO_INLINE int64_t min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}
RO_INLINE int64_t max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

#endif
