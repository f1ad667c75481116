/* This file starts threads that handle no signals except those of their own faults. */
#include "verde/base/thread.h"

#include <signal.h>

int vd_thread_start(pthread_t *thread, void *(*run)(void *user), void *user) {
    static const int own[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (unsigned i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const int error = pthread_create(thread, NULL, run, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
