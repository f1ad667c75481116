/* Fixed products by wgmma, for cards of compute capability 9.0. */
#ifndef REPOPS_CUDA_WGMMA_RUN_CUH
#define REPOPS_CUDA_WGMMA_RUN_CUH

#include "repops/cuda/gemm/fixed_run.cuh"
#include "repops/cuda/gemm/linear.cuh"

/* Packs operands that are not kept, then multiplies. Gives the bits of fixed_run. */
ro_status ro_wgmma_run(ro_cuda *d, const fixed_problem &p, const fixed_lines &a,
                       const fixed_lines &b, const fixed_kept &kept, const gemm_out &out);
ro_status ro_wgmma_run(ro_cuda *d, const fixed_problem &p, const fixed_lines &a,
                       const fixed_lines &b, const fixed_kept &kept, const linear_out &out);

/* Return the bytes of a packed operand, and pack it. */
size_t ro_wgmma_packed_size(const fixed_problem &p, ro_packed_operand side);
ro_status ro_wgmma_pack(ro_cuda *d, const fixed_problem &p, ro_packed_operand side,
                        const fixed_lines &lines, void *to);

#endif
