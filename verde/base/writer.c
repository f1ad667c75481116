/* This file replaces a file as a whole: a machine that stops leaves the old one or the new one. */
#include "verde/base/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMP_SLOTS = 10 }; /* writers of one path at a time */

/* Refuses targets that are no regular files: for root, a rename would replace even /dev/null. */
static vd_status check_target(const char *path, vd_err *err) {
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        return VD_OK; /* open reports other errors of the path */
    return vd_fail(err, VD_ERR_USAGE, "cannot write %s: it is %s", path,
                   S_ISDIR(info.st_mode) ? "a directory" : "not a regular file");
}

/* Locks the temporary file, and checks that `path` still names it. A file left by a killed process
 * has no lock and is used again, so that kills do not fill the disk. On file systems without locks
 * it succeeds without one. */
static bool claim(int fd, const char *path) {
    struct stat mine, named;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &mine) == 0 && S_ISREG(mine.st_mode) && stat(path, &named) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

/* Empties a left-over file, and removes permissions that `mode` does not give. */
static int prepare(int fd, mode_t mode) {
    struct stat info;
    if (ftruncate(fd, 0) != 0 || fstat(fd, &info) != 0)
        return -1;
    return info.st_mode & 07777 & ~mode ? fchmod(fd, info.st_mode & mode) : 0;
}

static int open_temp(vd_writer *writer, mode_t mode) {
    for (int slot = 0; slot < TEMP_SLOTS; slot++) {
        snprintf(writer->temp, sizeof writer->temp, "%s.tmp%d", writer->path, slot);
        /* O_NONBLOCK, so that a FIFO of this name does not wait for a reader. */
        int fd = open(writer->temp,
                      O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
        if (fd < 0)
            return -1;
        if (claim(fd, writer->temp))
            return fd;
        close(fd);
    }
    errno = EBUSY;
    return -1;
}

vd_status vd_writer_open(vd_writer *writer, const char *path, int mode, vd_err *err) {
    *writer = (vd_writer){.fd = -1};
    vd_status status = check_target(path, err);
    if (status != VD_OK)
        return status;
    size_t length = strlen(path);
    if (length >= sizeof writer->path) {
        errno = ENAMETOOLONG;
        return vd_fail_errno(err, "write", path);
    }
    memcpy(writer->path, path, length + 1);
    writer->fd = open_temp(writer, (mode_t)mode);
    if (writer->fd < 0) {
        status = vd_fail_errno(err, "create", path);
        writer->temp[0] = 0; /* it may be another writer's, which abort must not remove */
        return status;
    }
    if (prepare(writer->fd, (mode_t)mode) != 0) {
        status = vd_fail_errno(err, "prepare", writer->temp);
        vd_writer_abort(writer);
    }
    return status;
}

vd_status vd_writer_put(vd_writer *writer, const void *bytes, size_t size, vd_err *err) {
    const uint8_t *at = bytes;
    while (size > 0) {
        /* Linux writes at most 2^31 - 4096 bytes per call. */
        ssize_t put = write(writer->fd, at, size < (1u << 30) ? size : (1u << 30));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return vd_fail_errno(err, "write", writer->path);
        at += put;
        size -= (size_t)put;
    }
    return VD_OK;
}

vd_status vd_writer_commit(vd_writer *writer, vd_err *err) {
    if (vd_fsync(writer->fd) != 0 || rename(writer->temp, writer->path) != 0) {
        const vd_status status = vd_fail_errno(err, "write", writer->path);
        vd_writer_abort(writer);
        return status;
    }
    /* Closing releases the lock after the rename, so nobody takes the file for a left-over. */
    close(writer->fd);
    writer->fd = -1;
    writer->temp[0] = 0;
    return vd_sync_parent(writer->path, err);
}

void vd_writer_abort(vd_writer *writer) {
    if (!writer->temp[0])
        return; /* not opened, or already committed or aborted */
    unlink(writer->temp);
    close(writer->fd);
    writer->fd = -1;
    writer->temp[0] = 0;
}

vd_status vd_check_writable(const char *path, vd_err *err) {
    vd_writer writer = {0};
    vd_status status = vd_writer_open(&writer, path, 0644, err);
    vd_writer_abort(&writer);
    return status;
}

vd_status vd_write_file(const char *path, const void *bytes, size_t size, int mode, vd_err *err) {
    vd_writer writer = {0};
    vd_status status = vd_writer_open(&writer, path, mode, err);
    if (status == VD_OK)
        status = vd_writer_put(&writer, bytes, size, err);
    if (status == VD_OK)
        status = vd_writer_commit(&writer, err);
    vd_writer_abort(&writer);
    return status;
}
