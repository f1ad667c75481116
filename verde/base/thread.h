/* Threads beside those of the program. */
#ifndef VD_THREAD_H
#define VD_THREAD_H

#include <pthread.h>

/* pthread_create for a thread that takes no signal meant for the process, so that none interrupts
 * its system calls. A signal of its own doing, such as SIGBUS at the end of a mapped file that was
 * cut off, reaches its handler. */
int vd_thread_start(pthread_t *thread, void *(*run)(void *user), void *user);

#endif
