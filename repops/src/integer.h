/* Integer arithmetic, SPEC.md section 6: shared by the reference, the CPU kernels and CUDA. */
#ifndef RO_INTEGER_H
#define RO_INTEGER_H

#include <stdint.h>

#include "repops/repops.h"
#include "repops/src/inline.h"

/* Divides, rounding toward zero, or toward minus infinity if `down` is nonzero. Quotients by 0, and
 * of -2^31 by -1, do not fit in 32 bits and are defined here. */
RO_INLINE int32_t ro_quotient(int32_t a, int32_t b, int down) {
    const int negates = b == -1, divisor = b == 0 || negates ? 1 : b;
    const int32_t q = a / divisor, rest = a % divisor;
    const int32_t lower = down && rest != 0 && (rest < 0) != (divisor < 0) ? q - 1 : q;
    return b == 0 ? 0 : negates ? (int32_t)(0 - (uint32_t)a) : lower;
}

RO_INLINE int32_t ro_remainder(int32_t a, int32_t b, int down) {
    return (int32_t)((uint32_t)a - (uint32_t)b * (uint32_t)ro_quotient(a, b, down));
}

RO_INLINE int32_t ro_shift_left(int32_t a, int32_t b) {
    return (uint32_t)b > 31 ? 0 : (int32_t)((uint32_t)a << (b & 31));
}

/* Shifts right arithmetically: fills with the sign. */
RO_INLINE int32_t ro_shift_right(int32_t a, int32_t b) {
    const uint32_t sign = a < 0 ? UINT32_MAX : 0, by = (uint32_t)b > 31 ? 31 : (uint32_t)b;
    return (int32_t)((((uint32_t)a ^ sign) >> by) ^ sign);
}

/* Computes operator integer. `kind` is a compile-time constant wherever speed matters. */
RO_INLINE int32_t ro_integer(int kind, int32_t a, int32_t b) {
    switch (kind) {
    case RO_PRODUCT: return (int32_t)((uint32_t)a * (uint32_t)b);
    case RO_QUOTIENT: return ro_quotient(a, b, 0);
    case RO_REMAINDER: return ro_remainder(a, b, 0);
    case RO_FLOOR_QUOTIENT: return ro_quotient(a, b, 1);
    case RO_FLOOR_REMAINDER: return ro_remainder(a, b, 1);
    case RO_SHIFT_LEFT: return ro_shift_left(a, b);
    case RO_SHIFT_RIGHT: return ro_shift_right(a, b);
    case RO_AND: return a & b;
    case RO_OR: return a | b;
    case RO_XOR: return a ^ b;
    case RO_SMALLER: return a < b ? a : b;
    default: return a > b ? a : b;
    }
}

#endif
