/* This file prints the progress of long work, such as hashing a run's files. */
#include <stdarg.h>
#include <stdio.h>

#include "verde/tell/tell.h"

enum { QUIET_SECONDS = 2 };

bool vd_tick(vd_ticker *t, double quiet_s, bool last) {
    const double now = vd_seconds();
    if (now - t->start < quiet_s || (!last && now - t->told < (vd_is_terminal() ? 0.1 : 2.0)))
        return false;
    t->told = now;
    return true;
}

void vd_tell_meanwhile(bool last, const char *format, ...) {
    const bool terminal = vd_is_terminal();
    va_list args;
    fputs(terminal ? "\r\033[K" : "", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs(terminal && !last ? "" : "\n", stderr);
    fflush(stderr);
}

void vd_tell_hashing(void *user, uint64_t done, uint64_t total) {
    vd_ticker *t = user;
    const double seconds = vd_seconds() - t->start;
    char bytes[32], all[32], rate[32], left[32];
    if (!vd_tick(t, QUIET_SECONDS, done == total))
        return;
    vd_print_size(done, bytes);
    vd_print_size(total, all);
    vd_print_size((uint64_t)((double)done / seconds), rate);
    vd_print_seconds(seconds * (double)(total - done) / (double)done, left);
    vd_tell_meanwhile(done == total, "hashed %s of %s, %s/s, %s left", bytes, all, rate, left);
}

void vd_tell_hashed_items(vd_ticker *t, uint32_t done, uint32_t total) {
    if (vd_tick(t, QUIET_SECONDS, done == total))
        vd_tell_meanwhile(done == total, "hashed the runs of %u of %u prompts", done, total);
}
