/* This file has the functions that the executor calls: they check, copy and queue. */
#include "verde/log/queue.h"

#include <stdlib.h>
#include <string.h>

static vd_status failure(vd_log_writer *w, vd_err *err) {
    if (w->failure.status == VD_OK)
        return VD_OK;
    return vd_fail(err, w->failure.status, "the rounding log: %s", w->failure.text);
}

static vd_status no_memory(const vd_log_writer *w, vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "no memory to log step %lld", (long long)w->step);
}

static void wake(vd_log_writer *w) {
    w->unsaid = 0;
    pthread_cond_signal(&w->queued);
}

/* ---- batches ---- */

static void hand_over(vd_log_writer *w) {
    vd_log_batch *b = w->batch;
    const bool whole = w->ended == w->span.count;
    if (!b)
        return;
    w->batch = NULL;
    pthread_mutex_lock(&w->lock);
    *w->last = b;
    w->last = &b->next;
    w->unsaid += b->used;
    if (w->unsaid >= VD_LOG_WAKE || whole)
        wake(w);
    pthread_mutex_unlock(&w->lock);
}

/* Waits for memory for a batch with room for `size` bytes, and reserves more, up to VD_LOG_BATCH,
 * if there is more. Returns 0 if the thread failed. */
static size_t reserve(vd_log_writer *w, size_t size, vd_err *err) {
    size_t bytes = sizeof(vd_log_batch) + size;
    pthread_mutex_lock(&w->lock);
    while (w->failure.status == VD_OK && w->held > 0 &&
           (w->held > w->limit || bytes > w->limit - w->held)) {
        wake(w);
        w->waiting++;
        pthread_cond_wait(&w->changed, &w->lock);
        w->waiting--;
    }
    const size_t left = w->limit > w->held ? w->limit - w->held : 0;
    const size_t most = left < VD_LOG_BATCH ? left : VD_LOG_BATCH;
    bytes = bytes < most ? most : bytes;
    if (failure(w, err) != VD_OK)
        bytes = 0;
    w->held += bytes;
    w->peak = w->held > w->peak ? w->held : w->peak;
    pthread_mutex_unlock(&w->lock);
    return bytes;
}

static vd_status open_batch(vd_log_writer *w, size_t size, vd_err *err) {
    const size_t bytes = reserve(w, size, err);
    if (bytes == 0)
        return VD_ERR_LOCAL;
    vd_log_batch *b = malloc(bytes);
    if (!b) {
        pthread_mutex_lock(&w->lock);
        w->held -= bytes;
        pthread_mutex_unlock(&w->lock);
        return no_memory(w, err);
    }
    b->next = NULL;
    b->bytes = bytes;
    b->room = bytes - sizeof *b;
    b->used = 0;
    b->first = NULL;
    b->last = &b->first;
    w->batch = b;
    return VD_OK;
}

/* Makes an item with a tail of `tail` bytes, and waits for their memory. The item is not queued
 * yet. */
static vd_status make_item(vd_log_writer *w, vd_log_item_kind kind, size_t tail, vd_log_item **out,
                           vd_err *err) {
    const size_t size = sizeof **out + tail;
    vd_status status = VD_OK;
    if (w->batch && size > w->batch->room - w->batch->used)
        hand_over(w);
    if (!w->batch)
        status = open_batch(w, size, err);
    if (status != VD_OK)
        return status;
    *out = (vd_log_item *)(void *)(w->batch->memory + w->batch->used);
    **out = (vd_log_item){.kind = kind};
    return VD_OK;
}

/* Queues the item that was made last, with its tail of `tail` bytes. */
static void push(vd_log_writer *w, vd_log_item *i, size_t tail) {
    vd_log_batch *b = w->batch;
    const size_t end = b->used + sizeof *i + tail, aligned = (end + 15) / 16 * 16;
    b->used = aligned < b->room ? aligned : b->room;
    *b->last = i;
    b->last = &i->next;
}

/* ---- steps ---- */

/* Checks a step's place in its file: no step is skipped; a first step may begin the file anew. */
static vd_status begin_in_file(vd_log_writer *w, int64_t step, vd_err *err) {
    const vd_log_span span = vd_log_span_of(&w->run, step);
    const bool begins = w->ended == 0 || w->ended == w->span.count;
    const int64_t next = begins ? span.first : w->span.first + w->ended;
    if (step != next || (w->begun && w->ended > 0 && !begins))
        return vd_fail(err, VD_ERR_LOCAL, "step %lld is not the next one to be logged, %lld is",
                       (long long)step, (long long)next);
    if (begins)
        w->ended = 0;
    w->span = span;
    return VD_OK;
}

