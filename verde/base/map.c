/* This file maps files. */
#include "verde/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verde/base/internal.h"

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define PROTECTION (PROT_READ | PROT_WRITE)
#else
#define PROTECTION PROT_READ
#endif

enum { JOIN_CHUNK = 4 << 20 };

static vd_status map_open(int fd, const char *path, vd_map *out, vd_err *err) {
    void *data = out->size > SIZE_MAX
                     ? MAP_FAILED
                     : mmap(NULL, (size_t)out->size, PROTECTION, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return vd_fail_errno(err, "map", path);
    out->data = data;
    out->mapped = true;
    vd_map_note(out);
    return VD_OK;
}

static vd_status map_bytes(const char *path, vd_map *out, vd_err *err) {
    int fd;
    vd_status status = vd_open_file(path, &fd, &out->size, err);
    if (status != VD_OK)
        return status;
    status = map_open(fd, path, out, err);
    close(fd);
    return status;
}

static vd_status read_bytes(const char *path, vd_map *out, vd_err *err) {
    vd_buf bytes = {0};
    vd_status status = vd_read_file(path, VD_MAP_BYTES_MIN, &bytes, err);
    out->data = bytes.data;
    out->size = bytes.size;
    return status;
}

vd_status vd_map_file(const char *path, vd_map *out, vd_err *err) {
    int fd;
    uint64_t size;
    *out = (vd_map){0};
    vd_status status = vd_open_file(path, &fd, &size, err);
    if (status != VD_OK)
        return status;
    close(fd);
    out->path = strdup(path);
    if (!out->path)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    status = size < VD_MAP_BYTES_MIN ? read_bytes(path, out, err) : map_bytes(path, out, err);
    if (status != VD_OK)
        vd_map_free(out);
    return status;
}

/* ---- several files joined ---- */

static bool write_bytes(int fd, const uint8_t *bytes, size_t size) {
    for (size_t at = 0; at < size;) {
        const ssize_t put = write(fd, bytes + at, size - at);
        if (put < 0 && errno != EINTR)
            return false;
        at += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static bool append_file(int fd, const vd_map *file) {
    for (uint64_t at = 0; at < file->size; at += JOIN_CHUNK) {
        const uint64_t left = file->size - at;
        const size_t size = left < JOIN_CHUNK ? (size_t)left : JOIN_CHUNK;
        if (!write_bytes(fd, file->data + at, size))
            return false;
        vd_map_pass(file->data + at, size);
    }
    return true;
}

/* Creates a file and unlinks it at once, so that a killed process leaves nothing behind. */
static vd_status open_nameless(char **path, int *fd, vd_err *err) {
    const char *dir = getenv("TMPDIR");
    dir = dir && *dir ? dir : "/var/tmp"; /* /tmp is in memory on many machines */
    if (asprintf(path, "%s/verde-XXXXXX", dir) < 0) {
        *path = NULL;
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    *fd = mkostemp(*path, O_CLOEXEC);
    if (*fd < 0)
        return vd_fail_errno(err, "create (TMPDIR says where)", *path);
    unlink(*path);
    return VD_OK;
}

vd_status vd_map_join(const vd_map *file, uint32_t count, vd_map *out, vd_err *err) {
    int fd = -1;
    *out = (vd_map){0};
    vd_status status = open_nameless(&out->path, &fd, err);
    for (uint32_t i = 0; status == VD_OK && i < count; i++) {
        out->size += file[i].size;
        if (!append_file(fd, &file[i]))
            status = vd_fail_errno(err, "write (TMPDIR says where)", out->path);
    }
    if (status == VD_OK)
        status = map_open(fd, out->path, out, err);
    if (fd >= 0)
        close(fd);
    if (status != VD_OK)
        vd_map_free(out);
    return status;
}

void vd_map_free(vd_map *map) {
    if (map->mapped) {
        vd_map_forget(map);
        munmap(map->data, (size_t)map->size);
    } else {
        free(map->data);
    }
    free(map->path);
    *map = (vd_map){0};
}
