/* This file restricts with Landlock which files a child can open. */
#include "verde/provide/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verde/provide/confine_calls.h"

/* The header linux/landlock.h of Debian 12 ends at version 2 of Landlock. Later versions add: */
#define ACCESS_TRUNCATE  (UINT64_C(1) << 14) /* version 3 */
#define ACCESS_IOCTL_DEV (UINT64_C(1) << 15) /* version 5 */
#define NET_BIND_CONNECT UINT64_C(3)         /* version 4: TCP */
#define SCOPES           UINT64_C(3)         /* version 6: abstract sockets, signals */

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* Excludes links, devices, sockets and pipes: they could mislead whoever opens the folder later. */
#define WRITES                                                                                     \
    (READS | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                       \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |  \
     ACCESS_TRUNCATE)
#define OF_FILES                                                                                   \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_EXECUTE |   \
     ACCESS_TRUNCATE | ACCESS_IOCTL_DEV)

static int landlock_version(void) {
    const long version =
        syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? (int)version : 0;
}

vd_confinement vd_confinement_here(void) {
    return (vd_confinement){landlock_version() > 0, vd_calls_can_be_refused()};
}

/* ---- files ---- */

typedef struct {
    int fd;          /* descriptor of the rules */
    uint64_t access; /* all kinds of access that need a rule */
} ruleset;

static bool make_rules(ruleset *rules, int version) {
    struct {
        uint64_t files, net, scoped;
    } handled = {.files = LANDLOCK_ACCESS_FS_MAKE_SYM | (LANDLOCK_ACCESS_FS_MAKE_SYM - 1),
                 .net = version >= 4 ? NET_BIND_CONNECT : 0,
                 .scoped = version >= 6 ? SCOPES : 0};
    if (version >= 2)
        handled.files |= LANDLOCK_ACCESS_FS_REFER;
    if (version >= 3)
        handled.files |= ACCESS_TRUNCATE;
    if (version >= 5)
        handled.files |= ACCESS_IOCTL_DEV;
    const size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    rules->access = handled.files;
    rules->fd = (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0);
    return rules->fd >= 0;
}

static bool allow(const ruleset *rules, const char *path, uint64_t access) {
    struct stat info;
    struct landlock_path_beneath_attr rule = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
    if (rule.parent_fd < 0)
        return errno == ENOENT;
    const bool known = fstat(rule.parent_fd, &info) == 0;
    rule.allowed_access = access & rules->access;
    if (known && !S_ISDIR(info.st_mode))
        rule.allowed_access &= OF_FILES;
    const bool added = known && syscall(SYS_landlock_add_rule, rules->fd,
                                        LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    close(rule.parent_fd);
    return added;
}

static bool allow_all(const ruleset *rules, const char *const *path, uint64_t access) {
    bool allowed = true;
    for (; path && *path && allowed; path++)
        allowed = allow(rules, *path, access);
    return allowed;
}

/* Allows reading where repops looks for its CUDA library (repops/src/cuda.c) beyond system
 * folders. */
static bool allow_library(const ruleset *rules) {
    char path[4200];
    const char *named = getenv("REPOPS_CUDA_LIBRARY");
    if (named && *named)
        return allow(rules, named, READS | LANDLOCK_ACCESS_FS_EXECUTE);
    const ssize_t length = readlink("/proc/self/exe", path, 4096);
    path[length > 0 ? length : 0] = 0;
    char *slash = strrchr(path, '/');
    if (!slash)
        return true;
    *slash = 0;
    const bool beside = allow(rules, path, READS | LANDLOCK_ACCESS_FS_EXECUTE);
    strcpy(slash, "/../lib");
    return beside && allow(rules, path, READS | LANDLOCK_ACCESS_FS_EXECUTE);
}

/* NVIDIA's library loads others, and reaches the driver through its devices and /proc. */
static bool allow_gpu(const ruleset *rules) {
    static const char *const reads[] = {
        "/usr",  "/lib", "/lib64",       "/opt",        "/etc/ld.so.cache",
        "/proc", "/sys", "/dev/urandom", "/run/nvidia", NULL};
    glob_t devices;
    bool allowed =
        allow_all(rules, reads, READS | LANDLOCK_ACCESS_FS_EXECUTE) && allow_library(rules);
    if (glob("/dev/nvidia*", 0, NULL, &devices) != 0)
        return allowed;
    for (size_t i = 0; i < devices.gl_pathc && allowed; i++)
        allowed = allow(rules, devices.gl_pathv[i],
                        READS | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_IOCTL_DEV);
    globfree(&devices);
    return allowed;
}

static bool confine_files(const vd_allowed *places, int version) {
    static const char *const harmless[] = {"/sys/devices/system/cpu", "/dev/null", NULL};
    ruleset rules;
    if (!make_rules(&rules, version))
        return false;
    bool confined = allow_all(&rules, harmless, READS) && allow_all(&rules, places->reads, READS) &&
                    allow_all(&rules, places->writes, WRITES);
#ifdef __SANITIZE_ADDRESS__
    confined = confined && allow(&rules, "/proc", READS); /* a sanitizer reads its own memory map */
#endif
    if (confined && places->gpu)
        confined = allow_gpu(&rules);
    if (confined)
        confined = syscall(SYS_landlock_restrict_self, rules.fd, 0) == 0;
    const int error = errno;
    close(rules.fd);
    errno = error;
    return confined;
}

vd_status vd_confine(const vd_allowed *places, vd_err *err) {
    const int version = landlock_version();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "could not give up privileges: %s", strerror(errno));
    if (version > 0 && !confine_files(places, version))
        return vd_fail(err, VD_ERR_LOCAL, "could not confine a child to its files: %s",
                       strerror(errno));
    if (vd_calls_can_be_refused() && !vd_calls_refuse())
        return vd_fail(err, VD_ERR_LOCAL, "could not refuse system calls to a child: %s",
                       strerror(errno));
    return VD_OK;
}
