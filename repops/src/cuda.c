/* Finds librepops_cuda.so and opens a device: librepops itself needs no CUDA. */
#include "repops/src/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *open_beside(const char *program, const char *folder) {
    char path[4096];
    const char *slash = strrchr(program, '/');
    const int length = slash ? (int)(slash - program) + 1 : 0;
    const int size = snprintf(path, sizeof path, "%.*s%s" RO_CUDA_LIBRARY, length, program, folder);
    return length > 0 && size < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Where REPOPS_CUDA_LIBRARY says; beside this library; in the lib that goes with a program's bin;
 * where the system looks. */
static void *open_library(void) {
    const char *named = getenv("REPOPS_CUDA_LIBRARY");
    Dl_info self;
    void *library = NULL;
    if (named && *named)
        return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    if (dladdr((void *)(uintptr_t)&ro_cuda_open, &self) && self.dli_fname) {
        library = open_beside(self.dli_fname, "");
        library = library ? library : open_beside(self.dli_fname, "../lib/");
    }
    return library ? library : dlopen(RO_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

/* The library stays loaded: a CUDA runtime cannot be unloaded. */
ro_status ro_cuda_open(int index, ro_device **out, char *why, size_t why_size) {
    ro_cuda_open_function *open_device;
    void *library = open_library();
    *out = NULL;
    if (!library) {
        snprintf(why, why_size, "cuda: %s", dlerror());
        return RO_ERR_DEVICE;
    }
    void *symbol = dlsym(library, "ro_cuda_open_device");
    if (!symbol) {
        snprintf(why, why_size, "cuda: %s", dlerror());
        return RO_ERR_DEVICE;
    }
    memcpy(&open_device, &symbol, sizeof open_device);
    return open_device(RO_VERSION, index, out, why, why_size);
}
