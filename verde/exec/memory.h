/* Memory for tensors, where an executor computes: on the host, or on its context's device. Private
 * to verde/exec and to code that looks at tensors while they are computed. */
#ifndef VD_MEMORY_H
#define VD_MEMORY_H

#include "verde/base/base.h"
#include "verde/graph/graph.h"

/* The memory is that of the device of `ro`, if it computes on one; else, or without `ro`, the
 * host's. */

/* Aligned to 64 bytes; NULL: out of memory. */
void *vd_memory_alloc(ro_ctx *ro, size_t size);
void vd_memory_free(ro_ctx *ro, void *block); /* accepts NULL */

/* Copy bytes to host memory, from host memory, and within the memory of `ro`. */
VD_MUST_USE vd_status vd_memory_read(ro_ctx *ro, void *to, const void *from, size_t size,
                                     vd_err *err);
VD_MUST_USE vd_status vd_memory_write(ro_ctx *ro, void *to, const void *from, size_t size,
                                      vd_err *err);
VD_MUST_USE vd_status vd_memory_copy(ro_ctx *ro, void *to, const void *from, size_t size,
                                     vd_err *err);

/* Returns `data` if it is in host memory, else *copy, a copy. The caller frees *copy in any case.
 * NULL on failure. */
const void *vd_memory_in_host(ro_ctx *ro, const void *data, size_t size, void **copy, vd_err *err);

#endif
