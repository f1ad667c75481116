/* Packs an operand of a fixed product as repops/cuda/gemm does, by the same kernel. */
#ifndef BENCH_CUDA_PACKING_H
#define BENCH_CUDA_PACKING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An operand of `lines` lines (rows of a, columns of b) of `steps` numbers. along: nonzero if the
 * numbers of a line are adjacent, else those of a step are. */
typedef struct {
    const float *data;
    int64_t lines, steps;
    int along;
} packing_operand;

/* Packs x into `packed`, which must be large enough. Returns before it is done; 0 on failure. */
int packing_run(int bits, const packing_operand *x, void *packed);
int packing_wait(void);

#ifdef __cplusplus
}
#endif
#endif
