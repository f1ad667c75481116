/* The unit of a loop over elements: two vectors side by side, or one float where compilers
 * vectorise. */
#ifndef REPOPS_CPU_WIDE_H
#define REPOPS_CPU_WIDE_H

#include "repops/cpu/isa.h"

#if defined(RO_ISA_avx512)
#include "repops/cpu/elements/functions_avx512.h"
#elif defined(RO_ISA_avx2)
#include "repops/cpu/elements/functions_avx2.h"
#elif defined(RO_ISA_neon)
#include "repops/cpu/elements/functions_neon.h"
#endif

/* ---- two vectors side by side: gcc keeps their instructions in this order, so that one vector's
 * instructions fill the latency of the other's ---- */

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
/* Loads the first n < WIDE elements, and +0 in the other lanes. */
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

/* fast_exp and fast_log return the bits of wide_exp and wide_log, which run only if a lane is a
 * special case. Below -104 exp(x) is +0. */
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

#define WIDE_SAME_INDEX /* needless for intrinsics */

/* Prefetches 2 KiB ahead, for a loop whose arithmetic takes as long as memory does: the hardware's
 * own prefetches come too late for it. Addresses past the end of an array do no harm. */
RO_INLINE void fetch_ahead(const float *p) {
    for (size_t line = 0; line < WIDE * sizeof *p; line += 64)
        __builtin_prefetch((const void *)((uintptr_t)p + 2048 + line));
}

#else

#define vf_max              ro_max
#define vf_cut_below        ro_cut_below
#define vf_unless_nan       ro_unless_nan

/* Compilers vectorise loops over single floats. */
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

/* relu(x), SPEC.md section 6. */
RO_INLINE vf vf_relu(vf x) {
    return vf_unless_nan(x, vf_cut_below(x, vf_set1(0.0f)));
}

#endif
