/* Prints an arbiter's lines and appends to its journal, through its world. */
#include <stdarg.h>
#include <stdio.h>

#include "verde/protocol/arbiter_internal.h"

void vd_arbiter_tell(const vd_arbiter *a, vd_telling how, const char *format, ...) {
    char line[700];
    va_list args;
    if (!a->world->tell)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    a->world->tell(a->world->user, how, line);
}

vd_status vd_arbiter_append(vd_arbiter *a, const vd_noted *noted, size_t count) {
    vd_buf frame = {0};
    if (!a->world->append)
        return VD_OK;
    vd_status status = vd_minutes_frame(a->minutes, noted, count, &frame, a->err);
    if (status == VD_OK)
        status = a->world->append(a->world->user, frame.data, frame.size, a->err);
    vd_buf_free(&frame);
    return status;
}
