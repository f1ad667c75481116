/* Weights of FP32 layers that stay packed (repops/packed.h). */
#ifndef REPOPS_CPU_GEMM_PACKED_H
#define REPOPS_CPU_GEMM_PACKED_H

#include "repops/cpu/gemm/gemm.h"
#include "repops/src/packed.h"

/* The members of ro_packing, for FP32 weights. */
size_t RO_NAME(ro_gemm_packed_size)(const ro_linear_layer *layer);
void RO_NAME(ro_gemm_pack)(ro_ctx *ctx, const ro_linear_layer *layer, const float *w, void *to);
int RO_NAME(ro_gemm_fits)(const ro_linear_layer *layer, const void *packed);
/* Returns the panels, which a gemm takes as its b, with b_col = 0: NR columns each, step by step
 * through all of k. */
const float *RO_NAME(ro_gemm_panels)(const void *packed);

/* Runs ro_linear with operands that may be transposed (x) or packed (w). */
ro_status RO_NAME(ro_linear_kept)(ro_ctx *ctx, const ro_linear_job *job,
                                  const ro_linear_operands *in);

#endif
