/* The contexts of a process. CBLAS has no handle, so they are this library's only state. */
#include "repops/blas/blas.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "repops/device.h"

enum { SPARES_MAX = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ro_ctx *team; /* the context with REPOPS_THREADS threads */
static bool team_busy;
static ro_ctx *spare[SPARES_MAX]; /* idle contexts of one thread each */
static int spare_count;
static const caller library = {.name = "librepops_blas"};

/* Returns REPOPS_THREADS, or 0 for one thread per core. */
static int wanted_threads(void) {
    const char *text = getenv("REPOPS_THREADS");
    char *end = NULL;
    if (!text || *text == '\0')
        return 0;
    const long threads = strtol(text, &end, 10);
    if (*end == '\0' && threads >= 0 && threads <= 1024)
        return (int)threads;
    blas_complain(library, "REPOPS_THREADS must be 0..1024; using one thread per core");
    return 0;
}

/* Returns why a backend cannot be used, or NULL if it can: it is unknown, absent, or a device,
 * which has no access to the program's memory. */
static const char *unfit(ro_status status, const ro_ctx *ctx) {
    if (status == RO_ERR_ARG || status == RO_ERR_DEVICE)
        return ro_ctx_error(NULL);
    return status == RO_OK && !ro_ctx_in_host_memory(ctx)
               ? "REPOPS_CPU is a device, and matrices are in the program's memory"
               : NULL;
}

/* Creates a context. If the backend cannot be used, writes a line and takes another one instead of
 * failing: all backends give the same bits. */
static ro_ctx *create(caller by, int threads) {
    ro_ctx *ctx = NULL;
    ro_status status =
        ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = threads}, &ctx);
    const char *why = unfit(status, ctx);
    if (why) {
        blas_complain(library, why);
        ro_ctx_destroy(ctx);
        status = ro_ctx_create(
            &(ro_options){.size = sizeof(ro_options), .threads = threads, .backend = "cpu"}, &ctx);
    }
    if (status != RO_OK)
        blas_complain(by, ro_ctx_error(NULL));
    return ctx;
}

ro_ctx *blas_take(caller by) {
    ro_ctx *ctx = NULL;
    pthread_mutex_lock(&lock);
    const bool leads = !team_busy;
    if (leads) {
        if (!team)
            team = create(by, wanted_threads());
        team_busy = team != NULL;
        ctx = team;
    } else if (spare_count > 0) {
        ctx = spare[--spare_count];
    }
    pthread_mutex_unlock(&lock);
    return ctx || leads ? ctx : create(by, 1);
}

void blas_give(ro_ctx *ctx) {
    if (!ctx)
        return;
    pthread_mutex_lock(&lock);
    if (ctx == team) {
        team_busy = false;
        ctx = NULL;
    } else if (spare_count < SPARES_MAX) {
        spare[spare_count++] = ctx;
        ctx = NULL;
    }
    pthread_mutex_unlock(&lock);
    ro_ctx_destroy(ctx);
}

/* ---- fork, exit and dlclose ---- */

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&lock);
}

/* Abandons the team in a child of fork if another thread of the parent was using it: that thread
 * does not exist in the child, and would never give it back. */
static void after_fork_in_child(void) {
    if (team_busy)
        team = NULL;
    team_busy = false;
    blas_forget_counts();
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void load(void) {
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* Frees only idle contexts: threads that are still in a call keep theirs. */
__attribute__((destructor)) static void unload(void) {
    pthread_mutex_lock(&lock);
    if (!team_busy) {
        ro_ctx_destroy(team);
        team = NULL;
    }
    while (spare_count > 0)
        ro_ctx_destroy(spare[--spare_count]);
    pthread_mutex_unlock(&lock);
}
