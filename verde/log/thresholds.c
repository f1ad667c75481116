/* Thresholds as text: a line with the bits, then a line for each operator with a threshold, by
 * number. PROTOCOL.md section 11.6. */
#include "verde/log/internal.h"

#include <string.h>

#define TITLE "verde thresholds " /* followed by its version, 1 */
enum { EXPONENT_BIAS = 1023, FRACTION_DIGITS = 13 };

/* Writes a normal number in (0, 1] as "0x1.8p-26": in binary, each value has one text. */
static void put_value(vd_buf *out, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t fraction = bits << 12;
    vd_printf(out, "0x1%s", fraction ? "." : "");
    for (; fraction; fraction <<= 4)
        vd_put_u8(out, (uint8_t) "0123456789abcdef"[fraction >> 60]);
    vd_printf(out, "p%d", (int)(bits >> 52) - EXPONENT_BIAS);
}

/* Reads what put_value writes. It accepts a little more, but the caller prints the value again and
 * compares. */
static bool get_value(const char *text, double *value) {
    uint64_t fraction = 0;
    int digits = 0, exponent = 0;
    if (strncmp(text, "0x1", 3) != 0)
        return false;
    text += 3;
    for (text += *text == '.'; *text && *text != 'p'; text++) {
        const char *digit = strchr("0123456789abcdef", *text);
        if (!digit || ++digits > FRACTION_DIGITS)
            return false;
        fraction |= (uint64_t)(digit - "0123456789abcdef") << (52 - 4 * digits);
    }
    if (sscanf(text, "p%5d", &exponent) != 1 || exponent > 0 || exponent <= -EXPONENT_BIAS)
        return false;
    const uint64_t bits = (uint64_t)(exponent + EXPONENT_BIAS) << 52 | fraction;
    memcpy(value, &bits, sizeof bits);
    return *value <= 1;
}

static void put_line(vd_buf *out, int op, double value) {
    vd_printf(out, "%s ", ro_op_describe(op)->name);
    put_value(out, value);
    vd_put(out, "\n", 1);
}

vd_status vd_thresholds_print(const vd_thresholds *thresholds, vd_buf *out, vd_err *err) {
    if (thresholds->bits < RO_ROUND_BITS_MIN || thresholds->bits > RO_ROUND_BITS_MAX)
        return vd_fail(err, VD_ERR_LOCAL, "thresholds for %d bits", (int)thresholds->bits);
    vd_printf(out, TITLE "1\nbits %d\n", (int)thresholds->bits);
    for (int op = 0; op < RO_OP_END; op++) {
        const double value = thresholds->of[op];
        if (value == 0)
            continue;
        if (!ro_op_describe(op) || !(value >= 0x1p-1022 && value <= 1))
            return vd_fail(err, VD_ERR_LOCAL, "operator %d has threshold %g", op, value);
        put_line(out, op, value);
    }
    return vd_buf_ok(out) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "no memory for thresholds");
}

vd_status vd_thresholds_hash(const vd_thresholds *thresholds, vd_hash *out, vd_err *err) {
    vd_buf text = {0};
    vd_status status = vd_thresholds_print(thresholds, &text, err);
    if (status == VD_OK && !vd_hash_tagged("verde/thresholds/1", text.data, text.size, out))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed");
    vd_buf_free(&text);
    return status;
}

vd_status vd_thresholds_save(const char *path, const vd_thresholds *thresholds, vd_err *err) {
    vd_buf text = {0};
    vd_status status = vd_thresholds_print(thresholds, &text, err);
    if (status == VD_OK)
        status = vd_write_file(path, text.data, text.size, 0644, err);
    vd_buf_free(&text);
    return status;
}

/* Reads the next line without its newline. False: there is none, or it is too long or contains a
 * NUL. */
static bool next_line(vd_cursor *in, char line[128]) {
    const uint8_t *start = in->data + in->at, *end = memchr(start, '\n', in->size - in->at);
    const size_t size = end ? (size_t)(end - start) : 0;
    if (!end || size >= 128 || memchr(start, 0, size))
        return false;
    memcpy(line, start, size);
    line[size] = 0;
    in->at += size + 1;
    return true;
}

static bool read_line(const char *line, vd_thresholds *out, int *last) {
    char name[64], number[64];
    double value;
    if (sscanf(line, "%63s %63s", name, number) != 2 || !get_value(number, &value))
        return false;
    const int op = ro_op_by_name(name);
    if (op <= *last || !ro_op_describe(op))
        return false;
    vd_buf again = {0};
    put_line(&again, op, value);
    const bool same = vd_buf_ok(&again) && again.size == strlen(line) + 1 &&
                      memcmp(again.data, line, again.size - 1) == 0;
    vd_buf_free(&again);
    out->of[op] = value;
    *last = op;
    return same;
}

static vd_status parse(const char *path, const vd_buf *text, vd_thresholds *out, vd_err *err) {
    vd_cursor in = vd_cursor_of(text->data, text->size);
    char line[128] = "", expected[24];
    vd_status status = next_line(&in, line)
                           ? vd_title_read(path, line, strlen(line), TITLE, "thresholds", err)
                           : vd_fail(err, VD_ERR_USAGE, "%s:1: expected `" TITLE "1`", path);
    if (status != VD_OK)
        return status;
    if (next_line(&in, line))
        for (int bits = RO_ROUND_BITS_MIN; bits <= RO_ROUND_BITS_MAX; bits++) {
            snprintf(expected, sizeof expected, "bits %d", bits);
            if (strcmp(line, expected) == 0)
                out->bits = bits;
        }
    if (out->bits == 0)
        return vd_fail(err, VD_ERR_USAGE, "%s:2: expected `bits 16` to `bits 32`", path);
    int last = RO_OP_NONE;
    for (int number = 3; in.at < in.size; number++)
        if (!next_line(&in, line) || !read_line(line, out, &last))
            return vd_fail(err, VD_ERR_USAGE,
                           "%s:%d: expected an operator after `%s` and its threshold as "
                           "`0x1.8p-26`, at most 1",
                           path, number, last == RO_OP_NONE ? "bits" : ro_op_describe(last)->name);
    return VD_OK;
}

vd_status vd_thresholds_load(const char *path, vd_thresholds *out, vd_err *err) {
    vd_buf text = {0};
    *out = (vd_thresholds){0};
    vd_status status = vd_read_file(path, VD_THRESHOLDS_BYTES_MAX, &text, err);
    if (status == VD_OK)
        status = parse(path, &text, out, err);
    vd_buf_free(&text);
    if (status != VD_OK)
        *out = (vd_thresholds){0};
    return status;
}
