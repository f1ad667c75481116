/* A confined child of the daemon can read and write its own folders, and nothing else. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "provide_dir.h"
#include "verde/provide/child.h"

TestSuite(provide_confine, .timeout = 60);

/* An attempt runs in the child, whose current folder holds own/, told/ (which the child may write
 * into), key and ledger. If it fails, errno says why. */
typedef bool (*attempt)(void);

static bool opens(const char *path, int flags) {
    const int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool reads_key(void) {
    return opens("key", O_RDONLY);
}

static bool writes_ledger(void) {
    return opens("ledger", O_WRONLY);
}

static bool lists_folder(void) {
    return opens(".", O_RDONLY | O_DIRECTORY);
}

static bool changes_program(void) {
    return opens("own/program", O_WRONLY);
}

static bool adds_beside_program(void) {
    return opens("own/more", O_WRONLY | O_CREAT);
}

static bool removes_program(void) {
    return unlink("own/program") == 0;
}

static bool takes_key_along(void) {
    return link("key", "told/key") == 0 || rename("key", "told/key") == 0;
}

static bool makes_symlink(void) {
    return symlink("../key", "told/key") == 0;
}

static bool makes_fifo(void) {
    return mkfifo("told/fifo", 0600) == 0;
}

static bool opens_key_for_all(void) {
    return chmod("key", 0666) == 0;
}

static bool changes_own_modes(void) {
    const int fd = open("own/program", O_RDONLY | O_CLOEXEC);
    const bool changed = fchmod(fd, 0) == 0;
    const int error = errno;
    close(fd);
    errno = error;
    return changed;
}

static bool cuts_ledger_off(void) {
    return truncate("ledger", 0) == 0;
}

static bool makes_socket(void) {
    return socket(AF_INET, SOCK_STREAM, 0) >= 0;
}

static bool makes_pair(void) {
    int pair[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
}

static bool makes_process(void) {
    const pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid > 0;
}

static bool becomes_another(void) {
    char *argv[] = {(char[]){"true"}, NULL};
    execv("/bin/true", argv);
    return false;
}

static bool stops_parent(void) {
    return kill(getppid(), SIGSTOP) == 0;
}

static bool bounds_parent(void) {
    const struct rlimit none = {0, 0};
    return prlimit(getppid(), RLIMIT_NOFILE, &none, NULL) == 0;
}

static bool reads_parent(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/mem", (long)getppid());
    return opens(path, O_RDONLY);
}

static bool traces_parent(void) {
    return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == 0;
}

static bool reads_passwords(void) {
    return opens("/etc/passwd", O_RDONLY);
}

static bool uses_old_descriptor(void) {
    return fcntl(9, F_GETFD) >= 0;
}

/* A leak sanitizer has another process trace this one. */
#ifdef __SANITIZE_ADDRESS__
#define TRACED true
#else
#define TRACED false
#endif

/* What must refuse an attempt: Landlock (or something else before it), or the filter of system
 * calls alone. */
typedef enum { BY_LANDLOCK, BY_CALLS, BY_CALLS_UNLESS_TRACED } refuser;

static const struct {
    const char *name;
    attempt attempt;
    refuser by;
} forbidden[] = {
    {"reads the key", reads_key, BY_LANDLOCK},
    {"writes the ledger", writes_ledger, BY_LANDLOCK},
    {"lists the folder", lists_folder, BY_LANDLOCK},
    {"changes its program", changes_program, BY_LANDLOCK},
    {"adds to its folder", adds_beside_program, BY_LANDLOCK},
    {"removes its program", removes_program, BY_LANDLOCK},
    {"takes the key along", takes_key_along, BY_LANDLOCK},
    {"makes a symbolic link", makes_symlink, BY_LANDLOCK},
    {"makes a pipe", makes_fifo, BY_LANDLOCK},
    {"reads /etc/passwd", reads_passwords, BY_LANDLOCK},
    {"reads its parent's memory", reads_parent, BY_LANDLOCK},
    {"changes the key's mode", opens_key_for_all, BY_CALLS},
    {"changes its program's mode", changes_own_modes, BY_CALLS},
    {"cuts the ledger off", cuts_ledger_off, BY_CALLS},
    {"makes a socket", makes_socket, BY_CALLS},
    {"makes a pair of sockets", makes_pair, BY_CALLS},
    {"becomes another program", becomes_another, BY_CALLS},
    {"stops its parent", stops_parent, BY_CALLS},
    {"bounds its parent", bounds_parent, BY_CALLS},
    {"makes a process", makes_process, BY_CALLS_UNLESS_TRACED},
    {"traces its parent", traces_parent, BY_CALLS_UNLESS_TRACED},
};

static bool refuses(const vd_confinement *here, refuser by) {
    return by == BY_LANDLOCK ? here->files : here->calls && (by == BY_CALLS || !TRACED);
}

static void *note_thread(void *user) {
    *(bool *)user = true;
    return NULL;
}

static bool starts_threads(void) {
    pthread_t thread;
    bool ran = false;
    return pthread_create(&thread, NULL, note_thread, &ran) == 0 &&
           pthread_join(thread, NULL) == 0 && ran;
}

static bool does_its_work(void) {
    char said[3];
    vd_err err = {0};
    return opens("own/program", O_RDONLY) && opens("own", O_RDONLY | O_DIRECTORY) &&
           mkdir("told/run", 0700) == 0 &&
           vd_write_file("told/run/result", "done", 4, 0600, &err) == VD_OK &&
           rename("told/run/result", "told/run/other") == 0 && unlink("told/run/other") == 0 &&
           starts_threads() && kill(getpid(), 0) == 0 && write(3, "ok ", 3) == 3 &&
           read(3, said, sizeof said) == 3;
}

/* Writes to descriptor 3 which attempt succeeded and should not have, or "fine". */
static void try_all(pid_t parent) {
    static const char *const reads[] = {"own", NULL}, *const writes[] = {"told", NULL};
    const vd_child_limits limits = {.fds = 1, .parent = parent, .places = {reads, writes, false}};
    const vd_confinement here = vd_confinement_here();
    vd_err err = {0};
    const char *said = "fine";
    if (vd_child_confine(&limits, &err) != VD_OK)
        said = err.text;
    else if (!does_its_work())
        said = "does not do its work";
    else if (uses_old_descriptor())
        said = "uses an old descriptor";
    else
        for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
            errno = 0;
            if (!refuses(&here, forbidden[i].by))
                continue;
            if (forbidden[i].attempt() || (errno != EPERM && errno != EACCES))
                said = forbidden[i].name;
        }
    _exit(write(3, said, strlen(said)) < 0);
}

static void put(const char *path, const char *text) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

Test(provide_confine, a_child_has_its_own_folders_alone, .init = setup, .fini = teardown) {
    int pair[2];
    char said[600] = "";
    cr_assert(chdir(provide_dir) == 0 && mkdir("own", 0700) == 0 && mkdir("told", 0700) == 0);
    put("key", "secret");
    put("ledger", "jobs");
    put("own/program", "program");
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    fflush(NULL);
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        const int mine = dup(pair[1]);
        dup2(mine, 9);
        dup2(mine, 3);
        try_all(parent);
    }
    close(pair[1]);
    cr_assert(read(pair[0], said, 3) == 3 && memcmp(said, "ok ", 3) == 0);
    cr_assert(write(pair[0], "go!", 3) == 3);
    const ssize_t size = read(pair[0], said, sizeof said - 1);
    said[size > 0 ? size : 0] = 0;
    cr_expect_str_eq(said, "fine");
    cr_expect(waitpid(pid, NULL, 0) == pid);
    struct stat info;
    cr_expect(stat("key", &info) == 0 && (info.st_mode & 0777) == 0600);
    cr_expect(stat("ledger", &info) == 0 && info.st_size == 4);
}

/* This signal tells the daemon that a program took too long to read. */
Test(provide_confine, too_many_seconds_end_a_child_by_sigxcpu, .timeout = 300) {
    static const char *const reads[] = {NULL};
    const pid_t parent = getpid(), pid = fork();
    const vd_child_limits limits = {.parent = parent, .cpu_s = 1, .places = {.reads = reads}};
    int ended = 0;
    if (pid == 0) {
        volatile bool goes_on = vd_child_confine(&limits, NULL) == VD_OK;
        while (goes_on)
            continue;
        _exit(1);
    }
    cr_assert(waitpid(pid, &ended, 0) == pid);
    cr_expect(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGXCPU, "%d", ended);
}
