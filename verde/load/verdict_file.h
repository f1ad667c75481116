/* Verdicts in files: reading, checking and writing them. */
#ifndef VD_VERDICT_FILE_H
#define VD_VERDICT_FILE_H

#include "verde/load/load.h"
#include "verde/protocol/verdict.h"

vd_exit vd_exit_of(const vd_outcome *outcome);

/* Reads a verdict and verifies its signature and, from its evidence, the referee's decision.
 * `referee`: the referee's key in hexadecimal, or NULL for any. `story`: prints how the dispute
 * went. VD_ERR_PEER: the verdict does not hold. */
VD_MUST_USE vd_status vd_load_verdict(const char *path, const char *referee, bool story,
                                      vd_verdict *out, vd_err *err);
/* Puts the file's name before the error's text. Returns `status`. */
vd_status vd_tell_file(const char *path, vd_status status, vd_err *err);
/* Makes the HTML page about a verdict; `verifier`: the text of verify.html, or NULL. Otherwise as
 * vd_load_verdict. */
VD_MUST_USE vd_status vd_verdict_page(const char *path, const vd_buf *verifier, vd_buf *page,
                                      vd_err *err);
/* Writes a verdict or a proof of fraud, and a line feed. Before the file gets its name, a second
 * process reads it and decides again. VD_ERR_LOCAL: that decision differs. */
VD_MUST_USE vd_status vd_write_verdict(const char *path, vd_buf *text, vd_err *err);
/* Checks that `program` is that of the job file. VD_ERR_PEER: it is not; `what` names the thing
 * that has another program. */
VD_MUST_USE vd_status vd_compare_job(const char *job, const vd_hash *program, const char *what,
                                     vd_err *err);

#endif
