/* The worker pool: each item runs once, whichever workers are awake, in the library's tasks and in
 * the caller's. */
#include "fork_at_rest.h"
#include "repops/src/pool.h"

#include <criterion/criterion.h>
#include <fenv.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 9, ITEMS = 64, TASKS = 3000 };

static void start(ro_pool *pool, int threads) {
    static ro_pool_worker worker[MOST_THREADS];
    ro_pool_init(pool, threads, worker);
}

static void count_items(void *user, int64_t first, int64_t last, int worker) {
    int *times = user;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        times[i]++;
}

/* Returns whether a task runs each of its items once, and no other. */
static bool each_once(ro_pool *pool, int64_t count, int64_t grain) {
    int times[ITEMS] = {0};
    bool once = true;
    ro_pool_for(pool, count, grain, count_items, times);
    for (int i = 0; i < ITEMS; i++)
        once = once && times[i] == (i < count);
    return once;
}

/* Pauses are about as long as workers look for a task, so that tasks arrive at every moment of
 * it. */
static void pause_sometimes(unsigned random) {
    if (random % 64 == 0)
        nanosleep(&(struct timespec){.tv_nsec = random / 64 % 64 * 1000}, NULL);
}

Test(pool, every_item_is_done_once) {
    unsigned random = 1;
    for (int threads = 1; threads <= MOST_THREADS; threads += 2) {
        ro_pool pool;
        start(&pool, threads);
        for (int t = 0; t < TASKS; t++) {
            random = random * 1664525u + 1013904223u;
            pause_sometimes(random >> 10);
            cr_assert(each_once(&pool, random >> 16 & 63, 1 + (random >> 24) % 5),
                      "task %d with %d threads", t, threads);
        }
        ro_pool_stop(&pool);
    }
}

Test(pool, child_of_fork_has_workers_of_its_own) {
    ro_pool pool;
    start(&pool, 3);
    cr_assert(each_once(&pool, ITEMS, 1));
    const pid_t child = fork_at_rest(&pool);
    if (child == 0) {
        bool once = true;
        for (int t = 0; t < 100; t++)
            once = once && each_once(&pool, ITEMS, 1);
        ro_pool_stop(&pool);
        _exit(once && pool.owner == getpid() ? 0 : 1);
    }
    int status = -1;
    cr_assert(waitpid(child, &status, 0) == child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_expect(each_once(&pool, ITEMS, 1));
    ro_pool_stop(&pool);
}

Test(pool, small_tasks_wake_nobody_until_they_add_up) {
    ro_pool pool;
    start(&pool, 3); /* none of them has started */
    cr_expect(ro_pool_threads(&pool, 1000) == 3, "a long one");
    for (int us = 10; us < 60; us += 10)
        cr_expect(ro_pool_threads(&pool, 10) == 1, "after %d microseconds", us);
    cr_expect(ro_pool_threads(&pool, 40) == 3, "the next ones");
    cr_expect(ro_pool_threads(&pool, 10) == 1, "from the start again");
    ro_pool_stop(&pool);
}

Test(pool, small_tasks_are_shared_with_who_is_awake) {
    ro_pool pool;
    start(&pool, 3);
    pool.started = 2; /* as if two had started */
    cr_expect(ro_pool_threads(&pool, 10) == 3);
    atomic_store(&pool.asleep, 1);
    cr_expect(ro_pool_threads(&pool, 10) == 2);
    cr_expect(ro_pool_threads(&pool, 1000) == 3);
    atomic_store(&pool.asleep, 2);
    cr_expect(ro_pool_threads(&pool, 10) == 1);
}

Test(pool, one_thread_is_alone) {
    ro_pool pool;
    start(&pool, 1);
    for (int i = 0; i < 100; i++)
        cr_expect(ro_pool_threads(&pool, 1000) == 1 && each_once(&pool, ITEMS, 1));
    cr_expect(pool.started == 0);
    ro_pool_stop(&pool);
}

/* ---- ro_parallel_for: the caller's work, in its floating-point modes ---- */

typedef struct {
    int times[ITEMS];
    bool up[ITEMS]; /* whether the item was rounded up */
    int grain;
} own_work;

static bool rounds_up(void) {
    const volatile float one = 1, little = 0x1p-40f;
    return one + little > one;
}

static void do_own(void *user, int64_t first, int64_t last, int worker) {
    own_work *w = user;
    cr_assert(worker >= 0 && worker < 3 && first % w->grain == 0);
    for (int64_t i = first; i < last; i++) {
        w->times[i]++;
        w->up[i] = rounds_up();
    }
}

Test(pool, of_a_context_does_what_its_owner_wants) {
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 3}, &ctx) ==
              RO_OK);
    fesetround(FE_UPWARD);
    for (int count = 0; count <= ITEMS; count++)
        for (int i = 0; i < 4; i++) {
            own_work w = {.grain = i < 2 ? 1 : 7};
            ro_parallel_for(ctx, count, w.grain, i % 2 ? 1000 : 0, do_own, &w);
            for (int j = 0; j < ITEMS; j++)
                cr_assert(w.times[j] == (j < count) && !w.up[j]);
        }
    cr_expect(rounds_up());
    ro_ctx_destroy(ctx);
}

