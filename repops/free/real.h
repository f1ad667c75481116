/* The type that free kernels compute in: binary32 with RO_IS_f32, else binary64, which the
 * reference with bounds (repops/ref/bounded.c) uses, too. */
#ifndef REPOPS_FREE_REAL_H
#define REPOPS_FREE_REAL_H

#include "repops/src/math.h"

#if defined(RO_IS_f32)
typedef float real;
#define RO_UNIT 0x1p-24
#else
typedef double real;
#define RO_UNIT 0x1p-53 /* the unit roundoff of `real` */
#endif

/* A number nearer to 0 than this many bounds may have another sign in another profile: two and a
 * little more. In kernels it is twice that, as they must report every number that the reference
 * reports. */
#if defined(RO_REAL)
#define RO_SIGN_REACH 4.1
#else
#define RO_SIGN_REACH 2.05
#endif

/* Whether a * b + c can be a single operation here. */
#if defined(__CUDACC__) || defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__) ||     \
    defined(__s390x__)
#define RO_HAS_FMA 1
#else
#define RO_HAS_FMA 0
#endif

/* Returns a * b + c, rounded once if `contract`, which is a constant where the call is inlined. */
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

/* Returns E of SPEC 14.3, where e bounds the error of every profile's value: twice e, and a margin
 * for rounding in e itself, here and in the reference of SPEC 14.5. */
RO_INLINE double free_bound(double e) {
    return 0x1.01p1 * e;
}

#endif
