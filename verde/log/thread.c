/* The log's own thread: takes what was queued, encodes it and writes it. */
#include "verde/log/queue.h"

#include <signal.h>
#include <stdlib.h>

static vd_status write_section(vd_log_writer *w, vd_log_item *i, vd_err *err) {
    vd_status status = VD_OK;
    w->coded.size = 0;
    if (w->run.encoding == VD_LOG_CALLS)
        vd_calls_encode(&i->section, &w->coded);
    else
        status = vd_symbols_deflate(&w->deflater, i->packed,
                                    vd_symbols_packed_size(i->section.elements), &w->coded, err);
    return status == VD_OK ? vd_log_step_put(&w->file, w->sha, &i->section, &w->coded, err)
                           : status;
}

static vd_status begin_file(vd_log_writer *w, const vd_log_item *i, vd_err *err) {
    vd_log_step_drop(&w->file);
    if (!w->sha)
        w->sha = vd_sha_create();
    vd_log_node *node = vd_log_copy_nodes(i->node, i->count);
    if (!w->sha || !node) {
        free(node);
        return vd_fail(err, VD_ERR_LOCAL, "no memory for the log of step %lld", (long long)i->step);
    }
    return vd_log_step_open(&w->file, &w->run, w->dir, i->step, node, i->count, err);
}

static vd_status process(vd_log_writer *w, vd_log_item *i, vd_log_done *done, vd_err *err) {
    switch (i->kind) {
    case VD_ITEM_BEGIN: return begin_file(w, i, err);
    case VD_ITEM_SECTION: return write_section(w, i, err);
    default: return vd_log_step_end(&w->file, done, &w->written[w->files], err);
    }
}

/* ---- under the lock, but for what takes time ---- */

/* What went wrong is said to whoever waits, and nothing more is written. */
static void fail(vd_log_writer *w, const vd_err *err) {
    w->failure = *err;
    for (uint32_t i = 0; i < w->files; i++)
        vd_writer_abort(&w->written[i]);
    w->files = 0;
    pthread_cond_broadcast(&w->changed);
}

static void owe(vd_log_writer *w, vd_log_pending *pending, const vd_log_done *done) {
    pending->done = *done;
    w->owed[w->files++] = pending;
    w->files_bytes += done->bytes;
}

static void commit_files(vd_log_writer *w) {
    vd_err err = {0};
    pthread_mutex_unlock(&w->lock);
    const vd_status status = vd_writer_commit_all(w->written, w->files, &err);
    pthread_mutex_lock(&w->lock);
    if (status != VD_OK)
        fail(w, &err);
    for (uint32_t i = 0; i < w->files; i++)
        w->owed[i]->ready = true;
    w->files = 0;
    w->files_bytes = 0;
    pthread_cond_broadcast(&w->changed);
}

static vd_log_batch *take(vd_log_writer *w) {
    while (!w->first && !w->closing) {
        if (w->asking > 0 && w->files > 0)
            commit_files(w);
        else
            pthread_cond_wait(&w->queued, &w->lock);
    }
    vd_log_batch *b = w->first;
    if (b) {
        w->first = b->next;
        if (!w->first)
            w->last = &w->first;
    }
    return b;
}

/* ---- without the lock ---- */

/* A file that is whole, to be made durable now or with others; or the end of the log. */
static void tell(vd_log_writer *w, vd_log_pending *pending, const vd_log_done *done,
                 const vd_err *err) {
    pthread_mutex_lock(&w->lock);
    if (err->status != VD_OK)
        fail(w, err);
    else
        owe(w, pending, done);
    if (w->files == VD_LOG_FILES || w->files_bytes >= VD_LOG_FILES_BYTES)
        commit_files(w);
    pthread_mutex_unlock(&w->lock);
}

static void process_batch(vd_log_writer *w, const vd_log_batch *b) {
    for (vd_log_item *i = b->first; i; i = i->next) {
        vd_err err = {0};
        vd_log_done done = {0};
        if (w->failure.status != VD_OK) /* which this thread alone writes */
            return;
        if (process(w, i, &done, &err) != VD_OK)
            vd_log_step_drop(&w->file);
        if (err.status != VD_OK || i->pending)
            tell(w, i->pending, &done, &err);
    }
}

static void *run_thread(void *user) {
    vd_log_writer *w = user;
    pthread_mutex_lock(&w->lock);
    for (vd_log_batch *b; (b = take(w));) {
        const size_t bytes = b->bytes;
        pthread_mutex_unlock(&w->lock);
        process_batch(w, b);
        free(b);
        pthread_mutex_lock(&w->lock);
        w->held -= bytes;
        if (w->waiting > 0)
            pthread_cond_broadcast(&w->changed);
    }
    if (w->files > 0)
        commit_files(w);
    pthread_mutex_unlock(&w->lock);
    vd_log_step_drop(&w->file); /* one that was not ended */
    vd_sha_destroy(w->sha);
    vd_buf_free(&w->coded);
    vd_deflater_free(&w->deflater);
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
