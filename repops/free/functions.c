/* Functions of one element, and their gradients, SPEC.md section 6. */
#include "repops/free/activations.h"
#include "repops/free/writer.h"

#define KERNEL(name)                                                                               \
    RO_INLINE void name##_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t, \
                               order o) {                                                          \
        run_formula(name##_of, (operands){0}, job, first, last, t, o);                             \
    }                                                                                              \
    static void name##_all(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {   \
        by_order(name##_body, job, first, last, t);                                                \
    }

KERNEL(exp)
KERNEL(log)
KERNEL(tanh)
KERNEL(erf)
KERNEL(sigmoid)
KERNEL(silu)
KERNEL(gelu)
KERNEL(gelu_erf)
KERNEL(tanh_grad)
KERNEL(sigmoid_grad)
KERNEL(erf_grad)
KERNEL(silu_grad)
KERNEL(gelu_grad)
KERNEL(gelu_erf_grad)

const ro_free_kernel *RO_FREE_NAME(ro_free_functions)(int op) {
    static const ro_free_kernel kernel[RO_OP_END] = {
        [RO_OP_EXP] = {.range = exp_all},
        [RO_OP_LOG] = {.range = log_all},
        [RO_OP_TANH] = {.range = tanh_all},
        [RO_OP_ERF] = {.range = erf_all},
        [RO_OP_SIGMOID] = {.range = sigmoid_all},
        [RO_OP_SILU] = {.range = silu_all},
        [RO_OP_GELU] = {.range = gelu_all},
        [RO_OP_GELU_ERF] = {.range = gelu_erf_all},
        [RO_OP_TANH_GRAD] = {.range = tanh_grad_all},
        [RO_OP_SIGMOID_GRAD] = {.range = sigmoid_grad_all},
        [RO_OP_ERF_GRAD] = {.range = erf_grad_all},
        [RO_OP_SILU_GRAD] = {.range = silu_grad_all},
        [RO_OP_GELU_GRAD] = {.range = gelu_grad_all},
        [RO_OP_GELU_ERF_GRAD] = {.range = gelu_erf_grad_all},
    };
    return free_kernel_in(kernel, op);
}
