/* Functions that compute in binary64: SPEC.md section 2.9. */
#include "repops/cuda/elements/functions.cuh"
#include "repops/op_number.h"
#include "repops/src/wide_functions.h"

#define FUNCTION(name)                                                                             \
    static ro_status name##_of(ro_cuda *d, const ro_call *call, const void *const *in,             \
                               void *out) {                                                        \
        const float *x = static_cast<const float *>(in[0]);                                        \
        return map<float>(d, call, out, [=] __device__(int64_t i) { return ro_##name(x[i]); });    \
    }                                                                                              \
    RO_CUDA_KERNEL(name, name##_of)
RO_TURNED_FUNCTIONS(FUNCTION)
RO_WIDE_FUNCTIONS(FUNCTION)

#define FUNCTION_OF_TWO(name)                                                                      \
    static ro_status name##_of(ro_cuda *d, const ro_call *call, const void *const *in,             \
                               void *out) {                                                        \
        const float *a = static_cast<const float *>(in[0]),                                        \
                    *b = static_cast<const float *>(in[1]);                                        \
        const ro_divider period(in_numel(call, 1));                                                \
        return map<float>(d, call, out, [=] __device__(int64_t i) {                                \
            return ro_##name(a[i], b[period.remainder(i)]);                                        \
        });                                                                                        \
    }                                                                                              \
    RO_CUDA_KERNEL(name, name##_of)
FUNCTION_OF_TWO(atan2)
FUNCTION_OF_TWO(pow)
