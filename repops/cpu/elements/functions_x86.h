/* Vector operations that functions_avx2.h and functions_avx512.h share. */
#ifndef REPOPS_CPU_FUNCTIONS_X86_H
#define REPOPS_CPU_FUNCTIONS_X86_H

#include "repops/cpu/isa.h"

RO_INLINE float most8(__m256 x) {
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}

#endif
