/* The connections of a download: each takes a piece, asks its provider for it, checks it and writes
 * it, until all pieces are there. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/delivery/download_internal.h"

enum { PROGRESS_MS = 200, LATE_MS = 1000 };

static const char *tensor_name(const vd_download *d, const vd_piece *piece) {
    return d->proof->program.leaf[d->target[piece->target].leaf].name;
}

/* ---- blocks on disk ---- */

static bool read_block(const vd_target *t, uint64_t at, uint8_t *bytes, size_t size) {
    for (size_t have = 0; have < size;) {
        const ssize_t got = pread(t->fd, bytes + have, size - have, (off_t)(t->at + at + have));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    return true;
}

static vd_status write_block(const vd_target *t, uint64_t at, const uint8_t *bytes, size_t size,
                             vd_err *err) {
    for (size_t have = 0; have < size;) {
        const ssize_t put = pwrite(t->fd, bytes + have, size - have, (off_t)(t->at + at + have));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return vd_fail(err, VD_ERR_LOCAL, "cannot write %s: %s", t->path, strerror(errno));
        have += (size_t)put;
    }
    return VD_OK;
}

static vd_status check_piece(const vd_download *d, const vd_piece *piece, const void *bytes,
                             size_t size, vd_err *err) {
    const vd_download_tensor *t = &d->tensor[piece->target];
    return vd_block_check(t->shape, t->commitment, t->blocks > 1 ? &piece->expected : NULL,
                          piece->block, bytes, size, err);
}

/* Returns true if an earlier download has written the block, and its hash is right. */
static bool found_on_disk(const vd_download *d, const vd_piece *piece) {
    const vd_target *t = &d->target[piece->target];
    const uint64_t at = piece->block * VD_BLOCK_BYTES;
    const size_t size = vd_block_size(d->tensor[piece->target].shape, piece->block);
    if (t->at + at + size > t->had)
        return false;
    uint8_t *bytes = malloc(size);
    const bool found = bytes && read_block(t, at, bytes, size) &&
                       check_piece(d, piece, bytes, size, NULL) == VD_OK;
    free(bytes);
    return found;
}

/* ---- one piece ---- */

/* Drops a provider that sent a wrong piece. Trouble of this machine ends the download. */
static vd_got judge(vd_download *d, const vd_connection *c, const vd_piece *piece, vd_status status,
                    const vd_err *why) {
    char text[900];
    if (status == VD_OK)
        return VD_GOT;
    if (status != VD_ERR_PEER) {
        vd_download_fail(d, why);
        return VD_FAILED;
    }
    if (piece->list)
        snprintf(text, sizeof text, "the hashes of tensor %s: %s", tensor_name(d, piece),
                 why->text);
    else
        snprintf(text, sizeof text, "block %llu of tensor %s: %s", (unsigned long long)piece->block,
                 tensor_name(d, piece), why->text);
    vd_download_drop(d, c->provider, true, text);
    return VD_DROPPED;
}

static vd_got get_list(vd_download *d, const vd_connection *c, const vd_piece *piece) {
    const vd_download_tensor *t = &d->tensor[piece->target];
    const size_t size = (size_t)t->blocks * VD_HASH_SIZE;
    char rest[64];
    vd_answer answer = {0};
    vd_err err = {0};
    snprintf(rest, sizeof rest, "/state/%u/hashes", d->target[piece->target].leaf);
    vd_got got = vd_download_ask(d, c->provider, c->client, rest, size, &answer);
    if (got == VD_GOT)
        got = judge(
            d, c, piece,
            vd_block_list_check(t->shape, t->commitment, answer.body.data, answer.body.size, &err),
            &err);
    vd_hash *list = got == VD_GOT ? malloc(size) : NULL;
    if (got == VD_GOT && !list) {
        vd_fail(&err, VD_ERR_LOCAL, "out of memory");
        vd_download_fail(d, &err);
        got = VD_FAILED;
    } else if (got == VD_GOT) {
        memcpy(list, answer.body.data, size);
        vd_download_heard(d, c->provider);
        pthread_mutex_lock(&d->lock);
        vd_pieces_listed(d, piece, list);
        pthread_mutex_unlock(&d->lock);
    }
    vd_answer_free(&answer);
    return got;
}

static void put_there(vd_download *d, const vd_connection *c, const vd_piece *piece, bool found) {
    pthread_mutex_lock(&d->lock);
    if (vd_pieces_there(d, piece, found) && !found)
        d->provider[c->provider].received +=
            vd_block_size(d->tensor[piece->target].shape, piece->block);
    pthread_mutex_unlock(&d->lock);
}

static vd_got get_block(vd_download *d, const vd_connection *c, const vd_piece *piece) {
    const vd_target *target = &d->target[piece->target];
    const size_t size = vd_block_size(d->tensor[piece->target].shape, piece->block);
    char rest[96];
    vd_answer answer = {0};
    vd_err err = {0};
    if (found_on_disk(d, piece)) {
        put_there(d, c, piece, true);
        return VD_GOT;
    }
    snprintf(rest, sizeof rest, "/state/%u/blocks/%llu", target->leaf,
             (unsigned long long)piece->block);
    vd_got got = vd_download_ask(d, c->provider, c->client, rest, size, &answer);
    if (got == VD_GOT)
        got = judge(d, c, piece, check_piece(d, piece, answer.body.data, answer.body.size, &err),
                    &err);
    if (got == VD_GOT) {
        vd_download_heard(d, c->provider);
        got = judge(
            d, c, piece,
            write_block(target, piece->block * VD_BLOCK_BYTES, answer.body.data, size, &err), &err);
    }
    if (got == VD_GOT)
        put_there(d, c, piece, false);
    vd_answer_free(&answer);
    return got;
}

/* ---- one connection ---- */

/* Waits for a piece to fetch. False: none is left, or this provider is dropped. */
static bool next_piece(vd_download *d, vd_connection *c) {
    pthread_mutex_lock(&d->lock);
    c->busy = false;
    pthread_cond_broadcast(&d->changed);
    while (!atomic_load(&d->stop) && !d->provider[c->provider].dropped && !vd_pieces_done(d) &&
           !(c->busy = vd_pieces_take(d, c, &c->piece))) {
        const struct timespec until = vd_download_in(LATE_MS); /* a block may be late by then */
        pthread_cond_timedwait(&d->changed, &d->lock, &until);
    }
    c->since = vd_seconds();
    const bool busy = c->busy;
    pthread_mutex_unlock(&d->lock);
    return busy;
}

static void *connection_main(void *user) {
    vd_connection *c = user;
    vd_download *d = c->download;
    while (next_piece(d, c)) {
        const vd_got got = c->piece.list ? get_list(d, c, &c->piece) : get_block(d, c, &c->piece);
        if (got == VD_GOT)
            continue;
        pthread_mutex_lock(&d->lock);
        vd_pieces_back(d, &c->piece);
        c->busy = false;
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->lock);
        if (got == VD_TROUBLE)
            vd_download_pause(d, VD_DOWNLOAD_RETRY_MS);
    }
    return NULL;
}

