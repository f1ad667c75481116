/* Clocks and resource counters of this process. */
#include <sys/resource.h>
#include <time.h>

#include "verde/base/internal.h"

double vd_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

double vd_cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

/* Reads VmHWM of /proc, which belongs to this program alone. ru_maxrss survives exec, so a small
 * program started by a large one would inherit the larger peak. */
static bool peak_of_program(size_t *bytes) {
    char line[256];
    unsigned long long kib;
    FILE *from = fopen("/proc/self/status", "re");
    bool found = false;
    while (from && !found && fgets(line, sizeof line, from))
        found = sscanf(line, "VmHWM: %llu kB", &kib) == 1;
    if (from)
        fclose(from);
    if (found)
        *bytes = (size_t)kib * 1024;
    return found;
}

size_t vd_peak_bytes(void) {
    struct rusage usage;
    size_t bytes;
    if (peak_of_program(&bytes))
        return bytes;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024; /* in KiB on Linux */
}
