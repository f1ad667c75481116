/* An upload's SHA-256 is computed along with its chunks. If that was not possible, after a restart
 * or because others took its entry, the bytes are read from disk once all are there: at once if
 * they are few, else by a thread, so that nobody waits for another's upload. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "verde/base/thread.h"
#include "verde/provide/uploads_internal.h"

/* ---- places ---- */

vd_upload_hash *vd_upload_hash_find(vd_uploads *u, const char *client, const char *hash) {
    for (int i = 0; i < VD_UPLOAD_HASHES; i++)
        if (u->hash[i].state != VD_HASH_FREE && strcmp(u->hash[i].client, client) == 0 &&
            strcmp(u->hash[i].hash, hash) == 0)
            return &u->hash[i];
    return NULL;
}

void vd_upload_hash_forget(vd_upload_hash *h) {
    if (h)
        vd_sha_destroy(h->sha);
    if (h)
        *h = (vd_upload_hash){.state = VD_HASH_FREE};
}

/* Stops hashing an upload that was deleted. An entry that is VD_HASH_GOES_ALONG belongs to the
 * thread that puts chunks, which notices the deletion itself. */
void vd_upload_hash_collected(vd_uploads *u, const char *client, const char *hash) {
    vd_upload_hash *h = vd_upload_hash_find(u, client, hash);
    if (h && h->state == VD_HASH_READS)
        h->client[0] = 0; /* so nobody finds it; the thread frees it */
    else if (h && h->state == VD_HASH_WAITS)
        vd_upload_hash_forget(h);
}

/* Takes the least recently used entry that the thread does not have, or returns NULL. */
static vd_upload_hash *take_place(vd_uploads *u, const char *client, const char *hash) {
    vd_upload_hash *oldest = NULL;
    for (int i = 0; i < VD_UPLOAD_HASHES; i++) {
        vd_upload_hash *h = &u->hash[i];
        if (h->state != VD_HASH_WAITS && h->state != VD_HASH_READS &&
            (!oldest || h->used < oldest->used))
            oldest = h;
    }
    if (!oldest)
        return NULL;
    vd_upload_hash_forget(oldest);
    snprintf(oldest->client, VD_ID_SIZE, "%s", client);
    snprintf(oldest->hash, VD_ID_SIZE, "%s", hash);
    oldest->used = ++u->used;
    return oldest;
}

/* ---- along with chunks ---- */

/* Returns the entry; one whose hash is not at the chunk's beginning is dropped. */
static vd_upload_hash *goes_along(vd_uploads *u, const vd_chunk *c) {
    vd_upload_hash *h = vd_upload_hash_find(u, c->client, c->hash);
    if (h && h->state == VD_HASH_GOES_ALONG && h->at != c->from) {
        vd_upload_hash_forget(h);
        h = NULL;
    }
    if (!h && c->from == 0 && (h = take_place(u, c->client, c->hash))) {
        h->sha = vd_sha_create();
        h->state = h->sha ? VD_HASH_GOES_ALONG : VD_HASH_FREE;
    }
    return h && h->state == VD_HASH_GOES_ALONG ? h : NULL;
}

void vd_upload_hash_chunk(vd_uploads *u, const vd_chunk *c) {
    pthread_mutex_lock(&u->lock);
    vd_upload_hash *h = goes_along(u, c);
    if (h)
        h->used = ++u->used;
    pthread_mutex_unlock(&u->lock);
    if (!h)
        return;
    vd_sha_put(h->sha, c->bytes, c->count);
    h->at += c->count;
}

/* ---- from the disk ---- */

/* Called before each piece with the bytes hashed so far; false: stop. */
typedef bool (*hash_watch)(void *user, uint64_t at);

static bool read_pieces(int fd, vd_sha *sha, uint8_t *buffer, hash_watch watch, void *user) {
    uint64_t at = 0;
    ssize_t got = 0;
    while ((!watch || watch(user, at)) && (got = read(fd, buffer, VD_UPLOAD_BUFFER)) > 0) {
        vd_sha_put(sha, buffer, (size_t)got);
        at += (uint64_t)got;
    }
    return got == 0 && (!watch || watch(user, at));
}

