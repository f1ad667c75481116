/* `verde inspect PATH --html FILE`: a page for people about a file or a run. */
#ifndef VD_PAGES_H
#define VD_PAGES_H

#include "verde/cli/cli.h"

/* Writes it to `out`. `verifier`: a verify.html, whose verifier a verdict's page gets too; NULL:
 * the one that is installed with this program, if there is one. */
VD_MUST_USE vd_status vd_write_page(const char *path, const char *out, const char *verifier,
                                    vd_err *err);

#endif
