/* The kernels for products by one thread, which the tables in gemm.c list. */
#ifndef REPOPS_CPU_GEMM_KERNEL_H
#define REPOPS_CPU_GEMM_KERNEL_H

#include "repops/cpu/gemm/gemm.h"

/* `run` computes a product that `takes` accepts; if `ends`, it calls ro_gemm_end, too. */
typedef struct {
    const char *name;
    int (*takes)(const gemm *g);
    int64_t (*workspace)(const gemm *g); /* floats that `run` needs; NULL: 0 */
    void (*run)(const gemm *g, float *workspace);
    int ends;
} gemm_kernel;

extern const gemm_kernel RO_NAME(ro_gemm_small), RO_NAME(ro_gemm_windowed), RO_NAME(ro_gemm_chunks),
    RO_NAME(ro_gemm_dots), RO_NAME(ro_gemm_turned), RO_NAME(ro_gemm_sweep), RO_NAME(ro_gemm_blocks);
/* For b of 16 bits (g->narrow). */
extern const gemm_kernel RO_NAME(ro_gemm_dots16), RO_NAME(ro_gemm_sweep16),
    RO_NAME(ro_gemm_widened);

/* Kernels for a b of f32, and for one of 16 bits, in the order in which they are asked. The last
 * one takes all products, and NULL follows it. */
enum { GEMM_KERNELS_MOST = 8 };
extern const gemm_kernel *const RO_NAME(ro_gemm_kernels)[2][GEMM_KERNELS_MOST];

/* Returns the kernel that computes g: the first one that takes it, or ro_gemm_blocks if b is packed
 * panels (gemm_packed.h). All kernels give the same bits. */
RO_INLINE const gemm_kernel *choose_kernel(const gemm *g) {
    const gemm_kernel *const *kernel = RO_NAME(ro_gemm_kernels)[g->narrow.data != NULL];
    if (g->b_col == 0)
        return &RO_NAME(ro_gemm_blocks);
    while (!(*kernel)->takes(g))
        kernel++;
    return *kernel;
}

RO_INLINE int64_t kernel_workspace(const gemm_kernel *kernel, const gemm *g) {
    return kernel->workspace ? kernel->workspace(g) : 0;
}

RO_INLINE void run_kernel(const gemm_kernel *kernel, const gemm *g, float *workspace) {
    kernel->run(g, workspace);
    if (g->y && !kernel->ends)
        RO_NAME(ro_gemm_end)(g, 0, g->m, 0, g->n);
}

/* Turns a product with a single, contiguous column of c into the transposed product, one row of
 * c. */
RO_INLINE gemm as_row(const gemm *g) {
    gemm t = *g;
    if (g->n != 1 || g->c_row != 1 || g->mask != RO_MASK_NONE || g->c_chunk || g->narrow.data)
        return t;
    t.m = 1, t.n = g->m, t.c_row = g->m, t.y = NULL, t.a_all = 0;
    t.a = g->b, t.a_row = g->b_col, t.a_col = g->b_row;
    t.b = g->a, t.b_row = g->a_col, t.b_col = g->a_row;
    return t;
}

#endif
