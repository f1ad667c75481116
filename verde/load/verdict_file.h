/* Verdicts in files. */
#ifndef VD_VERDICT_FILE_H
#define VD_VERDICT_FILE_H

#include "verde/load/load.h"
#include "verde/protocol/verdict.h"

vd_exit vd_exit_of(const vd_outcome *outcome);

/* A verdict from a file, verified: its signature, and the referee's decision from the evidence in
 * it. `referee`: whose it must be, in hexadecimal; NULL: whoever signed it. `story`: tell it.
 * VD_ERR_PEER: it does not hold. */
VD_MUST_USE vd_status vd_load_verdict(const char *path, const char *referee, bool story,
                                      vd_verdict *out, vd_err *err);
/* Puts the file's name before what is wrong with it. */
vd_status vd_tell_file(const char *path, vd_status status, vd_err *err);
/* The page about it; `verifier`: the text of verify.html, or NULL. As vd_load_verdict otherwise. */
VD_MUST_USE vd_status vd_verdict_page(const char *path, const vd_buf *verifier, vd_buf *page,
                                      vd_err *err);
/* Writes a verdict, or a proof of fraud, and a line feed behind it. A second process decides again
 * from the file, before it gets its name. VD_ERR_LOCAL: that does not come to the same. */
VD_MUST_USE vd_status vd_write_verdict(const char *path, vd_buf *text, vd_err *err);
/* Is it the program that this job file means? VD_ERR_PEER: no; `what` is about another one. */
VD_MUST_USE vd_status vd_compare_job(const char *job, const vd_hash *program, const char *what,
                                     vd_err *err);

#endif