/* ---- with borrowed threads ---- */

enum { LENT = 4 };
static int lent_now; /* how many threads the lender below lends, however many are asked for */
static unsigned asked;

typedef struct {
    void (*body)(void *data);
    void *data;
} lent_work;

static void *lent_main(void *user) {
    const lent_work *w = user;
    w->body(w->data);
    return NULL;
}

static void lend(void (*body)(void *data), void *data, unsigned threads, unsigned flags) {
    lent_work w = {body, data};
    pthread_t thread[LENT];
    asked = threads;
    cr_assert(flags == 0);
    for (int i = 1; i < lent_now; i++)
        cr_assert(pthread_create(&thread[i], NULL, lent_main, &w) == 0);
    body(data);
    for (int i = 1; i < lent_now; i++)
        pthread_join(thread[i], NULL);
}

Test(pool, borrows_as_many_threads_as_there_are) {
    ro_pool pool;
    ro_pool_borrow(&pool, 3, lend);
    for (lent_now = 1; lent_now <= LENT; lent_now++) /* 4 is one more than asked for */
        for (int count = 0; count <= ITEMS; count++)
            cr_assert(each_once(&pool, count, 1 + count % 5), "%d of %d", count, lent_now);
    cr_expect(asked == 3 && pool.started == 0);
    cr_expect(ro_pool_threads(&pool, 1000) == 3 && ro_pool_threads(&pool, 1) == 1);
    ro_pool_stop(&pool);
}

Test(pool, borrows_for_a_context) {
    ro_ctx *ctx;
    cr_assert(
        ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 3, .parallel = lend},
                      &ctx) == RO_OK);
    lent_now = 3;
    fesetround(FE_UPWARD); /* new threads inherit this mode */
    for (int i = 0; i < 200; i++) {
        own_work w = {.grain = 1};
        ro_parallel_for(ctx, ITEMS, w.grain, 1000, do_own, &w);
        for (int j = 0; j < ITEMS; j++)
            cr_assert(w.times[j] == 1 && !w.up[j]);
    }
    cr_expect(rounds_up());
    ro_ctx_destroy(ctx);
}

Test(pool, child_of_fork_borrows_nothing) {
    ro_pool pool;
    ro_pool_borrow(&pool, 3, lend);
    const pid_t child = fork();
    if (child == 0) {
        asked = 0;
        _exit(each_once(&pool, ITEMS, 1) && asked == 0 ? 0 : 1);
    }
    int status = -1;
    cr_assert(waitpid(child, &status, 0) == child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
