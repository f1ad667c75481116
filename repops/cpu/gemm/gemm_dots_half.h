/* Products of few rows of a with a b of 16-bit elements that lies along k, as files of the family
 * of Llama have their weights: memory decides how long they take. */
#ifndef REPOPS_CPU_GEMM_DOTS_HALF_H
#define REPOPS_CPU_GEMM_DOTS_HALF_H

#include "repops/cpu/gemm/gemm.h"

/* Whether this is a product of this kind; it needs no workspace. */
int RO_NAME(ro_gemm_dots_half_fits)(const gemm *g, int dtype);
/* Returns whether it was one. b has the strides of g, whose own b is ignored. */
int RO_NAME(ro_gemm_dots_half)(const gemm *g, const uint16_t *b, int dtype);

#endif
