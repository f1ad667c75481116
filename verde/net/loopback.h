/* A page for people on this machine: plain HTTP on 127.0.0.1 alone, read-only.
 *
 * Other machines do not reach it; pages of other sites in a browser on this machine do, so what is
 * asked must name this machine: a name that its owner lets resolve to 127.0.0.1 ("DNS rebinding")
 * is refused, and the answers forbid scripts, frames and use by other origins. */
#ifndef VD_LOOPBACK_H
#define VD_LOOPBACK_H

#include "verde/base/base.h"

enum {
    VD_LOOPBACK_CONNECTIONS = 16, /* the oldest one gives way to another */
    VD_LOOPBACK_BACKLOG = 128,    /* others, which the kernel keeps waiting */
    VD_LOOPBACK_HEAD_MAX = 8 << 10,
    VD_LOOPBACK_TIMEOUT_S = 10, /* a connection on which nothing moves ends */
};

typedef struct {
    int status;               /* 200 unless the handler sets another */
    const char *content_type; /* a constant; NULL: text/plain */
    bool inline_style;        /* the content has its style in itself, as a picture must */
    bool whole_page;          /* and its pictures, as a page in one file does */
    vd_buf body;
} vd_loopback_reply;

/* Answers a GET of `path`, from "/" on, with its query. Runs on the server's own thread, one
 * request after the other. */
typedef void (*vd_loopback_handler)(void *user, const char *path, vd_loopback_reply *reply);

typedef struct vd_loopback vd_loopback;

/* Listens, and answers on a thread of its own from here on. Port 0: any that is free. VD_ERR_IO: it
 * is taken. */
VD_MUST_USE vd_status vd_loopback_start(int port, vd_loopback_handler handler, void *user,
                                        vd_loopback **out, vd_err *err);
int vd_loopback_port(const vd_loopback *server);
void vd_loopback_stop(vd_loopback *server); /* waits for the thread; NULL is fine */

#endif
