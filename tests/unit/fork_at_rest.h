/* Forks once all workers of a pool sleep. gcc 12's AddressSanitizer does not hold its allocator's
 * locks during a fork: if a starting thread held one, the child would inherit it locked, and its
 * own first worker would wait for ever. */
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
