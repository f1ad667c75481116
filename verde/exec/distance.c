/* This file prints single elements, and counts the numbers that lie between two of them. */
#include "verde/exec/distance.h"

#include <math.h>
#include <string.h>

uint32_t vd_bits_of_element(int32_t dtype, const void *tensor, int64_t index) {
    const size_t size = ro_dtype_size(dtype);
    const uint8_t *at = (const uint8_t *)tensor + (size_t)index * size;
    uint16_t half;
    uint32_t word;
    if (size == 1)
        return *at;
    if (size == 2) {
        memcpy(&half, at, sizeof half);
        return half;
    }
    memcpy(&word, at, sizeof word);
    return word;
}

/* ---- text ---- */

static float f32_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double f16_value(uint32_t bits) {
    const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 31)
        value = fraction ? (double)NAN : (double)INFINITY;
    return bits >> 15 ? -value : value;
}

void vd_element_text(int32_t dtype, uint32_t bits, char text[VD_ELEMENT_TEXT]) {
    switch (dtype) {
    case RO_F32: vd_f32_text(bits, text); break;
    case RO_BF16:
        snprintf(text, VD_ELEMENT_TEXT, "%.5g (0x%04x)", (double)f32_of(bits << 16), bits);
        break;
    case RO_F16: snprintf(text, VD_ELEMENT_TEXT, "%.5g (0x%04x)", f16_value(bits), bits); break;
    case RO_I8: snprintf(text, VD_ELEMENT_TEXT, "%d (0x%02x)", (int8_t)bits, bits); break;
    case RO_U8: snprintf(text, VD_ELEMENT_TEXT, "%u (0x%02x)", bits, bits); break;
    case RO_U16: snprintf(text, VD_ELEMENT_TEXT, "%u (0x%04x)", bits, bits); break;
    default: snprintf(text, VD_ELEMENT_TEXT, "%d (0x%08x)", (int32_t)bits, bits);
    }
}

/* ---- distance ---- */

/* The position of a number on the line of all numbers of its width; false: it is a NaN. */
static bool place_of(uint32_t bits, int width, uint32_t infinity, int64_t *place) {
    const uint32_t sign = UINT32_C(1) << (width - 1), magnitude = bits & (sign - 1);
    *place = bits & sign ? -(int64_t)magnitude - 1 : (int64_t)magnitude;
    return magnitude <= infinity;
}

static bool places_of(int32_t dtype, uint32_t bits, int64_t *place) {
    switch (dtype) {
    case RO_F32: return place_of(bits, 32, UINT32_C(0x7f800000), place);
    case RO_BF16: return place_of(bits, 16, 0x7f80, place);
    case RO_F16: return place_of(bits, 16, 0x7c00, place);
    case RO_I32: *place = (int32_t)bits; return true;
    case RO_I8: *place = (int8_t)bits; return true;
    default: *place = bits; return true;
    }
}

bool vd_element_distance(int32_t dtype, uint32_t a, uint32_t b, uint64_t *out) {
    int64_t from, to;
    if (!places_of(dtype, a, &from) || !places_of(dtype, b, &to))
        return false;
    *out = (uint64_t)(from < to ? to - from : from - to);
    return true;
}
