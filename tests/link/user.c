/* A program in C and in C++: prints the workload's hash. Fails if a thread remains. */
#include "workload.h"

#include <dirent.h>

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

int main(void) {
    const workload_api api = WORKLOAD_LINKED;
    const unsigned long long hash = workload_once(&api, 3);
    if (strcmp(ro_version(), RO_VERSION) != 0 || hash == 0)
        return 1;
    if (count_threads() != 1) {
        fprintf(stderr, "%d threads after ro_ctx_destroy\n", count_threads());
        return 1;
    }
    printf("%016llx\n", hash);
    return 0;
}
