/* Loads librepops_cuda.so and opens a device, so that librepops itself needs no CUDA. */
#include "repops/src/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "repops/modes.h"

/* Where to write why the library could not be opened; the first file that exists decides. */
typedef struct {
    char *why;
    size_t size;
} reason;

static void *open_at(const char *path, const reason *r) {
    const uint64_t modes = ro_modes_set(); /* loading a library may change the modes */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ro_modes_restore(modes);
    const char *error = library ? NULL : dlerror();
    if (error && *r->why == '\0')
        snprintf(r->why, r->size, "cuda: %s", error);
    return library;
}

static void *open_beside(const char *program, const char *folder, const reason *r) {
    char path[4096];
    const char *slash = strrchr(program, '/');
    const int length = slash ? (int)(slash - program) + 1 : 0;
    const int size = snprintf(path, sizeof path, "%.*s%s" RO_CUDA_LIBRARY, length, program, folder);
    const int there = length > 0 && size < (int)sizeof path && access(path, F_OK) == 0;
    return there ? open_at(path, r) : NULL;
}

/* Returns the path of the library or program that contains this code. For a program dladdr gives
 * the name it was started by, which may not be its path. */
static const char *this_file(char *room, size_t size) {
    Dl_info self;
    if (!dladdr((void *)(uintptr_t)&ro_cuda_open, &self) || !self.dli_fname)
        return NULL;
    if (strcmp(self.dli_fname, program_invocation_name) != 0)
        return self.dli_fname;
    const ssize_t length = readlink("/proc/self/exe", room, size - 1);
    if (length < 0)
        return self.dli_fname;
    room[length] = '\0';
    return room;
}

/* Opens librepops_cuda.so: REPOPS_CUDA_LIBRARY if it is set; else beside this library; in lib
 * beside the program's bin; where the system looks. */
static void *open_library(const reason *r) {
    char room[4096];
    const char *named = getenv("REPOPS_CUDA_LIBRARY"), *self = this_file(room, sizeof room);
    void *library = NULL;
    if (named && *named)
        return open_at(named, r);
    if (self) {
        library = open_beside(self, "", r);
        library = library ? library : open_beside(self, "../lib/", r);
    }
    return library ? library : open_at(RO_CUDA_LIBRARY, r);
}

/* The library stays loaded: a CUDA runtime cannot be unloaded. */
ro_status ro_cuda_open(int index, const ro_options *options, ro_device **out, char *why,
                       size_t why_size) {
    ro_cuda_open_function *open_device;
    *out = NULL;
    *why = '\0';
    void *library = open_library(&(reason){why, why_size});
    if (!library)
        return RO_ERR_DEVICE;
    void *symbol = dlsym(library, "ro_cuda_open_device");
    if (!symbol) {
        snprintf(why, why_size, "cuda: %s", dlerror());
        return RO_ERR_DEVICE;
    }
    memcpy(&open_device, &symbol, sizeof open_device);
    return open_device(ro_build(), index, options, out, why, why_size);
}
