#include "repops/src/pool.h"
#include "repops/src/fpenv.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

/* Iterations of a waiting loop: about 20 microseconds, shorter than a wake-up, and too short to
 * slow down other processes. */
enum { SPIN_LIMIT = 1000 };

/* Microseconds until a woken worker runs (in a virtual machine); waking it also costs the caller 8.
 * Work that takes less is done before the worker would run, so it wakes nobody. */
enum { WAKE_US = 64 };

/* Least microseconds of a task for which threads are borrowed. OpenMP's threads spin for
 * milliseconds, so they join after only 2. */
enum { BORROW_US = 8 };

/* Fields of `state`: see pool.h. */
enum { MOST_SEATS = 0xffff };
static const unsigned long long inside = 1, seat = 1 << 16, task = 1ULL << 32;

static inline void spin_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void ro_pool_init(ro_pool *pool, int threads, ro_pool_worker *worker) {
    *pool = (ro_pool){.threads = threads, .worker = worker};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->idle, NULL);
}

void ro_pool_borrow(ro_pool *pool, int threads, ro_parallel *parallel) {
    *pool = (ro_pool){.threads = threads, .parallel = parallel, .owner = getpid()};
}

static void work(ro_pool *pool, int index) {
    const int64_t count = pool->count, grain = pool->grain;
    int64_t first;
    while ((first = atomic_fetch_add(&pool->next, grain)) < count)
        pool->body(pool->user, first, count - first < grain ? count : first + grain, index);
}

static unsigned number_of(unsigned long long state) {
    return (unsigned)(state >> 32);
}

static int seats_of(unsigned long long state) {
    return (int)(state >> 16 & MOST_SEATS);
}

static int inside_of(unsigned long long state) {
    return (int)(state & MOST_SEATS);
}

/* Takes a seat of the current task, if there is one left, and sets `seen` to the task's number. */
static bool join_task(ro_pool *pool, unsigned *seen) {
    unsigned long long state = atomic_load(&pool->state);
    bool joined = false;
    while (!joined && seats_of(state) > 0)
        joined = atomic_compare_exchange_weak(&pool->state, &state, state - seat + inside);
    *seen = number_of(state);
    return joined;
}

static void leave_task(ro_pool *pool) {
    const unsigned long long before = atomic_fetch_sub(&pool->state, inside);
    if (inside_of(before) == 1 && atomic_load(&pool->waiting)) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_signal(&pool->idle);
        pthread_mutex_unlock(&pool->lock);
    }
}

/* Sleeps until a task newer than `seen` is posted. Returns false when the pool ends. */
static bool sleep_after(ro_pool *pool, unsigned seen) {
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->asleep, 1);
    while (!pool->stop && number_of(atomic_load(&pool->state)) == seen)
        pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->asleep, 1);
    const bool stop = pool->stop;
    pthread_mutex_unlock(&pool->lock);
    return !stop;
}

/* Looks for a new task, and sleeps if none comes. Returns false when the pool ends. */
static bool find_task(ro_pool *pool, unsigned *seen) {
    do {
        for (int i = 0; i < SPIN_LIMIT; i++, spin_pause())
            if (number_of(atomic_load(&pool->state)) != *seen && join_task(pool, seen))
                return true;
    } while (sleep_after(pool, *seen));
    return false;
}

static void *worker_main(void *user) {
    ro_pool_worker *self = user;
    ro_pool *pool = self->pool;
    unsigned seen = 0; /* the first task has number 1 */
    while (find_task(pool, &seen)) {
        const ro_fpenv env = ro_fpenv_enter();
        work(pool, self->index);
        ro_fpenv_leave(env);
        leave_task(pool);
    }
    return NULL;
}

/* Starts workers with signals blocked, since these belong to the application's threads, except
 * those that a worker itself can cause, such as a fault on memory that is gone. */
