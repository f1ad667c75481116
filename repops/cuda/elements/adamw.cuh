/* Moments of AdamW, SPEC.md section 9. */
#ifndef REPOPS_CUDA_ADAMW_CUH
#define REPOPS_CUDA_ADAMW_CUH

#include "repops/cuda/cuda.cuh"

RO_DEVICE float ro_next_m(float m, float gradient, float clip, float beta) {
    return ro_canon(ro_fma(beta, m, (1.0f - beta) * (gradient * clip)));
}

RO_DEVICE float ro_next_v(float v, float gradient, float clip, float beta) {
    const float clipped = gradient * clip;
    return ro_canon(ro_fma(beta, v, (1.0f - beta) * (clipped * clipped)));
}

#endif
