/* Memory where a context computes: that of the device for contexts on "cuda:N", else host memory.
 * So one program serves both.
 *
 * On a CUDA device ro_run and the functions of fused.h take device addresses, and return before the
 * work is done; the calls of one context run in order. A device failure (RO_ERR_DEVICE) may be
 * reported by a later call, at the latest by ro_read or ro_wait. Running out of device memory is
 * RO_ERR_DEVICE too, and is reported at once; RO_ERR_MEMORY means host memory. */
#ifndef REPOPS_DEVICE_H
#define REPOPS_DEVICE_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The name of the device that a context computes on, as "NVIDIA H200 (sm_90, driver for CUDA
 * 12.4)"; on CPUs the backend's name. */
RO_API const char *ro_ctx_device(const ro_ctx *ctx);
/* The device's UUID, which tells devices of the same model apart: "GPU-" and 32 digits in groups,
 * as nvidia-smi lists it; "" on CPUs. */
RO_API const char *ro_ctx_device_uuid(const ro_ctx *ctx);
/* 1 if ro_alloc gives memory that the program itself can read and write. */
RO_API int ro_ctx_in_host_memory(const ro_ctx *ctx);

/* Allocates `size` bytes, aligned to at least 64, contents undefined. Returns NULL, with a sentence
 * in ro_ctx_error, if there is no memory. ro_free with the same context frees the block and accepts
 * NULL; calls that were made before ro_free may still use the memory. */
RO_API RO_MUST_USE void *ro_alloc(ro_ctx *ctx, size_t size);
RO_API void ro_free(ro_ctx *ctx, void *block);

/* ro_write copies from host memory to the device, ro_read from the device to host memory, ro_copy
 * within the device: at most 2^42 bytes, and `to` and `from` must not overlap. The caller may
 * change `from` as soon as ro_write returns. ro_read waits for all earlier calls. */
RO_API RO_MUST_USE ro_status ro_write(ro_ctx *ctx, void *to, const void *from, size_t size);
RO_API RO_MUST_USE ro_status ro_read(ro_ctx *ctx, void *to, const void *from, size_t size);
RO_API RO_MUST_USE ro_status ro_copy(ro_ctx *ctx, void *to, const void *from, size_t size);
/* Waits until all calls of the context are done. */
RO_API RO_MUST_USE ro_status ro_wait(ro_ctx *ctx);
/* The largest number of bytes, so far, that ro_alloc and temporary memory of this context used at
 * once; 0 if it was not counted. Freed device memory is kept for the context's next calls until
 * ro_ctx_destroy. */
RO_API size_t ro_ctx_peak(ro_ctx *ctx);
/* Free bytes of the device's memory, which no program uses; 0 in host memory, or if the device does
 * not say. */
RO_API size_t ro_ctx_available(ro_ctx *ctx);

enum { RO_TREE_LEAF = 1024 }; /* bytes of a leaf */

/* Computes the root of an RFC 6962 tree (SHA-256) over the bytes of each of `count` tensors, as
 * verde commits to tensors, without copying them. Leaves have RO_TREE_LEAF bytes; the last one of a
 * tensor may be shorter. data[i] has size[i] bytes, at least 1; `root` is host memory with room for
 * count * 32 bytes. Waits for the result. Returns RO_ERR_UNSUPPORTED in host memory. */
RO_API RO_MUST_USE ro_status ro_tree_roots(ro_ctx *ctx, int64_t count, const void *const *data,
                                           const size_t *size, uint8_t *root);

#ifdef __cplusplus
}
#endif
#endif
