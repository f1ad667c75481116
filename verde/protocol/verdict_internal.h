/* What writing and reading verdicts share. Private to verde/protocol. */
#ifndef VD_VERDICT_INTERNAL_H
#define VD_VERDICT_INTERNAL_H

#include "verde/protocol/message.h"

#define VD_STATEMENT_TYPE "https://in-toto.io/Statement/v1"

/* An assignment that its referee has signed; its payload is appended to *payload. */
VD_MUST_USE vd_status vd_verdict_assignment(const vd_buf *note, vd_buf *payload, vd_assignment *out,
                                            vd_err *err);

#endif
