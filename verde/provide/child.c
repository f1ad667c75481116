/* This file starts this program again as a child, and limits what the child may use. */
#include "verde/provide/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "verde/commit/commit.h"

extern char **environ;

enum {
    ENVIRONMENT_MAX = 64,
    FILES_MAX = 4096, /* open files of a child: each data tensor is mapped */
};

/* Chooses the variables that computing may need: secrets in the daemon's stay outside. */
static int choose_environment(char *chosen[ENVIRONMENT_MAX + 1]) {
    static const char *const wanted[] = {"LD_LIBRARY_PATH=", "CUDA_",          "NVIDIA_",
                                         "ASAN_OPTIONS=",    "UBSAN_OPTIONS=", "REPOPS_"};
    int count = 0;
    for (char **at = environ; *at && count < ENVIRONMENT_MAX; at++)
        for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
            if (strncmp(*at, wanted[i], strlen(wanted[i])) == 0) {
                chosen[count++] = *at;
                break;
            }
    chosen[count] = NULL;
    return count;
}

/* Descriptors are first moved aside: one may already have the number meant for another. */
static int add_files(posix_spawn_file_actions_t *actions, const char *log, const int *fds,
                     int count) {
    enum { ASIDE = 200 };
    int error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(
            actions, 1, log,
            O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0600);
    if (!error)
        error = posix_spawn_file_actions_adddup2(actions, 1, 2);
    for (int i = 0; !error && i < count; i++)
        error = posix_spawn_file_actions_adddup2(actions, fds[i], ASIDE + i);
    for (int i = 0; !error && i < count; i++)
        error = posix_spawn_file_actions_adddup2(actions, ASIDE + i, 3 + i);
    return error;
}

/* The child gets its own process group: Ctrl-C in the terminal reaches only the daemon. */
static int set_attributes(posix_spawnattr_t *attributes) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    if (!error)
        error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error)
        error = posix_spawnattr_setsigdefault(attributes, &all);
    return error ? error : posix_spawnattr_setpgroup(attributes, 0);
}

vd_status vd_child_start(char *const *argv, const char *log, const int *fds, int count, pid_t *out,
                         vd_err *err) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *environment[ENVIRONMENT_MAX + 1];
    choose_environment(environment);
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return vd_fail(err, VD_ERR_LOCAL, "could not start a child: %s", strerror(error));
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = add_files(&actions, log, fds, count);
        if (!error)
            error = set_attributes(&attributes);
        if (!error)
            error = posix_spawn(out, argv[0], &actions, &attributes, argv, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error ? vd_fail(err, VD_ERR_LOCAL, "could not start a child: %s", strerror(error))
                 : VD_OK;
}

/* ---- in the child ---- */

/* An address sanitizer maps terabytes for itself, which no limit may forbid. */
#ifdef __SANITIZE_ADDRESS__
#define LIMIT_MEMORY false
#else
#define LIMIT_MEMORY true
#endif

static bool limit(int resource, uint64_t value) {
    const struct rlimit to = {value, value};
    return setrlimit(resource, &to) == 0;
}

/* The soft limit sends SIGXCPU; the hard one would send SIGKILL, which does not say why. */
static bool limit_cpu(uint64_t seconds) {
    const struct rlimit to = {seconds, seconds + 1};
    return setrlimit(RLIMIT_CPU, &to) == 0;
}

static bool set_limits(const vd_child_limits *l) {
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) == 0 &&
           limit(RLIMIT_NOFILE, files.rlim_max < FILES_MAX ? files.rlim_max : FILES_MAX) &&
           limit(RLIMIT_CORE, 0) &&
           (!LIMIT_MEMORY || l->memory <= 0 || limit(RLIMIT_DATA, (uint64_t)l->memory)) &&
           (l->cpu_s <= 0 || limit_cpu((uint64_t)l->cpu_s)) &&
           (l->file_bytes <= 0 || limit(RLIMIT_FSIZE, (uint64_t)l->file_bytes));
}

vd_status vd_child_confine(const vd_child_limits *l, vd_err *err) {
    vd_hash hash;
    if (close_range((unsigned)(3 + l->fds), ~0U, 0) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "could not close descriptors: %s", strerror(errno));
    if (!set_limits(l) || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "could not set limits: %s", strerror(errno));
    if (getppid() != (pid_t)l->parent) /* it ended before prctl */
        return vd_fail(err, VD_ERR_LOCAL, "the daemon has ended");
    if (!vd_hash_tagged("", "", 0, &hash)) /* OpenSSL reads its settings at its first use */
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    return vd_confine(&l->places, err);
}
