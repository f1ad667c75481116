/* `verde inspect PATH --html FILE`: a page for people about a file or a run. */
#ifndef VD_PAGES_H
#define VD_PAGES_H

#include "verde/cli/cli.h"

/* Writes the page of a verdict, a proof of fraud, or a report of `verde audit` or `verde diff` to
 * `out`. A verdict's page contains the verifier of `verifier`, a verify.html; NULL: of the
 * installed one, if there is one. */
VD_MUST_USE vd_status vd_write_page(const char *path, const char *out, const char *verifier,
                                    vd_err *err);
/* Writes the page of the run in `dir`. `values` is what inspect --json prints of it; it is freed.
 */
VD_MUST_USE vd_status vd_write_run_page(const char *dir, const vd_loaded *loaded,
                                        const vd_run_log *log, json_t *values, const char *out,
                                        vd_err *err);
/* Writes the page of a run of many prompts. */
VD_MUST_USE vd_status vd_write_prompts_page(const char *dir, const char *out, vd_err *err);

#endif
