/* Serves finished jobs' states and losses to their clients. */
#ifndef VD_STATES_H
#define VD_STATES_H

#include <pthread.h>

#include "verde/delivery/offer.h"
#include "verde/provide/daemon.h"

enum { VD_OFFERS_MAX = 16 }; /* offers kept; the least recently used is dropped */

typedef struct {
    char job[VD_ID_SIZE]; /* empty: the place is free */
    vd_offer *offer;
    uint64_t used;
} vd_offered_job;

typedef struct {
    pthread_mutex_t lock;
    vd_offered_job place[VD_OFFERS_MAX];
    uint64_t used;
} vd_states;

VD_MUST_USE vd_status vd_states_open(vd_states *states, vd_err *err);
void vd_states_close(vd_states *states);
void vd_states_forget(vd_states *states, const char *job);

/* Answers a GET of a finished job: `rest` is "/state", or what follows it (delivery/offer.h). */
void vd_states_answer(vd_states *states, vd_daemon *daemon, const char *job, const char *rest,
                      vd_response *response);

#endif