vd_status vd_log_begin(vd_log_writer *w, int64_t step, const vd_log_node *node, uint32_t count,
                       vd_err *err) {
    vd_log_item *i;
    const size_t bytes = count * sizeof *node;
    vd_status status = vd_log_check_run(&w->run, step, err);
    if (status == VD_OK)
        status = vd_log_check_nodes(node, count, err);
    if (status == VD_OK)
        status = begin_in_file(w, step, err);
    if (status != VD_OK)
        return status;
    w->begun = false;
    w->step = step;
    status = make_item(w, VD_ITEM_BEGIN, bytes, &i, err);
    if (status != VD_OK)
        return status;
    free(w->node);
    w->node = vd_log_copy_nodes(node, count);
    if (!w->node)
        return no_memory(w, err);
    w->count = count;
    w->next = 0;
    w->begun = true;
    i->step = step;
    i->count = count;
    i->node = (vd_log_node *)(void *)i->tail;
    if (bytes > 0)
        memcpy(i->node, node, bytes);
    push(w, i, bytes);
    return VD_OK;
}

/* Checks that this node is next. *elements: the number of elements of its output. */
static vd_status check_turn(const vd_log_writer *w, uint32_t node, vd_log_encoding encoding,
                            uint64_t *elements, vd_err *err) {
    if (encoding != w->run.encoding)
        return vd_fail(err, VD_ERR_LOCAL, "step %lld: the log's encoding is %d, not %d",
                       (long long)w->step, (int)w->run.encoding, (int)encoding);
    if (!w->begun || w->next >= w->count || w->node[w->next].node != node)
        return vd_fail(err, VD_ERR_LOCAL, "step %lld: node %u is not the next one to be logged",
                       (long long)w->step, node);
    *elements = w->node[w->next].elements;
    return VD_OK;
}

/* Makes an item for a block's section, with its checksum and room for `bytes` more. */
static vd_status make_section(vd_log_writer *w, ro_ctx *ctx, const vd_log_node *block, size_t bytes,
                              const float *output, vd_log_item **out, vd_err *err) {
    vd_status status = make_item(w, VD_ITEM_SECTION, sizeof(vd_log_sum) + bytes, out, err);
    if (status != VD_OK)
        return status;
    (*out)->section =
        (vd_log_section){.node = block->node, .elements = block->elements, .sum = (*out)->tail};
    vd_log_sums(ctx, output, block->elements, (*out)->tail);
    return VD_OK;
}

static void push_section(vd_log_writer *w, vd_log_item *i, size_t bytes) {
    push(w, i, sizeof(vd_log_sum) + bytes);
}

/* Queues a block's section with those of the calls that are in the block. */
static vd_status put_calls(vd_log_writer *w, ro_ctx *ctx, const vd_log_node *block, uint64_t at,
                           const ro_close_call *call, int64_t count, const float *output,
                           vd_err *err) {
    vd_log_item *i;
    const size_t bytes = (size_t)count * sizeof *call;
    vd_status status = make_section(w, ctx, block, bytes, output, &i, err);
    if (status != VD_OK)
        return status;
    vd_log_section *section = &i->section;
    section->count = count;
    section->call = (ro_close_call *)(void *)(i->tail + 1);
    for (int64_t c = 0; c < count; c++) {
        section->call[c] = call[c];
        section->call[c].element -= (int64_t)at;
        section->escapes += call[c].bits > 1;
    }
    push_section(w, i, bytes);
    return VD_OK;
}

vd_status vd_log_calls(vd_log_writer *w, ro_ctx *ctx, uint32_t node, const ro_close_call *call,
                       int64_t count, const float *output, vd_err *err) {
    uint64_t elements = 0;
    int64_t escapes, first = 0, end = 0;
    vd_status status = check_turn(w, node, VD_LOG_CALLS, &elements, err);
    if (status == VD_OK)
        status = vd_calls_check(call, count, node, elements, &escapes, err);
    for (uint64_t b = 0; status == VD_OK && b < vd_log_sections(elements); b++) {
        const uint64_t at = b * VD_LOG_BLOCK;
        const vd_log_node block = vd_log_block_of(node, elements, b);
        while (end < count && (uint64_t)call[end].element < at + block.elements)
            end++;
        status = put_calls(w, ctx, &block, at, call + first, end - first, output + at, err);
        first = end;
    }
    w->next += status == VD_OK;
    return status;
}

static vd_status put_symbols(vd_log_writer *w, ro_ctx *ctx, const vd_log_node *block,
                             const uint8_t *symbol, const float *output, vd_err *err) {
    vd_log_item *i;
    const size_t bytes = (size_t)vd_symbols_packed_size(block->elements);
    vd_status status = make_section(w, ctx, block, bytes, output, &i, err);
    if (status != VD_OK)
        return status;
    i->packed = (uint8_t *)(i->tail + 1);
    if (!vd_symbols_pack(symbol, block->elements, i->packed, &i->section.count))
        return vd_fail(err, VD_ERR_LOCAL, "step %lld: a symbol of node %u is none of 0, 1, 2",
                       (long long)w->step, block->node);
    push_section(w, i, bytes);
    return VD_OK;
}

