/* This file prints errors, and lines of longer stories. */
#include <stdio.h>
#include <unistd.h>

#include "verde/tell/tell.h"

vd_exit vd_report(const vd_err *err) {
    fprintf(stderr, "%sverde: %s\n", vd_is_terminal() ? "\r\033[K" : "", err->text);
    switch (err->status) {
    case VD_ERR_USAGE: return VD_EXIT_USAGE;
    case VD_ERR_PEER: return VD_EXIT_REFUSED;
    case VD_ERR_VERSION: return VD_EXIT_VERSION;
    default: return VD_EXIT_LOCAL;
    }
}

void vd_tell(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "%s  %s\n", vd_is_terminal() ? "\r\033[K" : "", line);
}

void vd_tell_now(const char *text) {
    if (!vd_is_terminal())
        return;
    fprintf(stderr, "\r\033[K  ... %s", text);
    fflush(stderr);
}

const char *vd_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

bool vd_is_terminal(void) {
    return isatty(STDERR_FILENO) != 0;
}
