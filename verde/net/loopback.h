/* Serves pages to people on this machine: plain HTTP on 127.0.0.1, read-only.
 *
 * Other machines cannot reach it, but pages of other sites in a browser on this machine can. So the
 * Host header must name this machine, which prevents "DNS rebinding" (a foreign name that resolves
 * to 127.0.0.1), and answers forbid scripts, frames and use by other origins. */
#ifndef VD_LOOPBACK_H
#define VD_LOOPBACK_H

#include "verde/base/base.h"

enum {
    VD_LOOPBACK_CONNECTIONS = 16, /* the oldest gives way to a new one */
    VD_LOOPBACK_BACKLOG = 128,    /* further ones wait in the kernel */
    VD_LOOPBACK_HEAD_MAX = 8 << 10,
    VD_LOOPBACK_TIMEOUT_S = 10, /* for a connection on which nothing moves */
};

typedef struct {
    int status;               /* 200 by default */
    const char *content_type; /* a constant; NULL: text/plain */
    bool inline_style;        /* the content has inline styles, as pictures do */
    bool whole_page;          /* and inline pictures, as a page in a single file does */
    vd_buf body;
} vd_loopback_reply;

/* Answers a GET of `path`, which begins with "/" and includes the query. Called on the server's own
 * thread, for one request at a time. */
typedef void (*vd_loopback_handler)(void *user, const char *path, vd_loopback_reply *reply);

typedef struct vd_loopback vd_loopback;

/* Listens, and answers on its own thread from now on. Port 0: any free port. VD_ERR_IO: the port is
 * in use. */
VD_MUST_USE vd_status vd_loopback_start(int port, vd_loopback_handler handler, void *user,
                                        vd_loopback **out, vd_err *err);
int vd_loopback_port(const vd_loopback *server);
void vd_loopback_stop(vd_loopback *server); /* waits for the thread; accepts NULL */

#endif
