/* Elements of tensors for people: their bits, and how far apart two of them are. */
#ifndef VD_DISTANCE_H
#define VD_DISTANCE_H

#include "repops/repops.h"
#include "verde/base/base.h"

enum { VD_ELEMENT_TEXT = 48 };

/* The bits of an element in this machine's memory, zero-extended as ro_access has them. */
uint32_t vd_bits_of_element(int32_t dtype, const void *tensor, int64_t index);
/* "0.5 (0x3f000000)": a decimal that reads back as these bits, and they. */
void vd_element_text(int32_t dtype, uint32_t bits, char text[VD_ELEMENT_TEXT]);
/* Numbers of the type between the two, and one: units in the last place; of integers the
 * difference. +0 and -0 are one apart, infinity follows the largest number. False: a NaN is not on
 * that line. */
VD_MUST_USE bool vd_element_distance(int32_t dtype, uint32_t a, uint32_t b, uint64_t *out);

#endif
