/* A page about this daemon, for people on its machine: jobs, progress, losses, clients, disk. It is
 * read-only, and loads nothing from elsewhere. */
#ifndef VD_PAGE_H
#define VD_PAGE_H

#include "verde/net/loopback.h"
#include "verde/provide/daemon.h"

/* Serves the page at http://127.0.0.1:PORT/ from now on. Port 0: any free port. */
VD_MUST_USE vd_status vd_page_start(vd_daemon *daemon, int port, vd_loopback **out, vd_err *err);

#endif
