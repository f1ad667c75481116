/* This file allocates, copies and frees tensors where the executor computes. */
#include "verde/exec/memory.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "repops/device.h"
#include "verde/exec/exec.h"

void vd_keep_pages(void) {
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_ARENA_MAX, 1);
}

static bool in_host(const ro_ctx *ro) {
    return !ro || ro_ctx_in_host_memory(ro);
}

void *vd_memory_alloc(ro_ctx *ro, size_t size) {
    return in_host(ro) ? aligned_alloc(64, (size + 63) / 64 * 64) : ro_alloc(ro, size);
}

void vd_memory_free(ro_ctx *ro, void *block) {
    if (in_host(ro))
        free(block);
    else
        ro_free(ro, block);
}

static vd_status host_copy(void *to, const void *from, size_t size) {
    memcpy(to, from, size);
    return VD_OK;
}

static vd_status done(ro_ctx *ro, ro_status status, vd_err *err) {
    return status == RO_OK ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro));
}

vd_status vd_memory_read(ro_ctx *ro, void *to, const void *from, size_t size, vd_err *err) {
    return in_host(ro) ? host_copy(to, from, size) : done(ro, ro_read(ro, to, from, size), err);
}

vd_status vd_memory_write(ro_ctx *ro, void *to, const void *from, size_t size, vd_err *err) {
    return in_host(ro) ? host_copy(to, from, size) : done(ro, ro_write(ro, to, from, size), err);
}

vd_status vd_memory_copy(ro_ctx *ro, void *to, const void *from, size_t size, vd_err *err) {
    return in_host(ro) ? host_copy(to, from, size) : done(ro, ro_copy(ro, to, from, size), err);
}

const void *vd_memory_in_host(ro_ctx *ro, const void *data, size_t size, void **copy, vd_err *err) {
    *copy = NULL;
    if (in_host(ro))
        return data;
    *copy = malloc(size ? size : 1);
    if (!*copy) {
        (void)vd_fail(err, VD_ERR_LOCAL, "out of memory: %zu bytes", size);
        return NULL;
    }
    return vd_memory_read(ro, *copy, data, size, err) == VD_OK ? *copy : NULL;
}
