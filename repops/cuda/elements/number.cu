/* Operators on integers, and rounding to whole numbers: SPEC.md section 6. */
#include "repops/cuda/elements/functions.cuh"
#include "repops/op_number.h"
#include "repops/src/integer.h"

static ro_status integer(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int32_t *a = static_cast<const int32_t *>(in[0]);
    const int32_t *b = static_cast<const int32_t *>(in[1]);
    const ro_divider period(in_numel(call, 1));
    const int kind = (int)call->attr[RO_INTEGER_KIND];
    return map<int32_t>(d, call, out, [=] __device__(int64_t i) {
        return ro_integer(kind, a[i], b[period.remainder(i)]);
    });
}
RO_CUDA_KERNEL(integer, integer)

static ro_status round_to(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]);
    const int64_t kind = call->attr[RO_ROUND_KIND];
    return map<float>(d, call, out, [=] __device__(int64_t i) {
        return ro_canon(kind == RO_DOWN      ? floorf(x[i])
                        : kind == RO_UP      ? ceilf(x[i])
                        : kind == RO_NEAREST ? rintf(x[i])
                                             : truncf(x[i]));
    });
}
RO_CUDA_KERNEL(round, round_to)
