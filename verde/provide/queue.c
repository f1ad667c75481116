/* Runs jobs in children: starts those that wait and watches those that run. Single-threaded. All
 * state is in the ledger, so that a daemon that was killed can go on. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verde/provide/child.h"
#include "verde/provide/internal.h"

enum {
    LOOK_MS = 100,      /* between two checks of the children */
    GRACE_S = 10,       /* between SIGTERM and SIGKILL */
    KEEP_SECONDS_S = 5, /* between updates of a job's seconds in the ledger */
    COUNT_S = 1,        /* between sums of a client's seconds */
    PROBE_S = 10,       /* between tests of the ledger, */
    PROBE_AGAIN_S = 1,  /* or while it cannot be written */
    MEASURE_S = 2,      /* between measurements of a job's disk space, */
    MEASURE_PART = 20,  /* or this times the duration of one if that is longer */
};

/* Returns true if this place holds a job. */
static bool is_taken(const vd_running *r) {
    return r->pid || r->ended;
}

/* ---- the end of a child ---- */

static int64_t seconds_of(const vd_running *r) {
    return r->before + (int64_t)(vd_seconds() - r->start + 0.5);
}

/* Returns true if a deliberate fault had no effect on the job. */
static bool fault_was_idle(const vd_daemon *daemon, const vd_job_record *job) {
    char path[1200];
    vd_job_path(daemon, job->id, VD_JOB_IDLE, path);
    return job->state == VD_JOB_DONE && access(path, F_OK) == 0;
}

/* Stores how a job ended, which alone frees its place: a full disk may have room later. */
static void keep_end(vd_queue *q, vd_running *r) {
    vd_daemon *daemon = q->daemon;
    vd_err err = {0};
    r->ended = true;
    if (vd_ledger_set_job(daemon->ledger, &r->job, &err) != VD_OK) {
        vd_trouble_tell(&daemon->trouble, &daemon->options, err.text);
        return;
    }
    daemon->options.say("verde provide: job %.8s %s after %lld s%s", r->job.id,
                        vd_job_state_name(r->job.state), (long long)r->job.seconds,
                        fault_was_idle(daemon, &r->job)
                            ? "; its fault changed nothing, so that this run is honest"
                            : "");
    *r = (vd_running){.pid = 0};
}

static void end_job(vd_queue *q, vd_running *r, int status) {
    vd_daemon *daemon = q->daemon;
    vd_err err = {0};
    bool found = false, cancelled = false;
    vd_job_record now;
    if (vd_ledger_get_job(daemon->ledger, NULL, r->job.id, &now, &found, &err) == VD_OK && found)
        cancelled = now.cancel;
    r->job.seconds = seconds_of(r);
    r->job.written = vd_job_written(daemon, r->job.id);
    vd_job_end(daemon, r, status, cancelled);
    keep_end(q, r);
}

/* ---- while it runs ---- */

static void tell_to_stop(vd_running *r, const char *why) {
    if (!r->killed) {
        kill(r->pid, SIGTERM);
        r->killed = true;
        r->killed_at = vd_seconds();
        r->why = why;
    } else if (vd_seconds() - r->killed_at > GRACE_S) {
        kill(r->pid, SIGKILL);
    }
}

/* Returns the client's seconds of computing, up to now: the ledger's are updated only now and
 * then. */
static int64_t client_seconds(vd_queue *q, const vd_running *r) {
    vd_usage usage;
    vd_err err = {0};
    if (vd_ledger_usage(q->daemon->ledger, r->job.client, &usage, &err) != VD_OK)
        return 0;
    for (int i = 0; i < VD_RUNNING_MAX; i++) {
        const vd_running *other = &q->running[i];
        if (other->pid && !other->ended && strcmp(other->job.client, r->job.client) == 0)
            usage.seconds += seconds_of(other) - other->job.seconds;
    }
    return usage.seconds;
}

/* Returns true if a job exceeds its time, or its client's, which all running jobs of the client
 * share. */
static bool is_over_time(vd_queue *q, vd_running *r) {
    const vd_provide_limits *l = &q->daemon->options.limits;
    const double now = vd_seconds();
    if (l->job_seconds && seconds_of(r) >= l->job_seconds)
        return true;
    if (!l->client_seconds || now - r->counted < COUNT_S)
        return false;
    r->counted = now;
    return client_seconds(q, r) >= l->client_seconds;
}

