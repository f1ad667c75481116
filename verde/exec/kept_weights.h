/* Weights of fixed products that stay packed (repops/packed.h), for as long as the data that they
 * are. Private to verde/exec. */
#ifndef VD_KEPT_WEIGHTS_H
#define VD_KEPT_WEIGHTS_H

#include "verde/exec/fuse.h"

/* They take at most a quarter of the memory that the process may have. NULL: out of memory. */
vd_kept_weights *vd_kept_weights_create(void);
void vd_kept_weights_destroy(vd_kept_weights *kept); /* accepts NULL */
/* Bytes that are packed. */
size_t vd_kept_weights_bytes(const vd_kept_weights *kept);

/* Runs a linear layer. Weights that are data are packed the first time that they are read, if there
 * is room; `kept` may be NULL. */
VD_MUST_USE vd_status vd_linear_run(const vd_fused *group, const vd_fused_memory *at, ro_ctx *ro,
                                    vd_kept_weights *kept, vd_err *err);

#endif
