/* Loads librepops_blas, multiplies with several threads, and unloads it: no thread, mapping or fork
 * handler may remain. Usage: blas_loader LIBRARY. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 300 };

typedef void sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int,
                   float, float *, int);

static int count_threads(void) {
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry;
    int count = 0;
    while (dir && (entry = readdir(dir)) != NULL)
        count += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
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

static int multiply(const char *path) {
    static float a[N * N], c[N * N];
    void *library = dlopen(path, RTLD_NOW);
    sgemm *product;
    if (!library)
        return fprintf(stderr, "%s\n", dlerror()), 0;
    *(void **)&product = dlsym(library, "cblas_sgemm");
    for (int i = 0; i < N * N; i++)
        a[i] = i % N == i / N;
    product(101, 111, 111, N, N, N, 2, a, N, a, N, 0, c, N);
    const int threads = count_threads();
    if (threads < 2)
        return fprintf(stderr, "one thread only: the test shows nothing\n"), 0;
    return dlclose(library) == 0 && c[0] == 2 && c[1] == 0;
}

int main(int argc, char **argv) {
    for (int round = 0; round < 3; round++) {
        if (argc < 2 || !multiply(argv[1]))
            return 1;
        if (count_threads() != 1 || is_mapped("librepops_blas"))
            return fprintf(stderr, "something stays after dlclose\n"), 1;
        const pid_t child = fork();
        int status = 1;
        if (child == 0)
            _exit(multiply(argv[1]) ? 0 : 1);
        if (waitpid(child, &status, 0) != child || status != 0)
            return fprintf(stderr, "the child fails\n"), 1;
    }
    return 0;
}
