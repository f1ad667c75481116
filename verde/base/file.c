/* This file opens and reads files, and makes directories. */
#include "verde/base/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static vd_status check_regular(int fd, const char *verb, const char *path, uint64_t *size,
                               vd_err *err) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return vd_fail_errno(err, verb, path);
    if (S_ISDIR(info.st_mode))
        return vd_fail(err, VD_ERR_USAGE, "cannot %s %s: it is a directory", verb, path);
    if (!S_ISREG(info.st_mode))
        return vd_fail(err, VD_ERR_USAGE, "cannot %s %s: it is not a regular file", verb, path);
    *size = (uint64_t)info.st_size;
    return VD_OK;
}

vd_status vd_open_file(const char *path, int *out, uint64_t *size, vd_err *err) {
    *out = -1;
    /* O_NONBLOCK, so that opening a FIFO does not wait for a writer before it is refused. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return vd_fail_errno(err, "open", path);
    vd_status status = check_regular(fd, "read", path, size, err);
    if (status == VD_OK)
        *out = fd;
    else
        close(fd);
    return status;
}

vd_status vd_open_update(const char *path, bool append, int mode, int *out, uint64_t *size,
                         vd_err *err) {
    *out = -1;
    int fd = open(path,
                  O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW |
                      (append ? O_APPEND : 0),
                  mode);
    if (fd < 0 && errno == ELOOP)
        return vd_fail(err, VD_ERR_USAGE, "cannot write %s: it is a symbolic link", path);
    if (fd < 0 && errno == EISDIR)
        return vd_fail(err, VD_ERR_USAGE, "cannot write %s: it is a directory", path);
    if (fd < 0)
        return vd_fail_errno(err, "open", path);
    vd_status status = check_regular(fd, "write", path, size, err);
    if (status == VD_OK)
        *out = fd;
    else
        close(fd);
    return status;
}

bool vd_lies_in(const char *dir, const char *name) {
    char path[PATH_MAX];
    struct stat info;
    return snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path &&
           lstat(path, &info) == 0;
}

vd_status vd_check_readable(const char *path, vd_err *err) {
    int fd;
    uint64_t size;
    vd_status status = vd_open_file(path, &fd, &size, err);
    if (status == VD_OK)
        close(fd);
    return status;
}

/* Reads to the end of the file, whose size may have changed since fstat. */
static vd_status read_all(int fd, const char *path, size_t expected, size_t limit, vd_buf *out,
                          vd_err *err) {
    size_t total = 0;
    for (;;) {
        size_t room = expected > total ? expected - total : 1; /* 1 byte more, to detect the end */
        uint8_t *bytes = vd_buf_room(out, room);
        if (!bytes)
            return vd_fail(err, VD_ERR_LOCAL, "out of memory while reading %s", path);
        ssize_t got = read(fd, bytes, room);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return vd_fail_errno(err, "read", path);
        if (got == 0)
            return VD_OK;
        total += (size_t)got;
        if (total > limit)
            return vd_fail(err, VD_ERR_USAGE, "%s is too large: at most %zu bytes are allowed",
                           path, limit);
        out->size += (size_t)got;
    }
}

vd_status vd_read_file(const char *path, size_t limit, vd_buf *out, vd_err *err) {
    int fd;
    uint64_t expected;
    vd_status status = vd_open_file(path, &fd, &expected, err);
    if (status != VD_OK)
        return status;
    size_t before = out->size;
    if (expected > limit)
        status = vd_fail(err, VD_ERR_USAGE, "%s is too large: %llu bytes, at most %zu are allowed",
                         path, (unsigned long long)expected, limit);
    else
        status = read_all(fd, path, (size_t)expected, limit, out, err);
    if (status != VD_OK)
        out->size = before;
    close(fd);
    return status;
}

/* Computes the parent: "a/b" of "a/b/c", "." of "c", "/" of "/c". */
static bool parent_of(const char *path, char *parent, size_t size) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length >= size)
        return false;
    memcpy(parent, length ? path : ".", length ? length : 1);
    parent[length ? length : 1] = 0;
    return true;
}

static _Thread_local bool sync_later;

int vd_fsync(int fd) {
    return sync_later ? 0 : fsync(fd);
}

void vd_sync_begin(void) {
    sync_later = true;
}

vd_status vd_sync_end(const char *dir, vd_err *err) {
    if (!sync_later)
        return VD_OK;
    sync_later = false;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return vd_fail_errno(err, "open directory", dir);
    const vd_status status =
        syncfs(fd) == 0 ? VD_OK : vd_fail_errno(err, "sync the file system of", dir);
    close(fd);
    return status;
}

vd_status vd_sync_parent(const char *path, vd_err *err) {
    char parent[1024];
    if (!parent_of(path, parent, sizeof parent)) {
        errno = ENAMETOOLONG;
        return vd_fail_errno(err, "sync the directory of", path);
    }
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return vd_fail_errno(err, "open directory", parent);
    /* EINVAL: the file system does not support fsync of directories. */
    vd_status status = VD_OK;
    if (vd_fsync(fd) != 0 && errno != EINVAL)
        status = vd_fail_errno(err, "sync directory", parent);
    close(fd);
    return status;
}

vd_status vd_make_dir(const char *path, vd_err *err) {
    if (mkdir(path, 0777) != 0) {
        struct stat info;
        int number = errno;
        if (number == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            return VD_OK;
        errno = number;
        return vd_fail_errno(err, "make directory", path);
    }
    return vd_sync_parent(path, err);
}

/* Returns the length of a path without its last component; 0: nothing is left. */
static size_t end_of_parent(const char *path, size_t size) {
    while (size > 0 && path[size - 1] == '/')
        size--;
    while (size > 0 && path[size - 1] != '/')
        size--;
    while (size > 0 && path[size - 1] == '/')
        size--;
    return size;
}

vd_status vd_make_dirs(const char *path, uint32_t *made, vd_err *err) {
    char part[PATH_MAX];
    struct stat info;
    *made = 0;
    if (strlen(path) >= sizeof part)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: path too long", path);
    for (size_t at = strlen(path); at > 0; at = end_of_parent(path, at)) {
        snprintf(part, sizeof part, "%.*s", (int)at, path);
        if (stat(part, &info) == 0)
            break;
        ++*made;
    }
    vd_status status = *made ? VD_OK : vd_make_dir(path, err);
    for (uint32_t left = *made; left > 0 && status == VD_OK; left--) {
        size_t at = strlen(path);
        for (uint32_t up = 1; up < left; up++)
            at = end_of_parent(path, at);
        snprintf(part, sizeof part, "%.*s", (int)at, path);
        status = vd_make_dir(part, err);
    }
    return status;
}

void vd_drop_dirs(const char *path, uint32_t count) {
    char part[PATH_MAX];
    size_t at = strlen(path);
    for (; count > 0 && at < sizeof part; count--, at = end_of_parent(path, at)) {
        snprintf(part, sizeof part, "%.*s", (int)at, path);
        if (rmdir(part) != 0)
            return;
    }
}
