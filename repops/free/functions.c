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
    }                                                                                              \
    RO_FREE_KERNEL(name, .range = name##_all)

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
