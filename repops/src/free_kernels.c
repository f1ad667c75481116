/* Lists the free kernels of this build. `make demo` links absent/free_kernels.c instead: the demo
 * runs no free kernel, and they take half of the compilation. */
#include <string.h>

#include "repops/src/free.h"

ro_free_find ro_free_kernel_f32_scalar, ro_free_kernel_f64_scalar;
#if defined(__x86_64__)
ro_free_find ro_free_kernel_f32_avx2, ro_free_kernel_f64_avx2;
ro_free_find ro_free_kernel_f32_avx512, ro_free_kernel_f64_avx512;
#elif defined(__aarch64__)
ro_free_find ro_free_kernel_f32_neon, ro_free_kernel_f64_neon;
#endif

static const struct {
    const char *backend;
    ro_free_find *f32, *f64;
} table[] = {
#if defined(__x86_64__)
    {"avx512", ro_free_kernel_f32_avx512, ro_free_kernel_f64_avx512},
    {"avx2", ro_free_kernel_f32_avx2, ro_free_kernel_f64_avx2},
#elif defined(__aarch64__)
    {"neon", ro_free_kernel_f32_neon, ro_free_kernel_f64_neon},
#endif
    {"scalar", ro_free_kernel_f32_scalar, ro_free_kernel_f64_scalar},
};

ro_free_find *ro_free_kernels(const char *backend, int f32) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].backend, backend) == 0)
            return f32 ? table[i].f32 : table[i].f64;
    return NULL;
}