vd_status vd_log_symbols(vd_log_writer *w, ro_ctx *ctx, uint32_t node, const uint8_t *symbol,
                         const float *output, vd_err *err) {
    uint64_t elements = 0;
    vd_status status = check_turn(w, node, VD_LOG_SYMBOLS, &elements, err);
    for (uint64_t b = 0; status == VD_OK && b < vd_log_sections(elements); b++) {
        const vd_log_node block = vd_log_block_of(node, elements, b);
        status =
            put_symbols(w, ctx, &block, symbol + b * VD_LOG_BLOCK, output + b * VD_LOG_BLOCK, err);
    }
    w->next += status == VD_OK;
    return status;
}

static vd_status check_thread(vd_log_writer *w, vd_err *err) {
    pthread_mutex_lock(&w->lock);
    const vd_status status = failure(w, err);
    pthread_mutex_unlock(&w->lock);
    return status;
}

vd_status vd_log_end(vd_log_writer *w, vd_err *err) {
    vd_log_item *i;
    if (!w->begun || w->next != w->count)
        return vd_fail(err, VD_ERR_LOCAL, "step %lld: ended after %u of %u nodes",
                       (long long)w->step, w->begun ? w->next : 0, w->begun ? w->count : 0);
    vd_status status = check_thread(w, err);
    if (status == VD_OK)
        status = make_item(w, VD_ITEM_END, 0, &i, err);
    if (status != VD_OK)
        return status;
    i->pending = calloc(1, sizeof *i->pending);
    if (!i->pending)
        return no_memory(w, err);
    i->pending->step = w->step;
    w->begun = false;
    w->ended++;
    pthread_mutex_lock(&w->lock);
    i->pending->next = w->pending;
    w->pending = i->pending;
    pthread_mutex_unlock(&w->lock);
    push(w, i, 0);
    hand_over(w);
    return VD_OK;
}

static vd_log_pending **writer_find(vd_log_writer *w, int64_t step) {
    vd_log_pending **at = &w->pending;
    while (*at && (*at)->step != step)
        at = &(*at)->next;
    return at;
}

vd_status vd_log_wait(vd_log_writer *w, int64_t step, vd_log_done *done, vd_err *err) {
    const bool open = w->ended < w->span.count && step >= w->span.first && step <= w->step;
    pthread_mutex_lock(&w->lock);
    vd_log_pending *p = *writer_find(w, step);
    wake(w);
    while (p && !p->ready && !open && w->failure.status == VD_OK)
        pthread_cond_wait(&w->changed, &w->lock);
    vd_status status = failure(w, err);
    if (status == VD_OK && (!p || open))
        status = vd_fail(err, VD_ERR_LOCAL, "no log of step %lld was ended%s", (long long)step,
                         p ? " with all steps of its file" : "");
    if (status == VD_OK) {
        *done = p->done;
        *writer_find(w, step) = p->next;
        free(p);
    }
    pthread_mutex_unlock(&w->lock);
    return status;
}

size_t vd_log_writer_peak(vd_log_writer *w) {
    pthread_mutex_lock(&w->lock);
    const size_t peak = w->peak;
    pthread_mutex_unlock(&w->lock);
    return peak;
}

vd_status vd_log_writer_create(const vd_log_run *run, const char *dir, size_t memory_bytes,
                               vd_log_writer **out, vd_err *err) {
    char path[1024];
    vd_status status = vd_log_check_run(run, -1, err);
    if (status == VD_OK)
        status = vd_log_path(dir, run, run->steps - 1, path, sizeof path, err);
    if (status != VD_OK)
        return status;
    snprintf(path, sizeof path, "%s/log", dir);
    status = vd_make_dir(path, err);
    if (status != VD_OK)
        return status;
    vd_log_writer *w = calloc(1, sizeof *w);
    if (!w)
        return vd_fail(err, VD_ERR_LOCAL, "no memory for a rounding log");
    w->run = *run;
    w->limit = memory_bytes;
    w->last = &w->first;
    strcpy(w->dir, dir);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    pthread_cond_init(&w->queued, NULL);
    const int code = vd_log_thread_start(w);
    if (code != 0) {
        free(w);
        return vd_fail(err, VD_ERR_LOCAL, "cannot start the log's thread: %s", strerror(code));
    }
    *out = w;
    return VD_OK;
}

vd_status vd_log_writer_close(vd_log_writer *w, vd_err *err) {
    if (!w)
        return VD_OK;
    free(w->batch); /* left by a step that was not ended */
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    wake(w);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    const vd_status status = failure(w, err);
    for (vd_log_pending *p = w->pending, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    pthread_cond_destroy(&w->changed);
    pthread_cond_destroy(&w->queued);
    pthread_mutex_destroy(&w->lock);
    free(w->node);
    free(w);
    return status;
}
