/* Hashing of a run's files before it is served: in a thread of its own, so that a provider that was
 * started again can say meanwhile that it works. Nothing is signed before it has ended well. */
#ifndef VD_CHECKING_H
#define VD_CHECKING_H

#include <pthread.h>
#include <stdatomic.h>

#include "verde/serve/served.h"

typedef struct vd_checking {
    vd_served *served;
    atomic_bool done; /* every file fits */
    /* After all fits, before `done`, on the same thread; NULL: nothing. */
    vd_status (*fits)(void *user, vd_err *err);
    void (*ended)(void *user, bool fits); /* at the end of the thread, on it */
    void *user;
    /* Private. */
    vd_ticker hashing;
    pthread_t thread;
    atomic_bool stop;
    atomic_ullong bytes, of;
    atomic_uint items, of_items;
    vd_status status;
    vd_err err;
} vd_checking;

/* Hashes now, on the caller's thread; `ended` is not called. */
VD_MUST_USE vd_status vd_checking_run(vd_checking *checking, vd_err *err);
VD_MUST_USE vd_status vd_checking_start(vd_checking *checking, vd_err *err);
/* Stops what was started, if it has not ended, and says why the files do not fit. A check that was
 * stopped says nothing about them: VD_OK. */
VD_MUST_USE vd_status vd_checking_end(vd_checking *checking, vd_err *err);
/* For vd_served_check. */
void vd_checking_bytes(void *checking, uint64_t done, uint64_t total);
void vd_checking_items(vd_checking *checking, uint32_t done, uint32_t of);
/* How far it is, for the other side. From any thread. */
void vd_checking_print(vd_checking *checking, char *text, size_t size);

#endif
