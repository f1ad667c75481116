/* Errors: a category and a message. */
#include "verde/base/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* Blanks control characters. A message may quote what a peer or a file sent, which must not steer a
 * terminal or forge a second line of a log. U+0080 to U+009F take two bytes in UTF-8; to some
 * terminals the byte 0x9b is what ESC [ is. */
static void blank_controls(char *text) {
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text, next = (unsigned char)text[1];
        if (c == 0xc2 && next >= 0x80 && next < 0xa0)
            text[0] = text[1] = '?';
        else if (c < 0x20 || c == 0x7f)
            *text = '?';
    }
}

vd_status vd_fail(vd_err *err, vd_status status, const char *format, ...) {
    if (!err)
        return status;
    /* Arguments may point into err->text, when a caller puts a place before a message. */
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) < 0)
        strcpy(text, "an error whose text could not be formatted");
    va_end(args);
    blank_controls(text);
    memcpy(err->text, text, sizeof text);
    err->status = status;
    return status;
}

vd_status vd_fail_version(vd_err *err, const char *name, int64_t found, const char *what,
                          int64_t first, int64_t last) {
    char known[64];
    if (first == last)
        snprintf(known, sizeof known, "version %lld", (long long)first);
    else
        snprintf(known, sizeof known, "versions %lld %s %lld", (long long)first,
                 last == first + 1 ? "and" : "to", (long long)last);
    return vd_fail(err, VD_ERR_VERSION, "%s%sversion %lld of %s; this verde reads %s",
                   name ? name : "", name ? ": " : "", (long long)found, what, known);
}

vd_status vd_title_read(const char *name, const char *line, size_t size, const char *title,
                        const char *what, vd_err *err) {
    const size_t length = strlen(title);
    size_t digits = 0;
    int64_t version = 0;
    if (size > length && memcmp(line, title, length) == 0 && line[length] != '0')
        for (line += length, size -= length; digits < size && digits < 9; digits++) {
            if (line[digits] < '0' || line[digits] > '9')
                break;
            version = 10 * version + line[digits] - '0';
        }
    if (digits == 0 || digits < size)
        return vd_fail(err, VD_ERR_USAGE, "%s:1: expected the line `%s1`", name, title);
    char place[1100];
    snprintf(place, sizeof place, "%.1090s:1", name);
    return version == 1 ? VD_OK : vd_fail_version(err, place, version, what, 1, 1);
}

vd_status vd_fail_limit(vd_err *err, const char *name, uint64_t found, const char *what,
                        uint64_t most) {
    return vd_fail(err, VD_ERR_VERSION, "%s%s%llu %s; this verde reads at most %llu",
                   name ? name : "", name ? ": " : "", (unsigned long long)found, what,
                   (unsigned long long)most);
}

vd_status vd_of_peer(vd_status status, vd_err *err) {
    if (status != VD_ERR_VERSION)
        return status;
    if (err)
        err->status = VD_ERR_PEER;
    return VD_ERR_PEER;
}

static vd_status errno_status(int number) {
    switch (number) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENOTEMPTY:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
    case EACCES:
    case EPERM: return VD_ERR_USAGE;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EROFS: return VD_ERR_LOCAL;
    default: return VD_ERR_IO;
    }
}

vd_status vd_fail_errno(vd_err *err, const char *verb, const char *path) {
    int number = errno;
    return vd_fail(err, errno_status(number), "cannot %s %s: %s", verb, path, strerror(number));
}
