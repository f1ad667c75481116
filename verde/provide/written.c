/* Measures the disk space of a job: the files in its folder that its processes write. */
#include <ftw.h>
#include <sys/stat.h>

#include "verde/provide/internal.h"

void vd_job_path(const vd_daemon *daemon, const char *id, const char *name, char path[1200]) {
    snprintf(path, 1200, "%.1000s/jobs/%.64s%s%s", daemon->options.dir, id, *name ? "/" : "", name);
}

enum { OPEN_MAX = 16 }; /* folders open at a time */

static _Thread_local int64_t sum;

static int64_t blocks_of(int64_t size) {
    return (size + VD_DISK_BLOCK - 1) / VD_DISK_BLOCK * VD_DISK_BLOCK;
}

static int add(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)path, (void)at;
    if (kind == FTW_F && S_ISREG(info->st_mode))
        sum += blocks_of(info->st_size);
    return 0;
}

int64_t vd_job_written(const vd_daemon *daemon, const char *id) {
    static const char *const names[] = {VD_JOB_RUN, VD_JOB_TOLD, VD_JOB_LOG, VD_JOB_ANSWERS};
    char path[1200];
    sum = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        vd_job_path(daemon, id, names[i], path);
        nftw(path, add, OPEN_MAX, FTW_PHYS);
    }
    return sum;
}

int64_t vd_job_disk_most(int64_t disk) {
    enum { SPARE = 16 << 20 };
    return disk > INT64_MAX - disk / 8 - SPARE ? INT64_MAX : disk + disk / 8 + SPARE;
}
