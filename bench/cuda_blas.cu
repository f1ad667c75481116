#include "bench/cuda_blas.h"

#include <cuda_profiler_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Constants of cublas_v2.h: machines that have the library may lack the header. */
typedef void *cublas;
enum { OP_N = 0, OP_T = 1, DEFAULT_MATH = 0 /* FP32; TF32 would be another mode */ };
static int (*create)(cublas *handle);
static int (*destroy)(cublas handle);
static int (*set_math)(cublas handle, int mode);
static int (*get_version)(cublas handle, int *version);
static int (*sgemm)(cublas handle, int of_a, int of_b, int m, int n, int k, const float *alpha,
                    const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                    int ldc);
static cublas handle;

/* Opens libcublasLt from the folder of libcublas, which may not look for it there. */
static void *open_path(const char *path) {
    char beside[4096];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *rest = strstr(name, ".so");
    if (rest && snprintf(beside, sizeof beside, "%.*slibcublasLt%s", (int)(name - path), path,
                         rest) < (int)sizeof beside)
        (void)dlopen(beside, RTLD_NOW | RTLD_GLOBAL);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_library() {
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    const char *named = getenv("BENCH_CUBLAS");
    void *library = named && *named ? open_path(named) : nullptr;
    for (const char *name : names)
        library = library ? library : open_path(name);
    return library;
}

template <class F> static bool find(void *library, const char *name, F *function) {
    void *symbol = dlsym(library, name);
    if (!symbol)
        fprintf(stderr, "bench: cuBLAS without %s: %s\n", name, dlerror());
    memcpy(function, &symbol, sizeof symbol);
    return symbol;
}

/* Returns whether a call succeeded. Codes are those of cublasStatus_t: 1 not initialised, 3 no
 * memory, 8 not for this architecture, 13 execution failed. */
static bool is_done(int code, const char *name) {
    if (code != 0)
        fprintf(stderr, "bench: %s failed: status %d\n", name, code);
    return code == 0;
}

int blas_open(void) {
    void *library = open_library();
    if (!library) {
        fprintf(stderr, "bench: no cuBLAS: %s\n", dlerror());
        return 0;
    }
    return find(library, "cublasCreate_v2", &create) &&
           find(library, "cublasDestroy_v2", &destroy) &&
           find(library, "cublasSetMathMode", &set_math) &&
           find(library, "cublasGetVersion_v2", &get_version) &&
           find(library, "cublasSgemm_v2", &sgemm) && is_done(create(&handle), "cublasCreate") &&
           is_done(set_math(handle, DEFAULT_MATH), "cublasSetMathMode");
}

int blas_version(void) {
    int version = 0;
    return get_version(handle, &version) == 0 ? version : 0;
}

/* cuBLAS is column-major, so this asks for the transposed product, with the operands exchanged. */
int blas_product(int trans, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                 float *c) {
    const float one = 1, zero = 0;
    return is_done(sgemm(handle, trans & 2 ? OP_T : OP_N, trans & 1 ? OP_T : OP_N, (int)n, (int)m,
                         (int)k, &one, b, (int)(trans & 2 ? k : n), a, (int)(trans & 1 ? m : k),
                         &zero, c, (int)n),
                   "cublasSgemm");
}

int blas_wait(void) {
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess)
        fprintf(stderr, "bench: after cuBLAS: %s\n", cudaGetErrorString(error));
    return error == cudaSuccess;
}

void blas_close(void) {
    (void)destroy(handle);
}

void profile_from_here(void) {
    (void)cudaProfilerStart();
}

void profile_to_here(void) {
    (void)cudaProfilerStop();
}