static vd_status hash_file(const char *path, hash_watch watch, void *user, vd_hash *out,
                           vd_err *err) {
    int fd;
    uint64_t size;
    if (vd_open_file(path, &fd, &size, err) != VD_OK)
        return VD_ERR_LOCAL;
    uint8_t *buffer = malloc(VD_UPLOAD_BUFFER);
    vd_sha *sha = vd_sha_create();
    const bool read = buffer && sha && read_pieces(fd, sha, buffer, watch, user);
    const int error = errno;
    const bool hashed = read && vd_sha_finish(sha, out);
    vd_sha_destroy(sha);
    free(buffer);
    close(fd);
    return hashed ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s: %s", path, strerror(error));
}

bool vd_upload_hash_end(vd_uploads *u, const vd_chunk *c, const char *path, vd_hash *out,
                        vd_err *err) {
    pthread_mutex_lock(&u->lock);
    vd_upload_hash *h = vd_upload_hash_find(u, c->client, c->hash);
    const bool along = h && h->state == VD_HASH_GOES_ALONG && h->at == c->size;
    const bool whole = along && vd_sha_finish(h->sha, out);
    if (h && h->state == VD_HASH_GOES_ALONG)
        vd_upload_hash_forget(h);
    if (!whole && c->size > VD_UPLOAD_AT_ONCE)
        vd_upload_hash_wish(u, c->client, c->hash, c->size);
    pthread_mutex_unlock(&u->lock);
    return whole ||
           (c->size <= VD_UPLOAD_AT_ONCE && hash_file(path, NULL, NULL, out, err) == VD_OK);
}

/* ---- the thread ---- */

void vd_upload_hash_wish(vd_uploads *u, const char *client, const char *hash, uint64_t size) {
    vd_upload_hash *h = vd_upload_hash_find(u, client, hash);
    if (h && h->state != VD_HASH_GOES_ALONG)
        return;
    vd_upload_hash_forget(h);
    h = take_place(u, client, hash);
    if (!h)
        return;
    h->state = VD_HASH_WAITS;
    h->size = size;
    pthread_cond_signal(&u->wake);
}

typedef struct {
    vd_uploads *uploads;
    vd_upload_hash *hash;
} hashing;

static bool see_piece(void *user, uint64_t at) {
    const hashing *h = user;
    pthread_mutex_lock(&h->uploads->lock);
    h->hash->at = at;
    const bool goes_on = !h->uploads->stop;
    pthread_mutex_unlock(&h->uploads->lock);
    return goes_on;
}

/* The lock is held, but released while reading. Whoever asks again meets any trouble again. */
static void read_upload(vd_uploads *u, vd_upload_hash *h) {
    char path[1200];
    vd_hash found;
    vd_chunk_fate fate = VD_CHUNK_TAKEN;
    vd_err err = {0};
    hashing reads = {u, h};
    h->state = VD_HASH_READS;
    vd_upload_path(u, h->client, h->hash, path);
    pthread_mutex_unlock(&u->lock);
    vd_status status = hash_file(path, see_piece, &reads, &found, &err);
    pthread_mutex_lock(&u->lock);
    if (status == VD_OK && h->client[0]) /* not collected meanwhile */
        status = vd_upload_end(u, h->client, h->hash, &found, (int64_t)time(NULL), &fate, &err);
    if (status == VD_OK && fate == VD_CHUNK_WRONG)
        h->state = VD_HASH_WRONG;
    else
        vd_upload_hash_forget(h);
}

static vd_upload_hash *first_waiting(vd_uploads *u) {
    vd_upload_hash *first = NULL;
    for (int i = 0; i < VD_UPLOAD_HASHES; i++)
        if (u->hash[i].state == VD_HASH_WAITS && (!first || u->hash[i].used < first->used))
            first = &u->hash[i];
    return first;
}

static void *work(void *user) {
    vd_uploads *u = user;
    pthread_mutex_lock(&u->lock);
    while (!u->stop) {
        vd_upload_hash *h = first_waiting(u);
        if (h)
            read_upload(u, h);
        else
            pthread_cond_wait(&u->wake, &u->lock);
    }
    pthread_mutex_unlock(&u->lock);
    return NULL;
}

vd_status vd_upload_hasher_start(vd_uploads *u, vd_err *err) {
    const int error = vd_thread_start(&u->thread, work, u);
    return error ? vd_fail(err, VD_ERR_LOCAL, "could not start a thread: %s", strerror(error))
                 : VD_OK;
}

void vd_upload_hasher_stop(vd_uploads *u) {
    pthread_mutex_lock(&u->lock);
    u->stop = true;
    pthread_cond_signal(&u->wake);
    pthread_mutex_unlock(&u->lock);
    pthread_join(u->thread, NULL);
}
