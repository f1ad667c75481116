/* Running a case wherever a context computes: in place on host memory, by copies on a device. */
#ifndef REPOPS_TOOLS_CASE_RUN_H
#define REPOPS_TOOLS_CASE_RUN_H

#include "repops/device.h"
#include "repops/tools/op_data.h"

/* ro_run of the case into c->out, which is filled with 0x5a first. */
ro_status case_run(ro_ctx *ctx, const op_case *c);

/* A copy of `size` bytes where the context computes; host memory itself if that is there. NULL,
 * with a sentence in the context, if there is no memory. */
void *case_upload(ro_ctx *ctx, void *host, size_t size);
/* Frees what case_upload gave. */
void case_drop(ro_ctx *ctx, void *host, void *uploaded);

#endif
