/* Products whose b has elements of 16 bits: blocks of b are widened to f32, which is exact, and
 * multiplied as any others. The memory for a block does not grow with b. */
#ifndef REPOPS_CPU_GEMM_WIDENED_H
#define REPOPS_CPU_GEMM_WIDENED_H

#include "repops/cpu/gemm/gemm.h"

/* b as it lies, with the strides of gemm.b_row and gemm.b_col; gemm.b is ignored. */
typedef struct {
    const uint16_t *data;
    int dtype; /* RO_BF16 or RO_F16 */
} narrow_matrix;

/* Floats that ro_gemm_widened needs, of whose b this is the type. */
int64_t RO_NAME(ro_gemm_widened_workspace)(const gemm *g, int dtype);
/* As ro_gemm; g has no y, no c_chunk, and beta 0. */
void RO_NAME(ro_gemm_widened)(const gemm *g, narrow_matrix b, float *workspace);

#endif
