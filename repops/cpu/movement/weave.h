/* Turns planes of an image into interleaved pixels. */
#ifndef REPOPS_CPU_WEAVE_H
#define REPOPS_CPU_WEAVE_H

#include "repops/cpu/isa.h"

#if defined(RO_ISA_avx512)
enum { PLANES = 3 };

/* Interleaves three lines of f32, `next` apart: planes of an image become pixels. Returns how many
 * elements of each line are done, a multiple of VW. Bits are kept. */
RO_INLINE int64_t weave(const float *x, int64_t next, int64_t rows, float *out) {
    int32_t lane[PLANES][VW];
    __mmask16 last[PLANES] = {0};
    __m512i from[PLANES];
    int64_t r = 0;
    for (int e = 0; e < PLANES * VW; e++) { /* lane numbers from VW on select the second line */
        lane[e / VW][e % VW] = e / PLANES + (e % PLANES == 1 ? VW : 0);
        last[e / VW] |= (__mmask16)((e % PLANES == 2) << e % VW);
    }
    for (int v = 0; v < PLANES; v++)
        from[v] = _mm512_loadu_si512(lane[v]);
    for (; r + VW <= rows; r += VW) {
        const vf first = vf_load(x + r), second = vf_load(x + next + r);
        const vf third = vf_load(x + 2 * next + r);
        RO_UNROLL
        for (int v = 0; v < PLANES; v++) {
            const vf two = _mm512_permutex2var_ps(first, from[v], second);
            vf_store(out + r * PLANES + v * VW,
                     _mm512_mask_permutexvar_ps(two, last[v], from[v], third));
        }
    }
    return r;
}
#else
enum { PLANES = 0 };
RO_INLINE int64_t weave(const float *x, int64_t next, int64_t rows, float *out) {
    (void)x, (void)next, (void)rows, (void)out;
    return 0;
}
#endif

#endif
