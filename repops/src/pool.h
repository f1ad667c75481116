/* A context's pool of worker threads. It decides who computes which items, never the results. */
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

/* Fields that change with every task have their own cache lines, since workers poll `state`. */
struct ro_pool {
    int threads;            /* wanted, including the caller */
    int started;            /* workers that are running */
    pid_t owner;            /* the process in which the threads run: fork does not copy them */
    ro_pool_worker *worker; /* threads - 1 of them; the pool's owner allocates the array */
    ro_parallel *parallel;  /* not NULL: lends threads, and no workers are started */
    double missed_us;       /* microseconds of small tasks while no worker was awake */

    pthread_mutex_t lock; /* for workers that sleep */
    pthread_cond_t wake, idle;
    atomic_int asleep;   /* workers that sleep */
    atomic_bool waiting; /* the caller waits for workers inside the task */
    bool stop;           /* under lock */

    /* 2^32 times the task's number, plus 2^16 times how many more workers may join it (seats), plus
     * how many workers are inside. */
    _Alignas(64) atomic_ullong state;
    ro_task body; /* the current task */
    void *user;
    int64_t count, grain;
    _Alignas(64) atomic_llong next; /* the next item that no thread has taken */
};

/* `worker` has room for threads - 1 entries. No thread starts yet. */
void ro_pool_init(ro_pool *pool, int threads, ro_pool_worker *worker);
/* Like ro_pool_init, for threads that `parallel` lends (ro_options). */
void ro_pool_borrow(ro_pool *pool, int threads, ro_parallel *parallel);
void ro_pool_stop(ro_pool *pool); /* joins the workers */

/* Returns how many threads to use for a task that takes `us` microseconds with one thread, roughly.
 * Waking workers takes longer than a small task, so such a task gets only workers that are awake.
 * If small tasks keep coming, sleeping workers are woken for the next ones. */
int ro_pool_threads(ro_pool *pool, double us);

/* Calls body over [0, count) in pieces of `grain` items that start at multiples of grain. Workers
 * start at the first call with more than one piece; if the system refuses some, the others do all
 * of it. */
void ro_pool_for(ro_pool *pool, int64_t count, int64_t grain, ro_task body, void *user);

#endif
