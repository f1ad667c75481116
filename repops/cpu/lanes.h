/* Sums over the lanes of a row reduction, SPEC.md section 3.2: a sum of terms, and a sum of
 * products. */
#ifndef REPOPS_CPU_LANES_H
#define REPOPS_CPU_LANES_H

#include "repops/cpu/isa.h"

enum { VECTORS = RO_LANES / VW };

/* Whole rounds of the lanes stay in registers. n is a multiple of RO_LANES. */
RO_INLINE void whole_sum(const float *t, int64_t n, float *x) {
    vf lane[VECTORS];
    RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        lane[v] = vf_set1(0.0f);
    for (int64_t i = 0; i < n; i += RO_LANES) {
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++)
            lane[v] = vf_add(lane[v], vf_load(t + i + v * VW));
    }
    RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        vf_store(x + v * VW, lane[v]);
}

RO_INLINE void whole_dot(const float *p, const float *q, int64_t n, float *x) {
    vf lane[VECTORS];
    RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        lane[v] = vf_set1(0.0f);
    for (int64_t i = 0; i < n; i += RO_LANES) {
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++)
            lane[v] = vf_fma(vf_load(p + i + v * VW), vf_load(q + i + v * VW), lane[v]);
    }
    RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        vf_store(x + v * VW, lane[v]);
}

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

/* The last terms reach only the first lanes. The others must not even see fma(0, 0, lane): that
 * would turn the -0 of an underflow into +0. */
RO_INLINE float lane_sum(const float *t, int64_t n) {
    const int64_t whole = n / RO_LANES * RO_LANES;
    float x[RO_LANES] = {0};
    if (whole > 0)
        whole_sum(t, whole, x);
    for (int64_t i = 0; i < n - whole; i++)
        x[i] = x[i] + t[whole + i];
    return fold(x);
}

RO_INLINE float lane_dot(const float *p, const float *q, int64_t n) {
    const int64_t whole = n / RO_LANES * RO_LANES;
    float x[RO_LANES] = {0};
    if (whole > 0)
        whole_dot(p, q, whole, x);
    for (int64_t i = 0; i < n - whole; i++)
        x[i] = ro_fma(p[whole + i], q[whole + i], x[i]);
    return fold(x);
}

#endif
