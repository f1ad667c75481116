/* Optimizers, SPEC.md section 9. */
#include "repops/cuda/cuda.cuh"

void ro_cuda_add_optimizer(ro_cuda_operator **table) {
    (void)table;
}
