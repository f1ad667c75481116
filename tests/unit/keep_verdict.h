/* VERDICTS=DIR keeps the verdicts that a test makes. */
#ifndef KEEP_VERDICT_H
#define KEEP_VERDICT_H

#include "verde/base/base.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static inline void keep(const vd_buf *verdict, const char *name) {
    char path[600];
    vd_err err = {0};
    const char *dir = getenv("VERDICTS");
    cr_assert(verdict->size > 0, "%s: there is none", name);
    if (!dir)
        return;
    snprintf(path, sizeof path, "%s/%s.json", dir, name);
    cr_assert(vd_write_file(path, verdict->data, verdict->size, 0644, &err) == VD_OK, "%s",
              err.text);
}

#endif
