/* Packs an operand of a fixed product as repops/cuda/gemm does, by the same kernel. */
#ifndef BENCH_CUDA_PACKING_H
#define BENCH_CUDA_PACKING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `lines` of `steps` numbers; along: those of a line lie side by side, else those of a step. */
typedef struct {
    const float *data;
    int64_t lines, steps;
    int along;
} packing_operand;

/* `packed` has room for it. Returns before it is done; 0 on failure. */
int packing_run(int bits, const packing_operand *x, void *packed);
int packing_wait(void);

#ifdef __cplusplus
}
#endif
#endif
