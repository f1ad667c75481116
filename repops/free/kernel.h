/* Free kernels: operators in binary32 or binary64, in the order of a profile. Every file of this
 * folder is compiled once per instruction set and type, with -DRO_REAL=f32 -DRO_IS_f32 or the same
 * of f64; `real` is that type. Nothing outside relies on the bits. */
#ifndef REPOPS_FREE_KERNEL_H
#define REPOPS_FREE_KERNEL_H

#include "repops/cpu/isa.h"
#include "repops/src/free.h"

#if defined(RO_IS_f32)
typedef float real;
#define RO_UNIT 0x1p-24
#else
typedef double real;
#define RO_UNIT 0x1p-53 /* the unit roundoff of `real` */
#endif

#define RO_FREE_NAME(name) RO_PASTE(RO_PASTE(name, RO_REAL), RO_ISA)

/* The free kernels of a family: see table.c. */
ro_free_find RO_FREE_NAME(ro_free_products), RO_FREE_NAME(ro_free_conv);
ro_free_find RO_FREE_NAME(ro_free_elementwise), RO_FREE_NAME(ro_free_functions);
ro_free_find RO_FREE_NAME(ro_free_rows), RO_FREE_NAME(ro_free_columns);
ro_free_find RO_FREE_NAME(ro_free_norm), RO_FREE_NAME(ro_free_softmax);
ro_free_find RO_FREE_NAME(ro_free_attention), RO_FREE_NAME(ro_free_optimizer);
ro_free_find RO_FREE_NAME(ro_free_pooling), RO_FREE_NAME(ro_free_batchnorm);
ro_free_find RO_FREE_NAME(ro_free_embedding), RO_FREE_NAME(ro_free_rope);

/* Whether a * b + c can be one operation here. */
#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__) || defined(__s390x__)
#define RO_HAS_FMA 1
#else
#define RO_HAS_FMA 0
#endif

/* a * b + c, rounded once if `contract`, which is a constant where the call is inlined. */
RO_INLINE real free_mul_add(real a, real b, real c, int contract) {
#if RO_HAS_FMA && defined(RO_IS_f32)
    return contract ? __builtin_fmaf(a, b, c) : a * b + c;
#elif RO_HAS_FMA
    return contract ? __builtin_fma(a, b, c) : a * b + c;
#else
    (void)contract;
    return a * b + c;
#endif
}

RO_INLINE void ro_emit(ro_emitter *t, int64_t first, const real *y, const double *bound,
                       int64_t n) {
#if defined(RO_IS_f32)
    (void)bound;
    ro_emit_f32(t, first, y, n);
#else
    ro_emit_f64(t, first, y, bound, n);
#endif
}

#endif
