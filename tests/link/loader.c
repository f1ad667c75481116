/* A program that loads the library at run time and unloads it: nothing may remain. Usage: loader
 * LIBRARY [OTHER]. OTHER is loaded first and stays: a library that changes the floating-point modes
 * of whoever loads it must change no bit, and its modes must stay as they were. */
#include "workload.h"

#include <dlfcn.h>
#include <fenv.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
static unsigned modes(void) {
    return _mm_getcsr() & ~0x3fu;
}
#else
static unsigned modes(void) {
    return (unsigned)fegetround();
}
#endif

static void *find(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol)
        fprintf(stderr, "%s\n", dlerror());
    return symbol;
}

static int is_mapped(const char *name) {
    char line[600];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, name) != NULL;
    if (maps)
        fclose(maps);
    return found;
}

int main(int argc, char **argv) {
    workload_api api;
    if (argc < 2 || (argc > 2 && !dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL)))
        return 1;
    const unsigned before = modes();
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    *(void **)&api.create = find(library, "ro_ctx_create");
    *(void **)&api.destroy = find(library, "ro_ctx_destroy");
    *(void **)&api.infer = find(library, "ro_infer");
    *(void **)&api.run = find(library, "ro_run");
    *(void **)&api.attr_f32 = find(library, "ro_attr_f32");
    const unsigned long long hash = workload_once(&api, 3);
    const unsigned after = modes();
    if (dlclose(library) != 0 || is_mapped("librepops.so"))
        return fprintf(stderr, "the library stays after dlclose\n"), 1;
    if (after != before)
        return fprintf(stderr, "modes were %x, are %x\n", before, after), 1;
    printf("%016llx %x\n", hash, before);
    return 0;
}
