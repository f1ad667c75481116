/* Hashes a run's files before it is served, in a separate thread, so that a restarted provider can
 * meanwhile say that it works. Nothing is signed until all files were found to fit. */
#ifndef VD_CHECKING_H
#define VD_CHECKING_H

#include <pthread.h>
#include <stdatomic.h>

#include "verde/serve/served.h"

typedef struct vd_checking {
    vd_served *served;
    atomic_bool done; /* every file fits */
    /* Called on the same thread if all files fit, before `done` is set; may be NULL. */
    vd_status (*fits)(void *user, vd_err *err);
    void (*ended)(void *user, bool fits); /* called last, on the same thread */
    void *user;
    /* private: */
    vd_ticker hashing;
    pthread_t thread;
    atomic_bool stop;
    atomic_ullong bytes, of;
    atomic_uint items, of_items;
    vd_status status;
    vd_err err;
} vd_checking;

/* Hashes on the caller's thread; `ended` is not called. */
VD_MUST_USE vd_status vd_checking_run(vd_checking *checking, vd_err *err);
VD_MUST_USE vd_status vd_checking_start(vd_checking *checking, vd_err *err);
/* Ends the thread and returns why the files do not fit. A check that was stopped early returns
 * VD_OK. */
VD_MUST_USE vd_status vd_checking_end(vd_checking *checking, vd_err *err);
/* Progress callbacks of vd_served_check. */
void vd_checking_bytes(void *checking, uint64_t done, uint64_t total);
void vd_checking_items(vd_checking *checking, uint32_t done, uint32_t of);
/* Writes the progress, as text for a referee. Thread-safe. */
void vd_checking_print(vd_checking *checking, char *text, size_t size);

#endif
