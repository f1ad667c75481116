/* Elements of tensors for people: their bits, and the distance of two elements. */
#ifndef VD_DISTANCE_H
#define VD_DISTANCE_H

#include "repops/repops.h"
#include "verde/base/base.h"

enum { VD_ELEMENT_TEXT = 48 };

/* Bits of an element in this machine's memory, zero-extended as in ro_access. */
uint32_t vd_bits_of_element(int32_t dtype, const void *tensor, int64_t index);
/* Writes "0.5 (0x3f000000)": a decimal that reads back as these bits, and the bits. */
void vd_element_text(int32_t dtype, uint32_t bits, char text[VD_ELEMENT_TEXT]);
/* Computes the distance in units of the last place; for integers, their difference. +0 and -0 are
 * one apart, and infinity follows the largest number. False: one of them is a NaN. */
VD_MUST_USE bool vd_element_distance(int32_t dtype, uint32_t a, uint32_t b, uint64_t *out);

#endif
