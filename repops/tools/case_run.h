/* Runs a golden case where a context computes: on host memory, or by copies on a device. */
#ifndef REPOPS_TOOLS_CASE_RUN_H
#define REPOPS_TOOLS_CASE_RUN_H

#include "repops/device.h"
#include "repops/tools/op_data.h"

/* Runs ro_run of the case into c->out, which is first filled with bytes 0x5a. */
ro_status case_run(ro_ctx *ctx, const op_case *c);

/* Returns `size` bytes of host memory where the context computes: a copy, or `host` itself if the
 * context computes in host memory. NULL, with a sentence in the context, if there is no memory. */
void *case_upload(ro_ctx *ctx, void *host, size_t size);
/* Frees what case_upload returned. */
void case_drop(ro_ctx *ctx, void *host, void *uploaded);

#endif
