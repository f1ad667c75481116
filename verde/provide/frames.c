/* This file sends and receives frames between the daemon and a child. */
#include "verde/provide/frames.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool put_all(int fd, const uint8_t *bytes, size_t size) {
    while (size > 0) {
        const ssize_t put = send(fd, bytes, size, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        bytes += put;
        size -= (size_t)put;
    }
    return true;
}

vd_status vd_frame_put(int fd, const void *bytes, size_t size, vd_err *err) {
    vd_buf head = {0};
    vd_put_u32(&head, (uint32_t)size);
    const bool put = size <= VD_FRAME_MAX && vd_buf_ok(&head) &&
                     put_all(fd, head.data, head.size) && put_all(fd, bytes, size);
    vd_buf_free(&head);
    return put ? VD_OK : vd_fail(err, VD_ERR_IO, "a child, or the daemon, has gone");
}

static vd_status get_all(int fd, uint8_t *bytes, size_t size, double until, vd_err *err) {
    while (size > 0) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        const double left = until - vd_seconds();
        const int ms = until <= 0 ? -1 : left > 0 ? (int)(left * 1000) + 1 : 0;
        const int polled = poll(&ready, 1, ms);
        if (polled == 0)
            return vd_fail(err, VD_ERR_TIMEOUT, "a child does not answer");
        const ssize_t got = polled < 0 ? polled : recv(fd, bytes, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return vd_fail(err, VD_ERR_IO, "a child, or the daemon, has gone");
        bytes += got;
        size -= (size_t)got;
    }
    return VD_OK;
}

vd_status vd_frame_get(int fd, size_t limit, int timeout_ms, vd_buf *out, vd_err *err) {
    uint8_t head[4];
    const size_t before = out->size;
    const double until = timeout_ms < 0 ? 0 : vd_seconds() + timeout_ms / 1e3;
    vd_status status = get_all(fd, head, sizeof head, until, err);
    if (status != VD_OK)
        return status;
    vd_cursor cursor = vd_cursor_of(head, sizeof head);
    size_t left = vd_get_u32(&cursor);
    if (left > limit)
        return vd_fail(err, VD_ERR_IO, "a child sends %zu bytes; at most %zu are allowed", left,
                       limit);
    while (status == VD_OK && left > 0) {
        uint8_t piece[1 << 14];
        const size_t size = left < sizeof piece ? left : sizeof piece;
        status = get_all(fd, piece, size, until, err);
        vd_put(out, piece, status == VD_OK ? size : 0);
        left -= size;
    }
    if (status == VD_OK && !vd_buf_ok(out))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status != VD_OK)
        out->size = before;
    return status;
}
