/* Tensors where an executor computes: host memory, or that of its context's device. Private to
 * verde/exec and those who look at tensors as they are computed. */
#ifndef VD_MEMORY_H
#define VD_MEMORY_H

#include "verde/base/base.h"
#include "verde/graph/graph.h"

/* In all of these `ro` is NULL for host memory, or the context; one that computes in host memory
 * counts as NULL. */

/* Aligned to 64 bytes; NULL if there is none. */
void *vd_memory_alloc(ro_ctx *ro, size_t size);
void vd_memory_free(ro_ctx *ro, void *block); /* accepts NULL */

/* Bytes into host memory, from host memory, and from one place to another. */
VD_MUST_USE vd_status vd_memory_read(ro_ctx *ro, void *to, const void *from, size_t size,
                                     vd_err *err);
VD_MUST_USE vd_status vd_memory_write(ro_ctx *ro, void *to, const void *from, size_t size,
                                      vd_err *err);
VD_MUST_USE vd_status vd_memory_copy(ro_ctx *ro, void *to, const void *from, size_t size,
                                     vd_err *err);

/* `data` itself if it is in host memory, else a copy, which is *copy too; the caller frees *copy.
 * NULL on failure. */
const void *vd_memory_in_host(ro_ctx *ro, const void *data, size_t size, void **copy, vd_err *err);

#endif
