/* The vector operations in NEON that functions need beyond those of isa.h. Included by wide.h
 * alone. */
#ifndef REPOPS_CPU_FUNCTIONS_NEON_H
#define REPOPS_CPU_FUNCTIONS_NEON_H

#include "repops/cpu/isa.h"

RO_INLINE vf vf_abs(vf x) {
    return vabsq_f32(x);
}
RO_INLINE vf vf_minus_abs(vf x) {
    return vnegq_f32(vabsq_f32(x));
}
RO_INLINE vf vf_cut_above(vf x, vf c) {
    return vbslq_f32(vcltq_f32(x, c), x, c);
}
RO_INLINE vf vf_cut_below(vf x, vf c) {
    return vbslq_f32(vcgtq_f32(x, c), x, c);
}
RO_INLINE vf vf_if_ge(vf a, vf b, vf y, vf n) {
    return vbslq_f32(vcgeq_f32(a, b), y, n);
}
RO_INLINE vf vf_with_sign(vf y, vf x) {
    return vbslq_f32(vdupq_n_u32(0x80000000), x, y);
}
RO_INLINE vf vf_unless_nan(vf x, vf y) {
    return vbslq_f32(vceqq_f32(x, x), y, vreinterpretq_f32_u32(vdupq_n_u32(RO_QNAN_BITS)));
}
/* Returns 2^(k + n), where the lowest bits of t hold k and offset is (127 + n) << 23. */
RO_INLINE vf power(vf t, uint32x4_t offset) {
    const uint32x4_t k = vshlq_n_u32(vreinterpretq_u32_f32(t), 23);
    return vreinterpretq_f32_u32(vaddq_u32(k, offset));
}
/* Returns y * 2^k as a product with two factors, as in math.h. */
RO_INLINE vf vf_scale(vf y, vf t) {
    const uint32x4_t down = vcltq_f32(t, vdupq_n_f32(0x1.8p23f));
    const uint32x4_t offset =
        vbslq_u32(down, vdupq_n_u32((127u + 64) << 23), vdupq_n_u32((127u - 64) << 23));
    const vf rest = vbslq_f32(down, vdupq_n_f32(0x1p-64f), vdupq_n_f32(0x1p64f));
    return vf_mul(vf_mul(y, power(t, offset)), rest);
}
RO_INLINE vf vf_scale_down(vf y, vf t) {
    return vf_mul(vf_mul(y, power(t, vdupq_n_u32((127u + 64) << 23))), vdupq_n_f32(0x1p-64f));
}
RO_INLINE vf vf_scale_sum(vf p, vf t) {
    const vf s = power(t, vdupq_n_u32(127u << 23));
    return vf_fma(p, s, s);
}
RO_INLINE vf vf_log_split(vf x, vf *m) {
    const uint32x4_t u = vreinterpretq_u32_f32(x);
    const uint32x4_t e = vandq_u32(vsubq_u32(u, vdupq_n_u32(0x3f2aaaab)), vdupq_n_u32(0xff800000));
    *m = vreinterpretq_f32_u32(vsubq_u32(u, e));
    return vcvtq_f32_s32(vreinterpretq_s32_u32(e));
}
typedef uint32x4_t vf_lanes;
RO_INLINE vf_lanes vf_within(vf x, float most) {
    return vcleq_f32(vf_abs(x), vdupq_n_f32(most));
}
RO_INLINE vf_lanes vf_below(vf x, float c) {
    return vcltq_f32(x, vdupq_n_f32(c));
}
RO_INLINE int vf_every(vf_lanes lanes) {
    return vminvq_u32(lanes) != 0;
}
RO_INLINE vf vf_only(vf_lanes lanes, vf x) {
    return vreinterpretq_f32_u32(vandq_u32(lanes, vreinterpretq_u32_f32(x)));
}
RO_INLINE int vf_positive_normal(vf a, vf b) {
    const int32x4_t x = vreinterpretq_s32_f32(a), y = vreinterpretq_s32_f32(b);
    return vminvq_s32(vminq_s32(x, y)) > 0x007fffff && vmaxvq_s32(vmaxq_s32(x, y)) < 0x7f800000;
}
RO_INLINE vf vf_max(vf a, vf b) {
    return vf_canon(vmaxq_f32(a, b));
}
RO_INLINE float vf_most(vf x) {
    return vmaxvq_f32(x);
}

#endif
