/* Functions of one element of each input, with bounds. SPEC.md sections 6 and 9. */
#include "repops/ref/bounded.h"

/* One correctly rounded operation, the same in every profile, counts as exact: SPEC 14.3. */
approx ro_bounded_arithmetic(const ro_call *call, int64_t e, const ro_access *in) {
    const real a = (real)loadf(in, 0, e), b = (real)loadf(in, 1, e % numel(call, 1));
    switch (call->op) {
    case RO_OP_SUB: return ap_exact(a - b);
    case RO_OP_MUL: return ap_exact(a * b);
    case RO_OP_DIV: return ap_exact(a / b);
    default: return ap_exact(a + b);
    }
}

approx ro_bounded_single(const ro_call *call, int64_t e, const ro_access *in) {
    const real x = (real)loadf(in, 0, e);
    switch (call->op) {
    case RO_OP_DIV_CONST: return ap_exact(x / (real)attrf(call, 0));
    case RO_OP_SCALE: return ap_exact(x * (real)attrf(call, 0));
    default: return ap_exact(ap_sqrt_of(x));
    }
}
