/* Functions that the CUDA backend does not have yet. */
#include "repops/cuda/cuda.cuh"

static ro_status missing(ro_cuda *d, const char *what) {
    return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: there is no %s yet", what);
}

ro_status ro_cuda_attention_forward(ro_cuda *d, const ro_attention_job *) {
    return missing(d, "attention");
}
ro_status ro_cuda_attention_backward(ro_cuda *d, const ro_attention_grad_job *) {
    return missing(d, "attention");
}
