/* The thread that runs a handler, so that the event loop never waits for it. */
#include <string.h>
#include <unistd.h>

#include "verde/net/server_internal.h"
#include "verde/base/thread.h"

/* Wakes the event loop. If the pipe is full, it already holds wake-ups that were not read. */
static void wake(const vd_worker *worker) {
    ssize_t written = write(worker->wake_fd, "", 1);
    (void)written;
}

static void *work(void *user) {
    vd_worker *worker = user;
    pthread_mutex_lock(&worker->lock);
    while (!worker->quit) {
        vd_job *job = vd_jobs_take(&worker->waiting);
        if (!job) {
            pthread_cond_wait(&worker->work, &worker->lock);
            continue;
        }
        pthread_mutex_unlock(&worker->lock);
        worker->handler(worker->user, &job->request, &job->response);
        pthread_mutex_lock(&worker->lock);
        vd_jobs_done(&worker->waiting, job);
        vd_jobs_append(&worker->done, job);
        wake(worker);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

vd_status vd_worker_init(vd_worker *worker, vd_err *err) {
    if (pthread_mutex_init(&worker->lock, NULL) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "could not create a mutex");
    if (pthread_cond_init(&worker->work, NULL) == 0)
        return VD_OK;
    pthread_mutex_destroy(&worker->lock);
    return vd_fail(err, VD_ERR_LOCAL, "could not create a condition variable");
}

vd_status vd_worker_start(vd_worker *worker, vd_err *err) {
    int error = vd_thread_start(&worker->thread, work, worker);
    if (error)
        return vd_fail(err, VD_ERR_LOCAL, "could not start the worker thread: %s", strerror(error));
    worker->running = true;
    return VD_OK;
}

void vd_worker_stop(vd_worker *worker) {
    if (!worker->running)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->quit = true;
    pthread_cond_signal(&worker->work);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    worker->running = false;
}

void vd_worker_release(vd_worker *worker, void (*drop)(vd_job *job)) {
    vd_job *job;
    while ((job = vd_jobs_take(&worker->waiting)) || (job = vd_jobs_take(&worker->done)))
        drop(job);
    pthread_cond_destroy(&worker->work);
    pthread_mutex_destroy(&worker->lock);
}

vd_job *vd_worker_put(vd_worker *worker, vd_job *job) {
    pthread_mutex_lock(&worker->lock);
    vd_job *out = vd_jobs_insert(&worker->waiting, job, worker->queue_max);
    if (out != job)
        pthread_cond_signal(&worker->work);
    pthread_mutex_unlock(&worker->lock);
    return out;
}

vd_job *vd_worker_take_done(vd_worker *worker) {
    pthread_mutex_lock(&worker->lock);
    vd_job *job = vd_jobs_take(&worker->done);
    pthread_mutex_unlock(&worker->lock);
    return job;
}

void vd_worker_abandon(vd_worker *worker, vd_job *job) {
    pthread_mutex_lock(&worker->lock);
    if (vd_jobs_remove(&worker->waiting, job)) {
        vd_jobs_append(&worker->done, job);
        wake(worker);
    }
    pthread_mutex_unlock(&worker->lock);
}
