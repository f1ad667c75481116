/* Reports trouble of this machine to the daemon's operator: once, and then once a minute while it
 * lasts. */
#ifndef VD_TROUBLE_H
#define VD_TROUBLE_H

#include <pthread.h>

#include "verde/provide/daemon.h"

enum { VD_TROUBLE_S = 60, VD_TROUBLE_KINDS = 8 /* different texts remembered */ };

typedef struct {
    char text[256];
    double said; /* vd_seconds() of the last report */
    long again;  /* how often it occurred since */
} vd_trouble_line;

typedef struct {
    pthread_mutex_t lock;
    vd_trouble_line line[VD_TROUBLE_KINDS];
} vd_trouble;

/* Thread-safe. `trouble` must be zeros with an initialised lock. */
void vd_trouble_tell(vd_trouble *trouble, const vd_daemon_options *options, const char *text);

#endif
