/* This file copies a log for an auditor, who can then answer without the trainer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/log/log.h"

enum { PIECE = 1 << 20 };

static vd_status copy_bytes(int fd, const char *path, uint8_t *piece, vd_writer *to, vd_err *err) {
    for (;;) {
        const ssize_t got = read(fd, piece, PIECE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return vd_fail(err, VD_ERR_IO, "%s: %s", path, strerror(errno));
        if (got == 0)
            return VD_OK;
        vd_status status = vd_writer_put(to, piece, (size_t)got, err);
        if (status != VD_OK)
            return status;
    }
}

static vd_status copy_file(const char *from, const char *to, vd_err *err) {
    vd_writer writer = {0};
    int fd;
    uint64_t size;
    uint8_t *piece = malloc(PIECE);
    vd_status status = vd_open_file(from, &fd, &size, err);
    if (status == VD_OK && !piece)
        status = vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", from);
    if (status == VD_OK)
        status = vd_writer_open(&writer, to, 0644, err);
    if (status == VD_OK) {
        status = copy_bytes(fd, from, piece, &writer, err);
        if (status == VD_OK)
            status = vd_writer_commit(&writer, err);
        else
            vd_writer_abort(&writer);
    }
    if (fd >= 0)
        close(fd);
    free(piece);
    return status;
}

vd_status vd_log_copy(const char *from, const char *to, const vd_log_run *run, int64_t step,
                      vd_err *err) {
    char source[1024], copy[1024], dir[1024];
    if (snprintf(dir, sizeof dir, "%s/log", to) >= (int)sizeof dir)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: the path is too long", to);
    vd_status status = vd_make_dir(dir, err);
    if (status == VD_OK)
        status = vd_log_path(from, run, step, source, sizeof source, err);
    if (status == VD_OK)
        status = vd_log_path(to, run, step, copy, sizeof copy, err);
    return status == VD_OK ? copy_file(source, copy, err) : status;
}
