/* This file runs a second run in the background, while its provider keeps answering. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "verde/exec/run.h"
#include "verde/exec/source.h"
#include "verde/base/thread.h"

struct vd_again {
    char dir[1024];
    vd_exec exec;
    int32_t keep;
    pthread_t thread;
    bool started;
    atomic_bool stop, finished;
    atomic_llong step;
    _Atomic double left_s; /* estimate, from the first step on */
    vd_status status;      /* of the finished run */
    vd_err err;
    vd_replay *replay;
};

vd_status vd_again_create(const char *dir, const vd_exec *exec, const vd_fault *fault, int32_t keep,
                          vd_again **out, vd_err *err) {
    vd_again *a = calloc(1, sizeof *a);
    if (!a)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    snprintf(a->dir, sizeof a->dir, "%s", dir);
    a->exec = *exec;
    a->keep = keep;
    a->exec.fault = fault ? *fault : (vd_fault){0};
    *out = a;
    return VD_OK;
}

static bool see_step(void *user, const vd_progress *progress) {
    vd_again *a = user;
    double done = (double)(progress->step - progress->resumed_at);
    atomic_store(&a->step, progress->step);
    atomic_store(&a->left_s, progress->seconds / done * (double)(progress->steps - progress->step));
    return !atomic_load(&a->stop);
}

static void *execute(void *user) {
    vd_again *a = user;
    vd_run_options options = {
        .exec = &a->exec, .dir = a->dir, .keep = a->keep, .progress = see_step, .user = a};
    vd_run_result result;
    a->status = vd_run(&options, &result, &a->err);
    atomic_store(&a->finished, true);
    return NULL;
}

static vd_status again_start(vd_again *a, vd_err *err) {
    int error = vd_thread_start(&a->thread, execute, a);
    if (error)
        return vd_fail(err, VD_ERR_LOCAL, "could not start a second run: %s", strerror(error));
    a->started = true;
    return VD_OK;
}

static vd_status say_progress(const vd_again *a, vd_err *err) {
    long long step = atomic_load(&a->step);
    char left[32];
    if (step == 0)
        return vd_fail(err, VD_ERR_IO, "running the job again");
    vd_print_seconds(atomic_load(&a->left_s), left);
    return vd_fail(err, VD_ERR_IO, "running the job again: step %lld of %lld, %s left", step,
                   (long long)a->exec.program->steps, left);
}

static vd_status open_replay(vd_again *a, vd_err *err) {
    if (a->replay)
        return VD_OK;
    vd_status status = vd_replay_create(a->dir, &a->exec, &a->replay, err);
    return status == VD_OK ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "the second run: %s", err->text);
}

vd_status vd_again_source(void *again, vd_source *out, vd_err *err) {
    vd_again *a = again;
    if (!a->started && again_start(a, err) != VD_OK)
        return VD_ERR_LOCAL;
    if (!atomic_load(&a->finished))
        return say_progress(a, err);
    if (a->status != VD_OK)
        return vd_fail(err, VD_ERR_LOCAL, "the second run failed: %s", a->err.text);
    vd_status status = open_replay(a, err);
    if (status == VD_OK)
        *out = vd_replay_source(a->replay);
    return status;
}

void vd_again_destroy(vd_again *a) {
    if (!a)
        return;
    atomic_store(&a->stop, true);
    if (a->started)
        pthread_join(a->thread, NULL);
    vd_replay_destroy(a->replay);
    free(a);
}
