/* Stores of whole vectors. Between the stores of a loop, the compiler may split those of
 * ro_store. */
#ifndef REPOPS_CUDA_STORE_CUH
#define REPOPS_CUDA_STORE_CUH

#include "repops/cuda/ptx.cuh"
#include "repops/cuda/rows/rows.cuh"

template <int N> RO_DEVICE void ro_store_whole(float *p, const ro_pack<N> &v) {
    if constexpr (N == 4)
        ro_store_fours(p, make_float4(v.at[0], v.at[1], v.at[2], v.at[3]));
    else
        ro_store<N>(p, v);
}

#endif
