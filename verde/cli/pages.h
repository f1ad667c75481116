/* `verde inspect PATH --html FILE`: a page for people about a file or a run. */
#ifndef VD_PAGES_H
#define VD_PAGES_H

#include "verde/cli/cli.h"

/* Of a verdict, a proof of fraud, or what `verde audit` and `verde diff` wrote with --json. Writes
 * it to `out`. `verifier`: a verify.html, whose verifier a verdict's page gets too; NULL:
 * the one that is installed with this program, if there is one. */
VD_MUST_USE vd_status vd_write_page(const char *path, const char *out, const char *verifier,
                                    vd_err *err);
/* Of the run in `dir`; `values`: what --json says of it, which is taken over. */
VD_MUST_USE vd_status vd_write_run_page(const char *dir, const vd_loaded *loaded,
                                        const vd_run_log *log, json_t *values, const char *out,
                                        vd_err *err);
/* Of a folder of runs of many prompts. */
VD_MUST_USE vd_status vd_write_prompts_page(const char *dir, const char *out, vd_err *err);

#endif
