/* A page about this daemon, for people on its machine: jobs, progress, losses, clients, disk. It
 * changes nothing, and loads nothing from elsewhere. */
#ifndef VD_PAGE_H
#define VD_PAGE_H

#include "verde/net/loopback.h"
#include "verde/provide/daemon.h"

/* http://127.0.0.1:PORT/ answers from here on; port 0: any that is free. */
VD_MUST_USE vd_status vd_page_start(vd_daemon *daemon, int port, vd_loopback **out, vd_err *err);

#endif
