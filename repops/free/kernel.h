/* Free kernels: operators in binary32 or binary64, in the order of a profile. Every file of this
 * folder is compiled once per instruction set and type, with -DRO_REAL=f32 -DRO_IS_f32 or the same
 * with f64; `real` (real.h) is that type. Nothing outside relies on the bits. */
#ifndef REPOPS_FREE_KERNEL_H
#define REPOPS_FREE_KERNEL_H

#include "repops/cpu/isa.h"
#include "repops/free/real.h"
#include "repops/src/free.h"

#define RO_FREE_NAME(name) RO_PASTE(RO_PASTE(name, RO_REAL), RO_ISA)

/* Stands below a kernel: its entry, under the operator's name in operators.def. table.c needs an
 * entry of every operator that is FREE there, or linking fails. */
#define RO_FREE_KERNEL(name, ...)                                                                  \
    const ro_free_kernel RO_FREE_NAME(ro_free_kernel_##name) = {__VA_ARGS__};

RO_INLINE void ro_emit(ro_emitter *t, int64_t first, const real *y, const double *bound,
                       int64_t n) {
#if defined(RO_IS_f32)
    (void)bound;
    ro_emit_f32(t, first, y, n);
#else
    ro_emit_f64(t, first, y, bound, n);
#endif
}

#endif
