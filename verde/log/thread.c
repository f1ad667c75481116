/* The log's thread: it takes queued items, encodes them and writes them. */
#include "verde/log/queue.h"
#include "verde/base/thread.h"

#include <stdlib.h>

static vd_status write_section(vd_log_writer *w, vd_log_item *i, vd_err *err) {
    vd_status status = VD_OK;
    w->coded.size = 0;
    if (w->run.encoding == VD_LOG_CALLS)
        vd_calls_encode(&i->section, &w->coded);
    else
        status = vd_symbols_deflate(&w->deflater, i->packed,
                                    vd_symbols_packed_size(i->section.elements), &w->coded, err);
    return status == VD_OK ? vd_log_step_put(&w->part, w->sha, &i->section, &w->coded, err)
                           : status;
}

/* Opens the step's file. It replaces one whose steps were not all ended. */
static vd_status open_file(vd_log_writer *w, int64_t step, vd_err *err) {
    char path[1024];
    vd_writer_abort(&w->file);
    w->at = 0;
    w->table.size = 0;
    w->owed = NULL;
    vd_status status = vd_log_path(w->dir, &w->run, step, path, sizeof path, err);
    return status == VD_OK ? vd_writer_open(&w->file, path, 0644, err) : status;
}

static vd_status begin_step(vd_log_writer *w, const vd_log_item *i, vd_err *err) {
    vd_log_step_drop(&w->part);
    if (!w->sha)
        w->sha = vd_sha_create();
    uint32_t sections = 0;
    vd_log_node *node = vd_log_blocks_of(i->node, i->count, &sections);
    vd_status status =
        w->sha && node
            ? VD_OK
            : vd_fail(err, VD_ERR_LOCAL, "no memory for the log of step %lld", (long long)i->step);
    if (status == VD_OK && i->step == vd_log_span_of(&w->run, i->step).first)
        status = open_file(w, i->step, err);
    if (status == VD_OK)
        return vd_log_step_open(&w->part, &w->run, &w->file, i->step, node, sections, err);
    free(node);
    return status;
}

static void tell(vd_log_writer *w) {
    pthread_mutex_lock(&w->lock);
    for (vd_log_pending *p = w->owed; p; p = p->owed)
        p->ready = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    w->owed = NULL;
}

static vd_status end_file(vd_log_writer *w, vd_err *err) {
    vd_status status = vd_log_end_table(&w->table, err);
    if (status == VD_OK)
        status = vd_writer_put(&w->file, w->table.data, w->table.size, err);
    if (status == VD_OK)
        status = vd_writer_commit(&w->file, err);
    if (status == VD_OK)
        tell(w);
    return status;
}

static vd_status end_step(vd_log_writer *w, vd_log_pending *pending, vd_err *err) {
    vd_status status = vd_log_step_end(&w->part, &pending->done, err);
    if (status != VD_OK)
        return status;
    w->at += pending->done.bytes;
    vd_put_u64(&w->table, w->at);
    pending->owed = w->owed;
    w->owed = pending;
    const vd_log_span span = vd_log_span_of(&w->run, pending->step);
    return pending->step + 1 == span.first + span.count ? end_file(w, err) : VD_OK;
}

static vd_status process(vd_log_writer *w, vd_log_item *i, vd_err *err) {
    switch (i->kind) {
    case VD_ITEM_BEGIN: return begin_step(w, i, err);
    case VD_ITEM_SECTION: return write_section(w, i, err);
    case VD_ITEM_END: return end_step(w, i->pending, err);
    }
    return vd_fail(err, VD_ERR_LOCAL, "a rounding log has no item of kind %d", (int)i->kind);
}

/* Drops a step and a file that were not ended. */
static void drop(vd_log_writer *w) {
    vd_log_step_drop(&w->part);
    vd_writer_abort(&w->file);
}

/* Keeps the error for callers that wait. Nothing more is written. */
static void fail(vd_log_writer *w, const vd_err *err) {
    drop(w);
    pthread_mutex_lock(&w->lock);
    w->failure = *err;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void process_batch(vd_log_writer *w, const vd_log_batch *b) {
    for (vd_log_item *i = b->first; i; i = i->next) {
        vd_err err = {0};
        if (w->failure.status != VD_OK) /* no lock is needed, as only this thread sets it */
            return;
        if (process(w, i, &err) != VD_OK)
            fail(w, &err);
    }
}

/* Takes the next batches; the lock must be held. NULL: the writer is closing. */
static vd_log_batch *take(vd_log_writer *w) {
    while (!w->first && !w->closing)
        pthread_cond_wait(&w->queued, &w->lock);
    vd_log_batch *b = w->first;
    if (b) {
        w->first = b->next;
        if (!w->first)
            w->last = &w->first;
    }
    return b;
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
    pthread_mutex_unlock(&w->lock);
    drop(w);
    vd_sha_destroy(w->sha);
    vd_buf_free(&w->coded);
    vd_buf_free(&w->table);
    vd_deflater_free(&w->deflater);
    return NULL;
}

int vd_log_thread_start(vd_log_writer *w) {
    return vd_thread_start(&w->thread, run_thread, w);
}
