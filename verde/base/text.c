/* Hexadecimal and base64, each with only one accepted spelling per value. */
#include "verde/base/internal.h"

#include <stdlib.h>
#include <string.h>

void vd_hex(const uint8_t *bytes, size_t size, char *text) {
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digit[bytes[i] >> 4];
        text[2 * i + 1] = digit[bytes[i] & 15];
    }
    text[2 * size] = 0;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool vd_unhex(const char *text, uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        int high = hex_value(text[2 * i]);
        int low = high < 0 ? -1 : hex_value(text[2 * i + 1]); /* does not read past a NUL */
        if (low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return text[2 * size] == 0;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Writes the 4 characters of 1 to 3 bytes. */
static void encode_group(const uint8_t *bytes, size_t size, char *text) {
    uint32_t bits = (uint32_t)bytes[0] << 16;
    bits |= size > 1 ? (uint32_t)bytes[1] << 8 : 0;
    bits |= size > 2 ? bytes[2] : 0;
    text[0] = alphabet[bits >> 18];
    text[1] = alphabet[bits >> 12 & 63];
    text[2] = size > 1 ? alphabet[bits >> 6 & 63] : '=';
    text[3] = size > 2 ? alphabet[bits & 63] : '=';
}

/* Encodes all bytes, and returns the end of the text. */
static char *encode(const uint8_t *bytes, size_t size, char *text) {
    for (size_t at = 0; at < size; at += 3, text += 4)
        encode_group(bytes + at, size - at < 3 ? size - at : 3, text);
    return text;
}

static bool is_too_long(size_t size) {
    return size > (SIZE_MAX - 8) / 4 * 3;
}

char *vd_base64(const void *bytes, size_t size) {
    char *text = is_too_long(size) ? NULL : malloc((size + 2) / 3 * 4 + 1);
    if (text)
        *encode(bytes, size, text) = 0;
    return text;
}

void vd_put_base64(vd_buf *buf, const void *bytes, size_t size) {
    const size_t length = (size + 2) / 3 * 4;
    buf->failed |= is_too_long(size);
    uint8_t *room = vd_buf_room(buf, length);
    if (!room)
        return;
    encode(bytes, size, (char *)room);
    buf->size += length;
}

static int base64_value(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes 4 characters, of which the last `padding` are '='. Their unused bits must be 0, or
 * several texts would mean the same bytes. */
static bool decode_group(const char *text, size_t padding, uint8_t *bytes) {
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        int value = i < 4 - padding ? base64_value(text[i]) : 0;
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
    }
    if (bits & ((UINT32_C(1) << (8 * padding)) - 1))
        return false;
    for (size_t i = 0; i < 3 - padding; i++)
        bytes[i] = (uint8_t)(bits >> (16 - 8 * i));
    return true;
}

vd_status vd_unbase64(const char *text, size_t length, vd_buf *out, vd_err *err) {
    if (length % 4 != 0)
        return vd_fail(err, VD_ERR_PEER, "base64 of %zu characters; expected a multiple of 4",
                       length);
    size_t padding = 0;
    while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
        padding++;
    size_t size = length / 4 * 3 - padding;
    uint8_t *bytes = vd_buf_room(out, size);
    if (!bytes)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory for %zu bytes of base64", size);
    for (size_t at = 0; at < length; at += 4)
        if (!decode_group(text + at, at + 4 == length ? padding : 0, bytes + at / 4 * 3))
            return vd_fail(err, VD_ERR_PEER, "base64 is not canonical at character %zu", at);
    out->size += size;
    return VD_OK;
}

/* Writes bits in hexadecimal too, since they show a NaN's sign and payload. */
void vd_f32_text(uint32_t bits, char text[VD_F32_TEXT]) {
    enum { DIGITS_MAX = 9 }; /* enough to tell any two f32 apart */
    char decimal[VD_F32_TEXT + 1 - sizeof " (0x00000000)"] = "nan";
    float value;
    memcpy(&value, &bits, sizeof value);
    for (int digits = 1; value == value && digits <= DIGITS_MAX; digits++) {
        snprintf(decimal, sizeof decimal, "%.*g", digits, (double)value);
        if (strtof(decimal, NULL) == value)
            break;
    }
    snprintf(text, VD_F32_TEXT, "%s (0x%08x)", decimal, bits);
}

/* ---- for people ---- */

void vd_print_size(uint64_t bytes, char *text) {
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    int u = 0;
    while (value >= 1000 && u < 4) {
        value /= 1000;
        u++;
    }
    snprintf(text, 32, u ? "%.1f %s" : "%.0f %s", value, unit[u]);
}

void vd_print_seconds(double seconds, char *text) {
    const double s = seconds > 0 && seconds < 1e12 ? seconds : 0;
    const long long minutes = (long long)(s / 60), hours = minutes / 60, days = hours / 24;
    if (minutes < 2)
        snprintf(text, 32, "%.0f s", s);
    else if (hours < 2)
        snprintf(text, 32, "%lld min", minutes);
    else if (days < 2)
        snprintf(text, 32, "%lld h %lld min", hours, minutes % 60);
    else
        snprintf(text, 32, "%lld days %lld h", days, hours % 24);
}
