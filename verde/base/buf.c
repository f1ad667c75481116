/* Growing byte buffer. */
#include "verde/base/internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void vd_buf_free(vd_buf *buf) {
    free(buf->data);
    *buf = (vd_buf){0};
}

bool vd_buf_ok(const vd_buf *buf) {
    return !buf->failed;
}

static bool grow(vd_buf *buf, size_t need) {
    size_t capacity = buf->capacity < 64 ? 64 : buf->capacity;
    while (capacity < need)
        capacity = capacity > SIZE_MAX / 2 ? need : capacity * 2;
    uint8_t *data = realloc(buf->data, capacity);
    if (!data)
        return false;
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

uint8_t *vd_buf_room(vd_buf *buf, size_t size) {
    if (!buf->failed && size > SIZE_MAX - buf->size)
        buf->failed = true;
    if (!buf->failed && (!buf->data || buf->size + size > buf->capacity))
        buf->failed = !grow(buf, buf->size + size);
    return buf->failed ? NULL : buf->data + buf->size;
}

void vd_put(vd_buf *buf, const void *bytes, size_t size) {
    if (size == 0)
        return; /* `bytes` may be NULL */
    uint8_t *room = vd_buf_room(buf, size);
    if (!room)
        return;
    memcpy(room, bytes, size);
    buf->size += size;
}

static inline void put_little(vd_buf *buf, uint64_t value, size_t size) {
    uint8_t *room = vd_buf_room(buf, size);
    if (!room)
        return;
    for (size_t i = 0; i < size; i++)
        room[i] = (uint8_t)(value >> (8 * i));
    buf->size += size;
}

void vd_put_u8(vd_buf *buf, uint8_t value) {
    put_little(buf, value, 1);
}

void vd_put_u16(vd_buf *buf, uint16_t value) {
    put_little(buf, value, 2);
}

void vd_put_u32(vd_buf *buf, uint32_t value) {
    put_little(buf, value, 4);
}

void vd_put_u64(vd_buf *buf, uint64_t value) {
    put_little(buf, value, 8);
}

void vd_put_string(vd_buf *buf, const char *text) {
    size_t length = strlen(text);
    if (length > UINT16_MAX) {
        buf->failed = true;
        return;
    }
    vd_put_u16(buf, (uint16_t)length);
    vd_put(buf, text, length);
}

void vd_printf(vd_buf *buf, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    /* vsnprintf writes a NUL, which needs room but is not counted. */
    uint8_t *room = length < 0 ? NULL : vd_buf_room(buf, (size_t)length + 1);
    if (room) {
        vsnprintf((char *)room, (size_t)length + 1, format, again);
        buf->size += (size_t)length;
    }
    if (length < 0)
        buf->failed = true;
    va_end(again);
}
