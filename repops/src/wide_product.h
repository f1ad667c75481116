/* 128-bit products of 64-bit integers. */
#ifndef RO_WIDE_PRODUCT_H
#define RO_WIDE_PRODUCT_H

#include <stdint.h>

#include "repops/src/inline.h"

/* Returns floor(a b / 2^64). */
RO_INLINE uint64_t ro_mul_high(uint64_t a, uint64_t b) {
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32);
    const uint64_t other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

#endif
