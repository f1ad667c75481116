/* Pages for people: one file each, which loads nothing and works without a network. The outcome
 * comes first. */
#ifndef VD_PAGE_FILES_H
#define VD_PAGE_FILES_H

#include "verde/protocol/verdict.h"

/* A verdict that is decided again on the way. `name` is its file's, for people. `verifier`: the
 * text of verify.html, whose verifier the page gets too; NULL: it has none. VD_ERR_PEER and
 * VD_ERR_VERSION as vd_verdict_verify, and no page then. */
VD_MUST_USE vd_status vd_page_of_verdict(const char *name, const void *note, size_t size,
                                         const vd_buf *verifier, vd_buf *out, vd_verdict *verdict,
                                         vd_err *err);

#endif
