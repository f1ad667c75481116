/* The log's own thread: takes what was queued, encodes it and writes it. */
#include "verde/log/queue.h"

#include <signal.h>
#include <stdlib.h>

void vd_log_item_free(vd_log_item *i) {
    if (!i)
        return;
    free(i->node);
    free(i->packed);
    vd_log_section_free(&i->section);
    free(i);
}

static vd_status write_section(vd_log_writer *w, vd_log_item *i, vd_err *err) {
    vd_buf coded = {0};
    vd_status status = VD_OK;
    if (w->run.encoding == VD_LOG_CALLS)
        vd_calls_encode(&i->section, &coded);
    else
        status =
            vd_symbols_deflate(i->packed, vd_symbols_packed_size(i->section.elements), &coded, err);
    if (status == VD_OK)
        status = vd_log_step_put(&w->file, &i->section, &coded, err);
    vd_buf_free(&coded);
    return status;
}

static vd_status process(vd_log_writer *w, vd_log_item *i, vd_log_done *done, vd_err *err) {
    vd_log_node *node = i->node;
    switch (i->kind) {
    case VD_ITEM_BEGIN:
        vd_log_step_drop(&w->file);
        i->node = NULL;
        return vd_log_step_open(&w->file, &w->run, w->dir, i->step, node, i->count, err);
    case VD_ITEM_SECTION: return write_section(w, i, err);
    default: return vd_log_step_commit(&w->file, done, err);
    }
}

static vd_log_item *take(vd_log_writer *w) {
    while (!w->first && !w->closing)
        pthread_cond_wait(&w->queued, &w->lock);
    vd_log_item *i = w->first;
    if (i) {
        w->first = i->next;
        if (!w->first)
            w->last = &w->first;
    }
    return i;
}

static void *run_thread(void *user) {
    vd_log_writer *w = user;
    pthread_mutex_lock(&w->lock);
    for (vd_log_item *i; (i = take(w));) {
        vd_err err = {0};
        vd_log_done done = {0};
        const bool failed = w->failure.status != VD_OK; /* then items are only freed */
        const size_t bytes = i->bytes;
        vd_log_pending *pending = i->pending;
        pthread_mutex_unlock(&w->lock);
        if (!failed && process(w, i, &done, &err) != VD_OK)
            vd_log_step_drop(&w->file);
        vd_log_item_free(i);
        pthread_mutex_lock(&w->lock);
        if (err.status != VD_OK)
            w->failure = err;
        if (pending) {
            pending->done = done;
            pending->ready = true;
        }
        w->held -= bytes;
        if (pending || err.status != VD_OK || w->waiting > 0)
            pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    vd_log_step_drop(&w->file); /* one that was not ended */
    return NULL;
}

/* Signals are for the other threads. */
int vd_log_thread_start(vd_log_writer *w) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&w->thread, NULL, run_thread, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}
