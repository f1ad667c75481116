/* This file converts tensors' byte order: little-endian in commitments and files, the machine's own
 * in memory. */
#include "verde/base/base.h"

#include <stdlib.h>
#include <string.h>

enum { BIG_ENDIAN_MACHINE = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ };

static void reverse(uint8_t *element, size_t size) {
    for (size_t lo = 0, hi = size - 1; lo < hi; lo++, hi--) {
        const uint8_t byte = element[lo];
        element[lo] = element[hi];
        element[hi] = byte;
    }
}

void vd_from_little(void *data, size_t size, size_t element_size) {
    for (size_t at = 0; BIG_ENDIAN_MACHINE && at < size; at += element_size)
        reverse((uint8_t *)data + at, element_size);
}

const void *vd_to_little(const void *data, size_t size, size_t element_size, void **copy) {
    *copy = NULL;
    if (!BIG_ENDIAN_MACHINE || element_size == 1)
        return data;
    *copy = malloc(size);
    if (!*copy)
        return NULL;
    memcpy(*copy, data, size);
    vd_from_little(*copy, size, element_size); /* swapping is its own inverse */
    return *copy;
}
