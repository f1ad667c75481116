/* Products whose b has elements of 16 bits: parts of b are widened to f32, which is exact, and
 * multiplied as any others. The memory for them does not grow with b. */
#ifndef REPOPS_CPU_GEMM_WIDENED_H
#define REPOPS_CPU_GEMM_WIDENED_H

#include "repops/cpu/gemm/gemm.h"

/* Floats that ro_gemm_widened needs. */
int64_t RO_NAME(ro_gemm_widened_workspace)(const gemm *g);
/* As ro_gemm, of g->narrow in place of g->b; g has no y, no c_chunk, and beta 0. */
void RO_NAME(ro_gemm_widened)(const gemm *g, float *workspace);

#endif