/* ---- all of them ---- */

/* Waits for PROGRESS_MS. Returns true if the download is over. */
static bool wait_for_end(vd_download *d) {
    const struct timespec until = vd_download_in(PROGRESS_MS);
    bool over;
    do {
        over = vd_pieces_done(d) || atomic_load(&d->stop);
        bool any = false;
        for (uint32_t p = 0; p < d->options.provider_count; p++)
            any |= !d->provider[p].dropped;
        over |= !any;
    } while (!over && pthread_cond_timedwait(&d->changed, &d->lock, &until) != ETIMEDOUT);
    return over;
}

static void watch(vd_download *d, double start) {
    bool over = false;
    while (!over) {
        pthread_mutex_lock(&d->lock);
        over = wait_for_end(d);
        d->progress.seconds = vd_seconds() - start;
        vd_download_tell_silence(d);
        const vd_download_progress now = d->progress;
        pthread_mutex_unlock(&d->lock);
        if (d->options.progress && !over)
            d->options.progress(d->options.user, &now);
    }
}

/* Starts all connections. Signals are handled by the main thread. */
static uint32_t start_connections(vd_download *d) {
    sigset_t all, before;
    uint32_t started = 0;
    vd_err err = {0};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < d->connection_count) {
        vd_connection *c = &d->connection[started];
        const int error = pthread_create(&c->thread, NULL, connection_main, c);
        if (error) {
            vd_fail(&err, VD_ERR_LOCAL, "could not start a thread: %s", strerror(error));
            vd_download_fail(d, &err);
            break;
        }
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static vd_status run_connections(vd_download *d, vd_err *err) {
    const double start = vd_seconds();
    const uint32_t started = start_connections(d);
    watch(d, start);
    atomic_store(&d->stop, true); /* ends waits for answers that are not needed any more */
    pthread_mutex_lock(&d->lock);
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(d->connection[i].thread, NULL);
    atomic_store(&d->stop, false);
    d->progress.seconds = vd_seconds() - start;
    if (d->options.progress)
        d->options.progress(d->options.user, &d->progress);
    if (vd_pieces_done(d))
        return VD_OK;
    return d->err.status != VD_OK ? vd_fail(err, d->err.status, "%s", d->err.text)
                                  : vd_download_nobody(d, "the rest", err);
}

vd_status vd_download_tensors(vd_download *d, const vd_state_proof *proof, const vd_target *target,
                              uint32_t count, vd_err *err) {
    d->proof = proof;
    d->target = target;
    d->target_count = count;
    d->progress = (vd_download_progress){0};
    vd_status status = vd_pieces_plan(d, err);
    if (status == VD_OK)
        status = run_connections(d, err);
    vd_pieces_free(d);
    return status;
}
