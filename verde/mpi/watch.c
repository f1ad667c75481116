/* Signs of life. A process that computes for long sends no messages, so its silence says nothing;
 * hence a thread of its own says each second that the process is alive. A process that is stopped,
 * or whose machine cannot be reached, falls silent. Process 0 watches all others, and they watch
 * process 0. */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "verde/mpi/mpi_internal.h"

enum {
    LOOK_MS = 20,   /* between polls; polling MPI also moves messages along */
    SIGN_MS = 1000, /* between signs; less if the patience is short: a quarter of it */
    PATIENCE_S = 30,
    PATIENCE_S_MAX = 86400,
    LATER_MS = 5000, /* if process 0 is lost, process 1 reports it; others wait this much longer */
    HOST_SIZE = 64,
};

typedef struct {
    int64_t pid;
    int64_t leaves; /* 1: the process ends, and sends no further sign */
    char host[HOST_SIZE];
} sign;

typedef struct {
    bool watched, left;
    int64_t heard_ms;
    sign last;
    MPI_Request told;
} peer;

static struct {
    MPI_Comm comm;
    pthread_t thread;
    uint32_t rank, ranks;
    int64_t patience_ms, sign_ms, looked_ms, told_ms;
    sign own;
    peer *peer;
    vd_mpi_lost lost;
    bool started;
    atomic_bool leaves;
} watch;

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void hear(int64_t now) {
    int there = 1;
    while (there) {
        MPI_Status from;
        sign s;
        if (MPI_Iprobe(MPI_ANY_SOURCE, 0, watch.comm, &there, &from) != MPI_SUCCESS || !there)
            return;
        if (MPI_Recv(&s, sizeof s, MPI_BYTE, from.MPI_SOURCE, 0, watch.comm, &from) != MPI_SUCCESS)
            return;
        peer *p = &watch.peer[from.MPI_SOURCE];
        p->last = s;
        p->last.host[HOST_SIZE - 1] = '\0';
        p->heard_ms = now;
        p->left = s.leaves == 1;
    }
}

/* Returns whether all signs have been sent. At most one sign is on its way to each process. */
static bool all_told(void) {
    bool all = true;
    for (uint32_t r = 0; r < watch.ranks; r++) {
        int done = 1;
        if (watch.peer[r].watched)
            MPI_Test(&watch.peer[r].told, &done, MPI_STATUS_IGNORE);
        all &= done != 0;
    }
    return all;
}

static void tell_one(uint32_t to) {
    peer *p = &watch.peer[to];
    if (p->watched && p->told == MPI_REQUEST_NULL)
        MPI_Isend(&watch.own, sizeof watch.own, MPI_BYTE, (int)to, 0, watch.comm, &p->told);
}

/* Sends the signs that are due; the last one waits until no other is on its way, so all get it. */
static void tell(int64_t now) {
    const bool all = all_told(), last = all && atomic_load(&watch.leaves);
    if (watch.own.leaves || (!last && now - watch.told_ms < watch.sign_ms))
        return;
    watch.own.leaves = last;
    watch.told_ms = now;
    for (uint32_t r = 0; r < watch.ranks; r++)
        tell_one(r);
}

/* Resets all timeouts if this process itself did not run for a while and could hear no signs. */
static void forgive(int64_t now) {
    const bool slept = now - watch.looked_ms > 2 * watch.sign_ms;
    for (uint32_t r = 0; slept && r < watch.ranks; r++)
        watch.peer[r].heard_ms = now;
    watch.looked_ms = now;
}

static bool is_lost(uint32_t r, int64_t now) {
    const peer *p = &watch.peer[r];
    const int64_t late = watch.rank > 1 ? LATER_MS : 0;
    return p->watched && !p->left && now - p->heard_ms > watch.patience_ms + late;
}

static void say_lost(uint32_t r, int64_t now) {
    const peer *p = &watch.peer[r];
    char text[256], who[128] = "";
    if (p->last.pid)
        snprintf(who, sizeof who, " (pid %lld on %s)", (long long)p->last.pid, p->last.host);
    snprintf(text, sizeof text,
             "process %u of %u%s has given no sign of life for %lld s: all end; the same command "
             "goes on from the last checkpoint",
             r, watch.ranks, who, (long long)(now - p->heard_ms) / 1000);
    watch.lost(text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void look(void) {
    const int64_t now = now_ms();
    hear(now);
    forgive(now);
    tell(now);
    for (uint32_t r = 0; r < watch.ranks; r++)
        if (is_lost(r, now))
            say_lost(r, now);
}

static bool all_left(void) {
    bool all = watch.own.leaves && all_told();
    for (uint32_t r = 0; r < watch.ranks; r++)
        all &= !watch.peer[r].watched || watch.peer[r].left;
    return all;
}

static void *keep_watch(void *unused) {
    (void)unused;
    for (bool ends = false; !ends;) {
        vd_mpi_lock();
        look();
        ends = atomic_load(&watch.leaves) && all_left();
        vd_mpi_unlock();
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
    return NULL;
}

/* Sets the patience: VERDE_TEAM_PATIENCE, or the default. */
static vd_status take_patience(vd_err *err) {
    const char *text = getenv("VERDE_TEAM_PATIENCE");
    char *end = NULL;
    const bool given = text && *text;
    const long seconds = given ? strtol(text, &end, 10) : PATIENCE_S;
    if (given && (*end || strspn(text, "0123456789") != strlen(text) || seconds < 1 ||
                  seconds > PATIENCE_S_MAX))
        return vd_mpi_fail(err, VD_ERR_USAGE,
                           "VERDE_TEAM_PATIENCE must be seconds, a whole number from 1 to %d, got "
                           "\"%.40s\"",
                           PATIENCE_S_MAX, text);
    watch.patience_ms = 1000 * (int64_t)seconds;
    return VD_OK;
}

static bool make_peers(void) {
    const int64_t now = now_ms();
    watch.peer = calloc(watch.ranks, sizeof *watch.peer);
    for (uint32_t r = 0; watch.peer && r < watch.ranks; r++)
        watch.peer[r] = (peer){.watched = r != watch.rank && (r == 0 || watch.rank == 0),
                               .heard_ms = now,
                               .told = MPI_REQUEST_NULL};
    watch.looked_ms = now;
    watch.told_ms = now - watch.sign_ms;
    return watch.peer != NULL;
}

vd_status vd_watch_start(uint32_t rank, uint32_t ranks, vd_mpi_lost lost, vd_err *err) {
    watch.rank = rank;
    watch.ranks = ranks;
    watch.lost = lost;
    const vd_status status = take_patience(err);
    if (status != VD_OK)
        return status;
    watch.sign_ms = watch.patience_ms < 4 * SIGN_MS ? watch.patience_ms / 4 : SIGN_MS;
    watch.own.pid = getpid();
    gethostname(watch.own.host, HOST_SIZE - 1);
    if (!make_peers())
        return vd_mpi_fail(err, VD_ERR_LOCAL, "out of memory");
    if (MPI_Comm_dup(MPI_COMM_WORLD, &watch.comm) != MPI_SUCCESS)
        return vd_mpi_fail(err, VD_ERR_LOCAL, "MPI_Comm_dup failed");
    watch.started = pthread_create(&watch.thread, NULL, keep_watch, NULL) == 0;
    return watch.started ? VD_OK : vd_mpi_fail(err, VD_ERR_LOCAL, "no thread for signs of life");
}

void vd_watch_end(void) {
    atomic_store(&watch.leaves, true);
    if (watch.started)
        pthread_join(watch.thread, NULL);
    watch.started = false;
    free(watch.peer);
    watch.peer = NULL;
}
