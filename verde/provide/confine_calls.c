/* This file builds the filter of system calls that a child may not make. */
#include "verde/provide/confine_calls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Call numbers, and the position of their arguments, differ between processors. */
#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

/* The leak sanitizer runs a process that stops the other threads. */
#ifdef __SANITIZE_ADDRESS__
#define SEARCHES_LEAKS 1
#else
#define SEARCHES_LEAKS 0
#endif

/* Newer calls, whose numbers are the same on all processors. */
enum {
    CALL_PIDFD_SEND_SIGNAL = 424,
    CALL_IO_URING_SETUP = 425,
    CALL_IO_URING_REGISTER = 427,
    CALL_PIDFD_OPEN = 434,
    CALL_CLONE3 = 435,
    CALL_PIDFD_GETFD = 438,
    CALL_PROCESS_MADVISE = 440,
    CALL_FCHMODAT2 = 452,
    CALL_SETXATTRAT = 463,
    CALL_REMOVEXATTRAT = 466,
    FILTER_MAX = 256,
    X32_BIT = 0x40000000, /* x86-64 has a second set of call numbers */
};

/* Landlock only restricts opening files: modes, owners and times could still be changed. The child
 * needs no new sockets: questions and answers use sockets that are already open. */
static const int refused[] = {
    /* sockets, and io_uring, which reaches files and the network without further calls */
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    CALL_IO_URING_SETUP,
    CALL_IO_URING_REGISTER,
    /* other programs and processes */
    SYS_execve,
    SYS_execveat,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_setns,
    SYS_unshare,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_setpriority,
    CALL_PIDFD_SEND_SIGNAL,
    CALL_PIDFD_OPEN,
    CALL_PIDFD_GETFD,
    CALL_PROCESS_MADVISE,
    SYS_migrate_pages,
    SYS_move_pages,
    SYS_ioprio_set,
    SYS_setpgid,
    SYS_setsid,
    /* memory and messages that processes of one user share, and keys */
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_semget,
    SYS_semctl,
    SYS_msgget,
    SYS_msgctl,
    SYS_mq_open,
    SYS_mq_unlink,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    /* changes of files */
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_truncate,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SYS_mknodat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_inotify_add_watch,
    CALL_FCHMODAT2,
    CALL_SETXATTRAT,
    CALL_REMOVEXATTRAT,
#ifdef SYS_chmod /* older calls, which aarch64 lacks */
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_mknod,
    SYS_link,
    SYS_symlink,
    SYS_fork,
    SYS_vfork,
#endif
    /* the kernel, and mounts */
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_quotactl,
    SYS_syslog,
    SYS_personality,
#if SEARCHES_LEAKS == 0
    SYS_ptrace,
#endif
};

/* Allowed for the process itself: another process of the same user could be slowed or limited. */
static const int of_itself[] = {SYS_prlimit64, SYS_sched_setaffinity, SYS_sched_setscheduler,
                                SYS_sched_setparam, SYS_sched_setattr};

typedef struct {
    struct sock_filter line[FILTER_MAX];
    unsigned short count;
} filter;

_Static_assert(2 * sizeof refused / sizeof refused[0] + 7 * sizeof of_itself / sizeof of_itself[0] +
                       32 <
                   FILTER_MAX,
               "a filter has so many lines");

static void put(filter *f, struct sock_filter line) {
    f->line[f->count++] = line;
}

static void put_load(filter *f, size_t offset) {
    put(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void put_return(filter *f, uint32_t what) {
    put(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

/* Ends the call with `what` if the loaded word equals `value` (`is`), or if it does not. */
static void put_if(filter *f, uint32_t value, bool is, uint32_t what) {
    put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, !is, is));
    put_return(f, what);
}

/* Skips the next `lines`, all of whose paths end the filter, unless the call is this one. */
static void put_begin(filter *f, int call, uint8_t lines) {
    put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, lines));
}

/* Returns the offset of an argument's low word, on a little-endian machine. */
static size_t argument(int index) {
    return offsetof(struct seccomp_data, args) + 8 * (size_t)index;
}

/* Allows a call only with the process's own id, or (`zero`) 0, which means the caller. */
static void put_self(filter *f, int call, bool zero) {
    const uint32_t fine = SECCOMP_RET_ALLOW, no = SECCOMP_RET_ERRNO | EPERM;
    put_begin(f, call, zero ? 6 : 4);
    put_load(f, argument(0));
    if (zero)
        put_if(f, 0, true, fine);
    put_if(f, (uint32_t)getpid(), true, fine);
    put_return(f, no);
}

/* Allows clone for threads, not for processes. */
static void put_clone(filter *f) {
    put_begin(f, SYS_clone, 4);
    put_load(f, argument(0));
    put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
    put_return(f, SECCOMP_RET_ALLOW);
    put_return(f, SECCOMP_RET_ERRNO | EPERM);
}

static void fill(filter *f) {
    const uint32_t no = SECCOMP_RET_ERRNO | EPERM;
    put_load(f, offsetof(struct seccomp_data, arch));
    put_if(f, ARCHITECTURE, false, SECCOMP_RET_KILL_PROCESS);
    put_load(f, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, X32_BIT, 0, 1));
    put_return(f, no);
#endif
    put_if(f, CALL_CLONE3, true, SECCOMP_RET_ERRNO | ENOSYS); /* libc then falls back to clone */
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        put_if(f, (uint32_t)refused[i], true, no);
    put_self(f, SYS_kill, false);
    put_self(f, SYS_tgkill, false);
    for (size_t i = 0; i < sizeof of_itself / sizeof of_itself[0]; i++)
        put_self(f, of_itself[i], true);
    if (!SEARCHES_LEAKS)
        put_clone(f);
    put_return(f, SECCOMP_RET_ALLOW);
}

bool vd_calls_can_be_refused(void) {
    const uint32_t action = SECCOMP_RET_ERRNO;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

bool vd_calls_refuse(void) {
    filter f = {.count = 0};
    fill(&f);
    const struct sock_fprog program = {f.count, f.line};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

#else

bool vd_calls_can_be_refused(void) {
    return false;
}

bool vd_calls_refuse(void) {
    errno = ENOSYS;
    return false;
}

#endif
