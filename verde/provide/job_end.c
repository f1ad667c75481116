/* Determines how a job ended, from its files and the exit status of its process. */
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verde/provide/internal.h"

/* Reads the last lines of the job's output, without trailing line ends. */
static void read_last_lines(const vd_daemon *daemon, const char *id, char *out, size_t size) {
    char path[1200];
    vd_job_path(daemon, id, VD_JOB_LOG, path);
    int fd;
    uint64_t bytes;
    *out = 0;
    if (vd_open_file(path, &fd, &bytes, NULL) != VD_OK)
        return;
    const uint64_t from = bytes < size ? 0 : bytes - (size - 1);
    const ssize_t read = pread(fd, out, size - 1, (off_t)from);
    size_t got = read < 0 ? 0 : (size_t)read;
    close(fd);
    while (got && out[got - 1] == '\n')
        got--;
    out[got] = 0;
    for (size_t i = 0; i < got; i++) /* the text goes into JSON */
        if ((out[i] < ' ' && out[i] != '\n') || out[i] > '~')
            out[i] = '?';
}

/* Reads the result; a job of many programs has a root, but no state. */
static bool read_result(const vd_daemon *daemon, vd_job_record *job) {
    char path[1200];
    vd_buf text = {0};
    uint8_t bytes[32];
    vd_job_path(daemon, job->id, VD_JOB_RESULT, path);
    const bool read = vd_read_file(path, 2 * VD_ID_SIZE, &text, NULL) == VD_OK;
    const bool has_state = text.size == 2 * VD_ID_SIZE;
    const bool whole = read && (has_state || text.size == VD_ID_SIZE);
    job->final_state[0] = 0;
    if (whole)
        snprintf(job->run_root, VD_ID_SIZE, "%.64s", (const char *)text.data);
    if (whole && has_state)
        snprintf(job->final_state, VD_ID_SIZE, "%.64s", (const char *)text.data + VD_ID_SIZE);
    vd_buf_free(&text);
    return whole && vd_unhex(job->run_root, bytes, 32) &&
           (!has_state || vd_unhex(job->final_state, bytes, 32));
}

/* Returns true if the disk is full: then the child could not write why it ended. */
static bool disk_is_full(const vd_daemon *daemon) {
    enum { FULL_BYTES = 1 << 20 };
    struct statvfs disk;
    return statvfs(daemon->options.dir, &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize < FULL_BYTES;
}

static void say_failure(const vd_daemon *daemon, vd_running *r, int status) {
    char said[VD_LAST_LINES] = "";
    vd_job_record *job = &r->job;
    job->state = VD_JOB_FAILED;
    read_last_lines(daemon, job->id, said, sizeof said);
    if (r->why)
        snprintf(job->error, sizeof job->error, "%s", r->why);
    else if (WIFSIGNALED(status))
        snprintf(job->error, sizeof job->error, "ended by signal %d (%s)%s%s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)), *said ? "; it said last: " : "", said);
    else
        snprintf(job->error, sizeof job->error, "%s",
                 *said                  ? said
                 : disk_is_full(daemon) ? "ended without a word: this provider's disk is full"
                                        : "ended without a result or a word");
}

/* A result counts even if the job was being cancelled. */
void vd_job_end(const vd_daemon *daemon, vd_running *r, int status, bool cancelled) {
    r->job.error[0] = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && read_result(daemon, &r->job))
        r->job.state = VD_JOB_DONE;
    else if (cancelled && r->killed)
        r->job.state = VD_JOB_CANCELLED;
    else
        say_failure(daemon, r, status);
}
