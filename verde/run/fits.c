/* This file compares the needs of a run with this machine's memory and disk. */
#include "verde/run/fits.h"

#include <limits.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>

#include "verde/exec/estimate.h"

uint64_t vd_machine_memory(void) {
    struct sysinfo info;
    return sysinfo(&info) == 0 ? ((uint64_t)info.totalram + info.totalswap) * info.mem_unit
                               : UINT64_MAX;
}

/* Looks at the path, or else at the nearest folder above it that exists. */
static bool look_at_disk(const char *path, struct statvfs *out) {
    char at[PATH_MAX];
    if (snprintf(at, sizeof at, "%s", path && *path ? path : ".") >= (int)sizeof at)
        return false;
    while (statvfs(at, out) != 0) {
        char *slash = strrchr(at, '/');
        if (!slash)
            return statvfs(".", out) == 0;
        slash[slash == at] = 0; /* keeps the "/" of "/name" */
        if (slash == at && statvfs(at, out) != 0)
            return false;
    }
    return true;
}

bool vd_disk_of(const char *path, uint64_t *all, uint64_t *left) {
    struct statvfs disk;
    if (!look_at_disk(path, &disk))
        return false;
    *all = (uint64_t)disk.f_blocks * disk.f_frsize;
    *left = (uint64_t)disk.f_bavail * disk.f_frsize;
    return true;
}

vd_status vd_check_memory(const char *job, const vd_loaded *loaded, vd_err *err) {
    char state[32], memory[32];
    const uint64_t bytes = vd_state_bytes(&loaded->program), has = vd_machine_memory();
    if (bytes <= has || !ro_ctx_in_host_memory(loaded->ro))
        return VD_OK;
    vd_print_size(bytes, state);
    vd_print_size(has, memory);
    return vd_fail(err, VD_ERR_LOCAL,
                   "%s: its weights, and what the optimizer keeps, take %s of memory, and this "
                   "machine has %s with its swap",
                   job, state, memory);
}

vd_status vd_check_disk(const char *job, const char *dir, const vd_program *program, long keep,
                        vd_err *err) {
    char needs[32], has[32];
    uint64_t all, left;
    const uint64_t bytes = vd_estimate_disk(program, keep);
    if (!vd_disk_of(dir, &all, &left) || bytes <= all)
        return VD_OK;
    const bool fewer = vd_estimate_disk(program, VD_KEEP_MIN) <= all;
    vd_print_size(bytes, needs);
    vd_print_size(all, has);
    return vd_fail(err, VD_ERR_LOCAL, "%s: its checkpoints take %s, and the disk of %s has %s%s",
                   job, needs, dir, has,
                   fewer ? " in all; --keep N keeps at most N checkpoints" : " in all");
}