/* Stops a job that exceeds its disk space. Its files are consistent at any moment. */
static void stop_if_over_disk(vd_queue *q, vd_running *r) {
    const double now = vd_seconds();
    if (now - r->measured < r->pause)
        return;
    r->job.written = vd_job_written(q->daemon, r->job.id);
    r->measured = vd_seconds();
    r->pause = MEASURE_PART * (r->measured - now);
    r->pause = r->pause > MEASURE_S ? r->pause : MEASURE_S;
    if (r->job.written <= vd_job_disk_most(r->job.disk))
        return;
    tell_to_stop(r, "stopped: it has written more to the disk than its program was estimated to");
    kill(r->pid, SIGKILL);
}

static void watch(vd_queue *q, vd_running *r) {
    vd_job_record now;
    vd_err err = {0};
    bool found = false;
    int status;
    if (r->ended) {
        keep_end(q, r);
        return;
    }
    if (waitpid(r->pid, &status, WNOHANG) == r->pid) {
        end_job(q, r, status);
        return;
    }
    if (is_over_time(q, r))
        tell_to_stop(r, "stopped: its limit of seconds of computing was used up");
    stop_if_over_disk(q, r);
    if (vd_ledger_get_job(q->daemon->ledger, NULL, r->job.id, &now, &found, &err) != VD_OK)
        return;
    if (!found || now.cancel)
        tell_to_stop(r, r->why);
    if (seconds_of(r) < r->job.seconds + KEEP_SECONDS_S)
        return;
    r->job.seconds = seconds_of(r);
    if (vd_ledger_set_job(q->daemon->ledger, &r->job, &err) != VD_OK)
        vd_trouble_tell(&q->daemon->trouble, &q->daemon->options, err.text);
}

/* ---- the start ---- */

static vd_status start_child(vd_daemon *daemon, vd_running *r, vd_err *err) {
    char *argv[VD_CHILD_ARGS_MAX], dir[1200], log[1200], keep[32], parent[32], bytes[32];
    int count = 0;
    vd_job_path(daemon, r->job.id, "", dir);
    vd_job_path(daemon, r->job.id, VD_JOB_LOG, log);
    snprintf(keep, sizeof keep, "%lld", (long long)r->job.keep);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    snprintf(bytes, sizeof bytes, "%lld", (long long)vd_job_disk_most(r->job.disk));
    for (char *const *at = daemon->options.run_argv; *at && count < VD_CHILD_ARGS_MAX - 5; at++)
        argv[count++] = *at;
    argv[count++] = parent;
    argv[count++] = dir;
    argv[count++] = keep;
    argv[count++] = bytes;
    argv[count] = NULL;
    return vd_child_start(argv, log, NULL, 0, &r->pid, err);
}

/* Starts a job, unless its client has meanwhile cancelled or deleted it. */
static void start_job(vd_queue *q, vd_running *r, const vd_job_record *job) {
    vd_daemon *daemon = q->daemon;
    vd_err err = {0};
    bool started = false;
    *r = (vd_running){.job = *job, .start = vd_seconds(), .before = job->seconds};
    r->job.state = VD_JOB_RUNNING;
    vd_status status = vd_ledger_start_job(daemon->ledger, job->id, &started, &err);
    if (status == VD_OK && started)
        status = start_child(daemon, r, &err);
    if (status == VD_OK && started)
        return;
    if (status != VD_OK)
        vd_trouble_tell(&daemon->trouble, &daemon->options, err.text);
    r->job.state = VD_JOB_FAILED;
    snprintf(r->job.error, sizeof r->job.error, "%.400s", err.text);
    if (started)
        keep_end(q, r);
    else
        *r = (vd_running){.pid = 0};
}

typedef struct {
    const vd_queue *queue;
    vd_job_record job;
    int fewest; /* fewest running jobs of a client; INT32_MAX: none found */
} choice;

