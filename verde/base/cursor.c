/* Bounded reader of untrusted bytes. */
#include "verde/base/base.h"

#include <string.h>

vd_cursor vd_cursor_of(const void *data, size_t size) {
    static const uint8_t nothing;
    /* `data` may be NULL if it is empty, but vd_get returns NULL only at the end of the input. */
    return (vd_cursor){.data = data ? data : &nothing, .size = data ? size : 0};
}

const uint8_t *vd_get(vd_cursor *cursor, size_t size) {
    if (cursor->failed || size > cursor->size - cursor->at) {
        cursor->failed = true;
        return NULL;
    }
    const uint8_t *bytes = cursor->data + cursor->at;
    cursor->at += size;
    return bytes;
}

static uint64_t get_little(vd_cursor *cursor, size_t size) {
    const uint8_t *bytes = vd_get(cursor, size);
    uint64_t value = 0;
    for (size_t i = 0; bytes && i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

uint8_t vd_get_u8(vd_cursor *cursor) {
    return (uint8_t)get_little(cursor, 1);
}

uint16_t vd_get_u16(vd_cursor *cursor) {
    return (uint16_t)get_little(cursor, 2);
}

uint32_t vd_get_u32(vd_cursor *cursor) {
    return (uint32_t)get_little(cursor, 4);
}

uint64_t vd_get_u64(vd_cursor *cursor) {
    return get_little(cursor, 8);
}

void vd_get_string(vd_cursor *cursor, char *text, size_t size) {
    size_t length = vd_get_u16(cursor);
    const uint8_t *bytes = vd_get(cursor, length);
    if (!bytes || length >= size || memchr(bytes, 0, length)) {
        cursor->failed = true;
        length = 0;
    }
    if (length > 0)
        memcpy(text, bytes, length);
    if (size > 0)
        text[length] = 0;
}

bool vd_cursor_done(const vd_cursor *cursor) {
    return !cursor->failed && cursor->at == cursor->size;
}
