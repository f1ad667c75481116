/* One step of AdamW for a range of elements, SPEC.md section 9. */
#ifndef REPOPS_CPU_ADAMW_H
#define REPOPS_CPU_ADAMW_H

#include "repops/cpu/isa.h"

RO_INLINE float next_m(float m, float gc, float beta, float rest) {
    return ro_canon(ro_fma(beta, m, rest * gc));
}

RO_INLINE float next_v(float v, float gc, float beta, float rest) {
    return ro_canon(ro_fma(beta, v, rest * (gc * gc)));
}

RO_INLINE ro_adamw_scalars scalars_of(const float *c1, const float *c2, const float *lr, float eps,
                                      float decay) {
    return (ro_adamw_scalars){1.0f / *c1, 1.0f / *c2, *lr, eps, decay};
}

/* Computes w, m and v of elements [first, last); outputs may be the inputs. */
RO_INLINE void adamw_elements(const ro_adamw_job *j, int64_t first, int64_t last) {
    const float *w = j->w + first, *m = j->m + first, *v = j->v + first, *g = j->gradient + first;
    float *w_out = j->w_out + first, *m_out = j->m_out + first, *v_out = j->v_out + first;
    const float clip = *j->clip, beta1 = j->beta1, beta2 = j->beta2;
    const float rest1 = 1.0f - beta1, rest2 = 1.0f - beta2;
    const ro_adamw_scalars p = scalars_of(j->c1, j->c2, j->rate, j->eps, j->decay);
    RO_SAME_INDEX
    for (int64_t i = 0; i < last - first; i++) {
        const float gc = g[i] * clip, wi = w[i];
        const float mi = next_m(m[i], gc, beta1, rest1), vi = next_v(v[i], gc, beta2, rest2);
        m_out[i] = mi;
        v_out[i] = vi;
        w_out[i] = ro_adamw_w(wi, mi, vi, p);
    }
}

enum { PIECE = 16384 }; /* elements that are worth waking a thread for */

/* Returns how many elements a piece has: PIECE at least. */
RO_INLINE int64_t piece_of(ro_ctx *ctx, int64_t elements) {
    return max_i64(PIECE, elements / (8 * ro_ctx_threads(ctx)) / 64 * 64);
}

#endif
