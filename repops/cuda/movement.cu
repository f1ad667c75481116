/* Data movement, SPEC.md section 5, and rotary positions, section 13. */
#include "repops/cuda/cuda.cuh"

void ro_cuda_add_movement(ro_cuda_operator **table) {
    (void)table;
}
