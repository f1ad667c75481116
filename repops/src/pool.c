#include "repops/src/pool.h"
#include "repops/src/fpenv.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

/* About 20 microseconds: shorter than a wake-up, too short to hurt other processes. */
enum { SPIN_LIMIT = 1000 };

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

static void work(ro_pool *pool, int index) {
    const int64_t count = pool->count, grain = pool->grain;
    int64_t first;
    while ((first = atomic_fetch_add(&pool->next, grain)) < count)
        pool->body(pool->user, first, count - first < grain ? count : first + grain, index);
}

/* Waits for a task newer than `seen` and joins it if it is still open. Returns false at the end. */
static bool join_task(ro_pool *pool, unsigned *seen) {
    for (int i = 0; i < SPIN_LIMIT && atomic_load(&pool->posted) == *seen; i++)
        spin_pause();
    pthread_mutex_lock(&pool->lock);
    while (!pool->stop && (atomic_load(&pool->posted) == *seen || !pool->open)) {
        *seen = atomic_load(&pool->posted); /* a task that closed without us */
        pthread_cond_wait(&pool->wake, &pool->lock);
    }
    const bool run = !pool->stop;
    *seen = atomic_load(&pool->posted);
    if (run)
        atomic_fetch_add(&pool->active, 1);
    pthread_mutex_unlock(&pool->lock);
    return run;
}

static void *worker_main(void *user) {
    ro_pool_worker *self = user;
    ro_pool *pool = self->pool;
    unsigned seen = 0; /* posted is 0 only before the first task */
    while (join_task(pool, &seen)) {
        const ro_fpenv env = ro_fpenv_enter();
        work(pool, self->index);
        ro_fpenv_leave(env);
        pthread_mutex_lock(&pool->lock);
        if (atomic_fetch_sub(&pool->active, 1) == 1)
            pthread_cond_signal(&pool->idle);
        pthread_mutex_unlock(&pool->lock);
    }
    return NULL;
}

/* Signals belong to the threads of the application. */
static void start_workers(ro_pool *pool) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = pool->started; i < pool->threads - 1; i++) {
        ro_pool_worker *worker = &pool->worker[i];
        *worker = (ro_pool_worker){.pool = pool, .index = i + 1};
        if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0)
            break;
        pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* In a child process the workers do not exist, and the lock may be held by one of them. */
static void ensure_workers(ro_pool *pool) {
    const pid_t self = getpid();
    if (pool->started && pool->owner != self)
        ro_pool_init(pool, pool->threads, pool->worker);
    pool->owner = self;
    if (pool->started == 0)
        start_workers(pool);
}

static void post_task(ro_pool *pool, int64_t count, int64_t grain, ro_pool_body body, void *user) {
    pthread_mutex_lock(&pool->lock);
    pool->body = body;
    pool->user = user;
    pool->count = count;
    pool->grain = grain;
    atomic_store(&pool->next, 0);
    pool->open = true;
    atomic_fetch_add(&pool->posted, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

/* A worker that has not woken up by now is not waited for: it finds the task closed. */
static void close_task(ro_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->open = false;
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < SPIN_LIMIT && atomic_load(&pool->active) > 0; i++)
        spin_pause();
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&pool->active) > 0)
        pthread_cond_wait(&pool->idle, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void ro_pool_for(ro_pool *pool, int64_t count, int64_t grain, ro_pool_body body, void *user) {
    if (pool->threads > 1 && count > grain)
        ensure_workers(pool);
    if (pool->started == 0 || count <= grain) {
        if (count > 0)
            body(user, 0, count, 0);
        return;
    }
    post_task(pool, count, grain, body, user);
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
