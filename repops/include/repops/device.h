/* Memory of the device that a context computes on, for contexts on "cuda:N"; on the others it is
 * host memory, so that one program serves both.
 *
 * On a CUDA device ro_run and the functions of fused.h take addresses of device memory, and return
 * before the work is done: calls of one context follow each other in order. A failure of the
 * device (RO_ERR_DEVICE) may show at a later call, at the latest in ro_read or ro_wait. That its
 * memory is at an end is RO_ERR_DEVICE too, and shows at once; RO_ERR_MEMORY is the host's. */
#ifndef REPOPS_DEVICE_H
#define REPOPS_DEVICE_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The device a context computes on: "NVIDIA H200 (sm_90, driver for CUDA 12.4)"; the backend's name
 * for CPUs. */
RO_API const char *ro_ctx_device(const ro_ctx *ctx);
/* The UUID tells devices of one kind apart: "GPU-" and 32 digits in groups, as nvidia-smi lists
 * it; "" for CPUs. */
RO_API const char *ro_ctx_device_uuid(const ro_ctx *ctx);
/* 1 if ro_alloc gives memory that the program itself can read and write. */
RO_API int ro_ctx_in_host_memory(const ro_ctx *ctx);

/* Aligned to 64 bytes at least, contents undefined. NULL, with a sentence in ro_ctx_error, if there
 * is none. Freed by ro_free of the same context, which accepts NULL; what was already asked for may
 * still use the memory. */
RO_API RO_MUST_USE void *ro_alloc(ro_ctx *ctx, size_t size);
RO_API void ro_free(ro_ctx *ctx, void *block);

/* From host memory, to host memory, and inside the device, at most 2^42 bytes; `to` and `from` do
 * not overlap. `from` of ro_write may be changed as soon as it returns; ro_read waits for
 * everything that was asked for before. */
RO_API RO_MUST_USE ro_status ro_write(ro_ctx *ctx, void *to, const void *from, size_t size);
RO_API RO_MUST_USE ro_status ro_read(ro_ctx *ctx, void *to, const void *from, size_t size);
RO_API RO_MUST_USE ro_status ro_copy(ro_ctx *ctx, void *to, const void *from, size_t size);
/* Until everything is done. */
RO_API RO_MUST_USE ro_status ro_wait(ro_ctx *ctx);
/* Most bytes of the context's ro_alloc and temporary memory in use at any time so far; 0 if nobody
 * counted. A device's memory that was freed is kept for the context's next calls, and given back
 * by ro_ctx_destroy. */
RO_API size_t ro_ctx_peak(ro_ctx *ctx);
/* Bytes of the device's memory that no program has now; 0 in host memory, or if the device does
 * not say. */
RO_API size_t ro_ctx_available(ro_ctx *ctx);

enum { RO_TREE_LEAF = 1024 }; /* bytes of a leaf */

/* Roots of the RFC 6962 trees (SHA-256) over the bytes of `count` tensors in leaves of
 * RO_TREE_LEAF, the last one of each shorter: how verde commits to tensors, without copying them.
 * data[i] has size[i] bytes, at least 1; root, in host memory, has room for count * 32 bytes.
 * RO_ERR_UNSUPPORTED in host memory. Waits. */
RO_API RO_MUST_USE ro_status ro_tree_roots(ro_ctx *ctx, int64_t count, const void *const *data,
                                           const size_t *size, uint8_t *root);

#ifdef __cplusplus
}
#endif
#endif