static void start_workers(ro_pool *pool) {
    static const int own[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (unsigned i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    pool->owner = getpid();
    for (int i = pool->started; i < pool->threads - 1; i++) {
        ro_pool_worker *worker = &pool->worker[i];
        *worker = (ro_pool_worker){.pool = pool, .index = i + 1};
        if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0)
            break;
        pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void set_task(ro_pool *pool, int64_t count, int64_t grain, ro_task body, void *user) {
    pool->body = body;
    pool->user = user;
    pool->count = count;
    pool->grain = grain;
    atomic_store(&pool->next, 0);
}

static void post_task(ro_pool *pool, int64_t count, int64_t grain, ro_task body, void *user,
                      int seats) {
    set_task(pool, count, grain, body, user);
    const unsigned number = number_of(atomic_load(&pool->state)) + 1;
    atomic_store(&pool->state, number * task + (unsigned)seats * seat);
}

static void wake_workers(ro_pool *pool, int seats) {
    const int missing = seats - (pool->started - atomic_load(&pool->asleep));
    if (missing <= 0)
        return;
    pthread_mutex_lock(&pool->lock);
    if (missing == 1)
        pthread_cond_signal(&pool->wake);
    else
        pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

/* Closes the task: a worker that has not woken up by now finds no seat, and nobody waits for it. */
static void close_task(ro_pool *pool) {
    unsigned long long state = atomic_fetch_and(&pool->state, ~(MOST_SEATS * seat));
    for (int i = 0; i < SPIN_LIMIT && inside_of(state) > 0; i++) {
        spin_pause();
        state = atomic_load(&pool->state);
    }
    if (inside_of(state) == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    /* A store would do, but QEMU 7.2 (aarch64 on x86-64) reorders it with the load after it, and
     * then a worker that leaves just then would not signal. */
    atomic_exchange(&pool->waiting, true);
    while (inside_of(atomic_load(&pool->state)) > 0)
        pthread_cond_wait(&pool->idle, &pool->lock);
    atomic_store(&pool->waiting, false);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- borrowed threads ---- */

typedef struct {
    ro_pool *pool;
    pthread_t caller;
    int threads;
    atomic_int joined; /* threads besides the caller */
} crew;

static void join_crew(void *data) {
    crew *c = data;
    const int index =
        pthread_equal(pthread_self(), c->caller) ? 0 : 1 + atomic_fetch_add(&c->joined, 1);
    if (index >= c->threads)
        return;
    const ro_fpenv env = ro_fpenv_enter();
    work(c->pool, index);
    ro_fpenv_leave(env);
}

/* Returns whether the lender's threads can be used. A child of fork has none, and libgomp would
 * wait for them forever. */
static bool lends(const ro_pool *pool) {
    return pool->parallel && pool->threads > 1 && pool->owner == getpid();
}

static void borrow_for(ro_pool *pool, int64_t count, int64_t grain, ro_task body, void *user) {
    const int64_t pieces = (count + grain - 1) / grain;
    crew c = {pool, pthread_self(), pieces < pool->threads ? (int)pieces : pool->threads, 0};
    set_task(pool, count, grain, body, user);
    pool->parallel(join_crew, &c, (unsigned)c.threads, 0);
}

int ro_pool_threads(ro_pool *pool, double us) {
    if (pool->parallel)
        return us < BORROW_US ? 1 : pool->threads;
    const int awake = pool->started - atomic_load(&pool->asleep);
    pool->missed_us = awake > 0 ? 0 : pool->missed_us + us;
    if (us < WAKE_US && pool->missed_us < WAKE_US)
        return 1 + awake;
    pool->missed_us = 0;
    return pool->threads;
}

void ro_pool_for(ro_pool *pool, int64_t count, int64_t grain, ro_task body, void *user) {
    if (count > grain && lends(pool)) {
        borrow_for(pool, count, grain, body, user);
        return;
    }
    if (pool->started == 0 && pool->threads > 1 && count > grain && !pool->parallel)
        start_workers(pool);
    if (pool->started == 0 || count <= grain) {
        if (count > 0)
            body(user, 0, count, 0);
        return;
    }
    const int64_t pieces = (count + grain - 1) / grain;
    const int seats = pieces <= pool->started ? (int)pieces - 1 : pool->started;
    post_task(pool, count, grain, body, user, seats);
    /* a child of fork has no workers, and the lock may have been held when it was forked */
    if (pool->owner != getpid()) {
        ro_pool_init(pool, pool->threads, pool->worker);
        ro_pool_for(pool, count, grain, body, user);
        return;
    }
    wake_workers(pool, seats);
    work(pool, 0);
    close_task(pool);
}

void ro_pool_stop(ro_pool *pool) {
    if (pool->started == 0 || pool->owner != getpid())
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->worker[i].thread, NULL);
    pool->started = 0;
}
