/* A pool of worker threads for one context. It decides who computes which items, never what an item
 * is: results do not depend on it. */
#ifndef REPOPS_POOL_H
#define REPOPS_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "repops/repops.h"

typedef struct ro_pool ro_pool;
typedef void ro_parallel(void (*body)(void *data), void *data, unsigned threads, unsigned flags);

typedef struct {
    ro_pool *pool;
    pthread_t thread;
    int index;
} ro_pool_worker;

/* Fields that change with every task have cache lines of their own: workers read `state` all the
 * time. */
struct ro_pool {
    int threads;            /* wanted, with the caller */
    int started;            /* workers that run */
    pid_t owner;            /* the process that has the threads: fork copies none */
    ro_pool_worker *worker; /* threads - 1 of them; the owner of the pool allocates them */
    ro_parallel *parallel;  /* not NULL: lends threads, and no worker starts */
    double missed_us;       /* microseconds of small tasks since a worker was last awake for one */

    pthread_mutex_t lock; /* for workers that sleep */
    pthread_cond_t wake, idle;
    atomic_int asleep;   /* workers */
    atomic_bool waiting; /* the caller waits for workers that are inside */
    bool stop;           /* under lock */

    /* The number of the task, times 2^32; how many more workers may join it, times 2^16; how many
     * are inside. */
    _Alignas(64) atomic_ullong state;
    ro_task body; /* the current task */
    void *user;
    int64_t count, grain;
    _Alignas(64) atomic_llong next; /* item */
};

/* `worker` has room for threads - 1 entries. No thread starts yet. */
void ro_pool_init(ro_pool *pool, int threads, ro_pool_worker *worker);
/* The same of threads that `parallel` lends (ro_options). */
void ro_pool_borrow(ro_pool *pool, int threads, ro_parallel *parallel);
void ro_pool_stop(ro_pool *pool); /* joins the workers */

/* Threads that a task of so many microseconds (with one thread, roughly) is for. To wake workers
 * takes longer than a small task, which is for those that are still looking for one. If small tasks
 * go on and on, workers are woken for those to come. */
int ro_pool_threads(ro_pool *pool, double us);

/* Calls body over [0, count) in pieces of `grain` items that start at multiples of grain. Workers
 * start at the first call with more than one piece; if the system refuses some, fewer do it all. */
void ro_pool_for(ro_pool *pool, int64_t count, int64_t grain, ro_task body, void *user);

#endif
