/* This file keeps a dispute's journal on disk. Only one process may have it open. */
#include "verde/client/arbitrate_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static vd_status trouble(const vd_court_journal *j, const char *verb, vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "cannot %s %s: %s", verb, j->path, strerror(errno));
}

/* ---- opening ---- */

static vd_status open_file(vd_court_journal *j, bool make, vd_err *err) {
    struct stat info;
    const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    j->fd = open(j->path, flags | (make ? O_CREAT : 0), 0600);
    if (j->fd < 0 && errno == ENOENT && !make)
        return vd_fail(err, VD_ERR_USAGE, "%s: there is no journal of a dispute or an audit",
                       j->path);
    if (j->fd < 0 || fstat(j->fd, &info) != 0)
        return trouble(j, "open", err);
    if (!S_ISREG(info.st_mode))
        return vd_fail(err, VD_ERR_USAGE, "%s: not a regular file", j->path);
    return vd_sync_parent(j->path, err);
}

/* Locks the file. If it has no name any more, another process has just ended the dispute. */
static vd_status lock(const vd_court_journal *j, vd_err *err) {
    struct stat info;
    if (flock(j->fd, LOCK_EX | LOCK_NB) == 0 && fstat(j->fd, &info) == 0 && info.st_nlink > 0)
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE, "%s: another process is at this dispute or audit", j->path);
}

static vd_status cut(const vd_court_journal *j, uint64_t size, vd_err *err) {
    if (size < j->map.size && (ftruncate(j->fd, (off_t)size) != 0 || fsync(j->fd) != 0))
        return trouble(j, "cut off", err);
    return VD_OK;
}

static vd_status read_journal(vd_court_journal *j, vd_err *err) {
    vd_status status = vd_map_file(j->path, &j->map, err);
    if (status != VD_OK)
        return status;
    if (j->map.size > VD_MINUTES_BYTES_MAX)
        return vd_fail(err, VD_ERR_USAGE, "%s: more than %llu bytes", j->path,
                       (unsigned long long)VD_MINUTES_BYTES_MAX);
    status = vd_minutes_read(j->map.data, (size_t)j->map.size, &j->minutes, err);
    return status == VD_OK ? VD_OK : vd_fail(err, status, "%s: %s", j->path, err->text);
}

vd_status vd_court_journal_open(const char *path, bool make, vd_court_journal *out, vd_err *err) {
    *out = (vd_court_journal){.fd = -1};
    snprintf(out->path, sizeof out->path, "%s", path);
    vd_status status = open_file(out, make, err);
    if (status == VD_OK)
        status = lock(out, err);
    if (status == VD_OK)
        status = read_journal(out, err);
    if (status == VD_OK)
        status = cut(out, out->minutes.whole, err);
    if (status != VD_OK)
        vd_court_journal_close(out);
    return status;
}

bool vd_court_journal_has_answers(const vd_court_journal *j) {
    for (size_t i = 0; i < j->minutes.count; i++)
        if (j->minutes.noted[i].kind == VD_NOTED_ANSWER)
            return true;
    return false;
}

vd_status vd_court_journal_clear(vd_court_journal *j, vd_err *err) {
    vd_minutes_free(&j->minutes);
    return cut(j, 0, err);
}

/* ---- writing ---- */

vd_status vd_court_journal_write(const vd_court_journal *j, const void *bytes, size_t size,
                                 vd_err *err) {
    for (size_t done = 0; done < size;) {
        const ssize_t put = write(j->fd, (const char *)bytes + done, size - done);
        if (put < 0 && errno != EINTR)
            return trouble(j, "write", err);
        done += put > 0 ? (size_t)put : 0;
    }
    return VD_OK;
}

vd_status vd_court_journal_append(vd_court_journal *j, const void *bytes, size_t size,
                                  vd_err *err) {
    vd_status status = vd_court_journal_write(j, bytes, size, err);
    if (status != VD_OK)
        return status;
    return fsync(j->fd) == 0 || errno == EINVAL ? VD_OK : trouble(j, "sync", err);
}

vd_status vd_court_journal_cut(const vd_court_journal *j, uint64_t size, vd_err *err) {
    return ftruncate(j->fd, (off_t)size) == 0 ? VD_OK : trouble(j, "cut off", err);
}

void vd_court_journal_remove(vd_court_journal *j) {
    if (j->fd >= 0)
        unlink(j->path);
}

void vd_court_journal_close(vd_court_journal *j) {
    if (j->fd >= 0)
        close(j->fd); /* also unlocks */
    j->fd = -1;
    vd_minutes_free(&j->minutes);
    vd_map_free(&j->map);
}
