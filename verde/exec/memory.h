/* Tensors where an executor computes: host memory, or that of its context's device. Private to
 * verde/exec and those who look at tensors as they are computed. */
#ifndef VD_MEMORY_H
#define VD_MEMORY_H

#include "verde/base/base.h"
#include "verde/graph/graph.h"

/* `ro` says whose memory it is: a device's, if the context computes on one; the host's otherwise,
 * or if `ro` is NULL. */

/* Aligned to 64 bytes; NULL if there is none. */
void *vd_memory_alloc(ro_ctx *ro, size_t size);
void vd_memory_free(ro_ctx *ro, void *block); /* accepts NULL */

/* Copies bytes to host memory, from host memory, and within the memory of `ro`. */
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
