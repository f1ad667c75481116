/* Sampling arithmetic that the reference and all kernels share: SPEC.md section 10.3. */
#ifndef RO_SAMPLING_H
#define RO_SAMPLING_H

#include "repops/src/math.h"
#include "repops/src/wide_product.h"

/* Returns the integer weight of y = exp(x - m). */
RO_INLINE uint32_t ro_weight_of(float y) {
    const float z = y * 0x1p31f;
    if (!(z < 0x1p31f))
        return z != z ? 0 : INT32_MAX;
    return (uint32_t)(int32_t)z;
}

/* Negative weights count as 0. */
RO_INLINE uint32_t ro_counted(int32_t q) {
    return q > 0 ? (uint32_t)q : 0;
}

typedef struct {
    int32_t t, c;
} ro_cut;

RO_INLINE int ro_is_kept(ro_cut cut, int32_t q, int64_t index) {
    return q > cut.t || (q == cut.t && index < cut.c);
}

/* Returns ceil(p sum / 2^24); p is at most 2^24. */
RO_INLINE uint64_t ro_share_of(uint64_t sum, uint64_t p) {
    const uint64_t low = (UINT64_C(1) << 24) - 1;
    return p * (sum >> 24) + ((p * (sum & low) + low) >> 24);
}

#endif
