/* What goes wrong on this machine is said to whoever runs the daemon: once, and then once a minute
 * while it lasts. */
#ifndef VD_TROUBLE_H
#define VD_TROUBLE_H

#include <pthread.h>

#include "verde/provide/daemon.h"

enum { VD_TROUBLE_S = 60, VD_TROUBLE_KINDS = 8 /* sentences that are remembered */ };

typedef struct {
    char text[256];
    double said; /* vd_seconds() */
    long again;  /* how often it was met since */
} vd_trouble_line;

typedef struct {
    pthread_mutex_t lock;
    vd_trouble_line line[VD_TROUBLE_KINDS];
} vd_trouble;

/* From any thread. `trouble` is zeros at first, with a lock that was made. */
void vd_trouble_tell(vd_trouble *trouble, const vd_daemon_options *options, const char *text);

#endif
