/* fork, once each worker of a pool sleeps. The runtime of gcc 12's AddressSanitizer does not hold
 * its allocator's locks over a fork: if a thread that is just starting has one, the child has it
 * too, with nobody to give it back, and its first own worker waits for ever. */
#ifndef FORK_AT_REST_H
#define FORK_AT_REST_H

#include "repops/src/pool.h"

#include <time.h>
#include <unistd.h>

static pid_t fork_at_rest(ro_pool *pool) {
    while (atomic_load(&pool->asleep) < pool->started)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return fork();
}

#endif
