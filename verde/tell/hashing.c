/* How far the hashing of a run's files is. */
#include "verde/tell/tell.h"

enum { QUIET_SECONDS = 2 };

void vd_tell_hashing(void *user, uint64_t done, uint64_t total) {
    vd_hashing *h = user;
    const bool terminal = vd_is_terminal(), last = done == total;
    const double now = vd_seconds();
    char bytes[32], all[32], rate[32], left[32];
    const double seconds = now - h->start, told = h->last_line;
    if (seconds < QUIET_SECONDS || (!last && now - told < (terminal ? 0.1 : 2.0)))
        return;
    h->last_line = now;
    vd_print_size(done, bytes);
    vd_print_size(total, all);
    vd_print_size((uint64_t)((double)done / seconds), rate);
    vd_print_seconds(seconds * (double)(total - done) / (double)done, left);
    fprintf(stderr, "%shashed %s of %s, %s/s, %s left%s", terminal ? "\r\033[K" : "", bytes, all,
            rate, left, terminal && !last ? "" : "\n");
    fflush(stderr);
}

void vd_tell_hashed_items(vd_hashing *h, uint32_t done, uint32_t total) {
    const bool terminal = vd_is_terminal(), last = done == total;
    const double now = vd_seconds();
    if (now - h->start < QUIET_SECONDS || (!last && now - h->last_line < (terminal ? 0.1 : 2.0)))
        return;
    h->last_line = now;
    fprintf(stderr, "%shashed the runs of %u of %u prompts%s", terminal ? "\r\033[K" : "", done,
            total, terminal && !last ? "" : "\n");
    fflush(stderr);
}
