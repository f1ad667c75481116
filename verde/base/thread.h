/* Starting threads. */
#ifndef VD_THREAD_H
#define VD_THREAD_H

#include <pthread.h>

/* Like pthread_create, for a thread that does not handle signals to the process, so that none
 * interrupts its system calls. Signals of its own faults, such as SIGBUS at the end of a truncated
 * mapped file, still reach their handler. */
int vd_thread_start(pthread_t *thread, void *(*run)(void *user), void *user);

#endif
