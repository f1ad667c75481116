/* Fixed products by wgmma, of cards that have it: those of compute capability 9.0. */
#ifndef REPOPS_CUDA_WGMMA_RUN_CUH
#define REPOPS_CUDA_WGMMA_RUN_CUH

#include "repops/cuda/gemm/fixed_run.cuh"
#include "repops/cuda/gemm/linear.cuh"

/* Packs both operands, then multiplies: the bits of fixed_run. */
ro_status ro_wgmma_run(ro_cuda *d, const fixed_problem &p, const fixed_lines &a,
                       const fixed_lines &b, const gemm_out &out);
ro_status ro_wgmma_run(ro_cuda *d, const fixed_problem &p, const fixed_lines &a,
                       const fixed_lines &b, const linear_out &out);

#endif
