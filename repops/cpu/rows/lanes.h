/* Sums over the lanes of a row reduction, SPEC.md section 3.2. */
#ifndef REPOPS_CPU_LANES_H
#define REPOPS_CPU_LANES_H

#include "repops/cpu/isa.h"

/* Vectors of all lanes, and how many of them stay in registers besides what the terms need. */
enum { VECTORS = RO_LANES / VW };
#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)
enum { AT_ONCE = 8 };
#elif defined(RO_ISA_neon)
enum { AT_ONCE = 16 };
#else
enum { AT_ONCE = VECTORS };
#endif

/* The operands of terms; each kind of sum uses some of them. */
typedef struct {
    const float *a, *b, *c;
    float mean, rstd;
} terms;

/* add_terms adds terms i, i + 1, ... to the lanes of a vector; add_term adds one to one lane. */
typedef vf add_terms(const terms *t, int64_t i, vf lane);
typedef float add_term(const terms *t, int64_t i, float lane);

RO_INLINE float fold(const float *x) {
    vf lane[VECTORS];
    RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        lane[v] = vf_load(x + v * VW);
    RO_UNROLL
    for (int w = VECTORS / 2; w > 0; w /= 2) {
        RO_UNROLL
        for (int v = 0; v < w; v++)
            lane[v] = vf_add(lane[v], lane[v + w]);
    }
    return ro_canon(vf_fold(lane[0]));
}

/* Returns the sum of n terms. The last ones reach only the first lanes. The others must not even
 * add fma(0, 0, lane): that would turn the -0 of an underflow into +0. */
RO_INLINE float lane_reduce(const terms *t, int64_t n, add_terms *add, add_term *add_one) {
    const int64_t whole = n / RO_LANES * RO_LANES;
    float x[RO_LANES];
    for (int v = 0; v < VECTORS; v += AT_ONCE) {
        vf lane[AT_ONCE];
        RO_UNROLL
        for (int k = 0; k < AT_ONCE; k++)
            lane[k] = vf_set1(0.0f);
        for (int64_t i = v * VW; i < whole; i += RO_LANES) {
            RO_UNROLL
            for (int k = 0; k < AT_ONCE; k++)
                lane[k] = add(t, i + k * VW, lane[k]);
        }
        RO_UNROLL
        for (int k = 0; k < AT_ONCE; k++)
            vf_store(x + (v + k) * VW, lane[k]);
    }
    for (int64_t i = 0; i < n - whole; i++)
        x[i] = add_one(t, whole + i, x[i]);
    return fold(x);
}

/* ---- sums of values, and of products ---- */

RO_INLINE vf add_values(const terms *t, int64_t i, vf lane) {
    return vf_add(lane, vf_load(t->a + i));
}

RO_INLINE float add_value(const terms *t, int64_t i, float lane) {
    return lane + t->a[i];
}

RO_INLINE float lane_sum(const float *a, int64_t n) {
    return lane_reduce(&(terms){.a = a}, n, add_values, add_value);
}

RO_INLINE vf add_products(const terms *t, int64_t i, vf lane) {
    return vf_fma(vf_load(t->a + i), vf_load(t->b + i), lane);
}

RO_INLINE float add_product(const terms *t, int64_t i, float lane) {
    return ro_fma(t->a[i], t->b[i], lane);
}

RO_INLINE float lane_dot(const float *a, const float *b, int64_t n) {
    return lane_reduce(&(terms){.a = a, .b = b}, n, add_products, add_product);
}

/* ---- squares of deviations from the mean ---- */

RO_INLINE vf add_squares(const terms *t, int64_t i, vf lane) {
    const vf d = vf_sub(vf_load(t->a + i), vf_set1(t->mean));
    return vf_fma(d, d, lane);
}

RO_INLINE float add_square(const terms *t, int64_t i, float lane) {
    const float d = t->a[i] - t->mean;
    return ro_fma(d, d, lane);
}

/* ---- the gradient of a norm: a is dy, b gamma, c x ---- */

RO_INLINE vf add_ln_terms(const terms *t, int64_t i, vf lane) {
    const vf g = vf_mul(vf_load(t->a + i), vf_load(t->b + i));
    const vf d = vf_sub(vf_load(t->c + i), vf_set1(t->mean));
    return vf_fma(g, vf_mul(d, vf_set1(t->rstd)), lane);
}

RO_INLINE float add_ln_term(const terms *t, int64_t i, float lane) {
    return ro_fma(t->a[i] * t->b[i], (t->c[i] - t->mean) * t->rstd, lane);
}

RO_INLINE vf add_rms_terms(const terms *t, int64_t i, vf lane) {
    const vf g = vf_mul(vf_load(t->a + i), vf_load(t->b + i));
    return vf_fma(g, vf_mul(vf_load(t->c + i), vf_set1(t->rstd)), lane);
}

RO_INLINE float add_rms_term(const terms *t, int64_t i, float lane) {
    return ro_fma(t->a[i] * t->b[i], t->c[i] * t->rstd, lane);
}

#endif