static bool consider(void *user, const vd_job_record *job) {
    choice *c = user;
    int runs = 0;
    for (int i = 0; i < VD_RUNNING_MAX; i++)
        runs += is_taken(&c->queue->running[i]) &&
                strcmp(c->queue->running[i].job.client, job->client) == 0;
    if (job->state == VD_JOB_QUEUED && runs < c->fewest) {
        c->job = *job;
        c->fewest = runs;
    }
    return true;
}

/* Starts the oldest job of the client that runs the fewest. */
static bool start_next(vd_queue *q, vd_running *place) {
    choice c = {.queue = q, .fewest = INT32_MAX};
    vd_err err = {0};
    if (vd_ledger_list_jobs(q->daemon->ledger, NULL, consider, &c, &err) != VD_OK)
        vd_trouble_tell(&q->daemon->trouble, &q->daemon->options, err.text);
    if (c.fewest == INT32_MAX)
        return false;
    start_job(q, place, &c.job);
    return true;
}

/* ---- the thread ---- */

/* Tests the ledger, so that its health is known even without requests. */
static void probe_ledger(vd_queue *q) {
    vd_daemon *daemon = q->daemon;
    vd_err err = {0};
    const double pause = vd_ledger_is_fine(daemon->ledger) ? PROBE_S : PROBE_AGAIN_S;
    if (vd_seconds() - q->probed < pause)
        return;
    q->probed = vd_seconds();
    if (vd_ledger_probe(daemon->ledger, &err) != VD_OK)
        vd_trouble_tell(&daemon->trouble, &daemon->options, err.text);
}

static void look(vd_queue *q) {
    bool more = true;
    for (int i = 0; i < VD_RUNNING_MAX; i++)
        if (is_taken(&q->running[i]))
            watch(q, &q->running[i]);
    for (int i = 0; i < q->daemon->options.jobs && more; i++)
        if (!is_taken(&q->running[i]))
            more = start_next(q, &q->running[i]);
    probe_ledger(q);
    if (vd_seconds() - q->collected < VD_COLLECT_S && q->collected > 0)
        return;
    vd_err err = {0};
    q->collected = vd_seconds();
    if (vd_uploads_collect(&q->daemon->uploads, vd_unix_time() - q->daemon->options.limits.keep_s,
                           &err) != VD_OK)
        vd_trouble_tell(&q->daemon->trouble, &q->daemon->options, err.text);
}

static void wait_a_little(vd_queue *q) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&q->wake, &q->lock, &until);
}

static void stop_children(vd_queue *q) {
    for (int i = 0; i < VD_RUNNING_MAX; i++)
        if (q->running[i].pid && !q->running[i].ended)
            kill(q->running[i].pid, SIGKILL); /* its files are consistent at any moment */
    for (int i = 0; i < VD_RUNNING_MAX; i++)
        if (q->running[i].pid && !q->running[i].ended)
            waitpid(q->running[i].pid, NULL, 0);
}

static void *work(void *user) {
    vd_queue *q = user;
    pthread_mutex_lock(&q->lock);
    while (!q->stop) {
        pthread_mutex_unlock(&q->lock);
        look(q);
        pthread_mutex_lock(&q->lock);
        if (!q->stop)
            wait_a_little(q);
    }
    pthread_mutex_unlock(&q->lock);
    stop_children(q);
    return NULL;
}

vd_status vd_queue_start(vd_queue *q, vd_daemon *daemon, vd_err *err) {
    sigset_t all, before;
    q->daemon = daemon;
    if (pthread_mutex_init(&q->lock, NULL) != 0 || pthread_cond_init(&q->wake, NULL) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "could not create a mutex");
    sigfillset(&all); /* signals are handled by the main thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&q->thread, NULL, work, q);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    q->started = !error;
    return error ? vd_fail(err, VD_ERR_LOCAL, "could not start a thread: %s", strerror(error))
                 : VD_OK;
}

void vd_queue_wake(vd_queue *q) {
    pthread_mutex_lock(&q->lock);
    pthread_cond_signal(&q->wake);
    pthread_mutex_unlock(&q->lock);
}

void vd_queue_stop(vd_queue *q) {
    if (!q->started)
        return;
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_signal(&q->wake);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->wake);
    pthread_mutex_destroy(&q->lock);
    q->started = false;
}
