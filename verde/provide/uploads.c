#include "verde/provide/uploads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

vd_status vd_uploads_open(vd_uploads *u, const char *dir, vd_ledger *ledger, vd_err *err) {
    *u = (vd_uploads){.ledger = ledger};
    snprintf(u->blobs, sizeof u->blobs, "%s/blobs", dir);
    snprintf(u->uploads, sizeof u->uploads, "%s/uploads", dir);
    if (pthread_mutex_init(&u->lock, NULL) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "could not create a mutex");
    vd_status status = vd_make_dir(u->blobs, err);
    if (status == VD_OK)
        status = vd_make_dir(u->uploads, err);
    if (status != VD_OK)
        pthread_mutex_destroy(&u->lock);
    return status;
}

void vd_uploads_close(vd_uploads *u) {
    for (int i = 0; i < VD_UPLOAD_HASHES; i++)
        vd_sha_destroy(u->hash[i].sha);
    pthread_mutex_destroy(&u->lock);
}

void vd_uploads_path(const vd_uploads *u, const char *hash, char path[1100]) {
    snprintf(path, 1100, "%.1000s/%.64s", u->blobs, hash);
}

static void upload_path(const vd_uploads *u, const char *client, const char *hash,
                        char path[1200]) {
    snprintf(path, 1200, "%.1000s/%.64s-%.64s", u->uploads, client, hash);
}

/* ---- hashes that are under way ---- */

static vd_upload_hash *find_hash(vd_uploads *u, const vd_chunk *c) {
    for (int i = 0; i < VD_UPLOAD_HASHES; i++)
        if (u->hash[i].sha && strcmp(u->hash[i].client, c->client) == 0 &&
            strcmp(u->hash[i].hash, c->hash) == 0)
            return &u->hash[i];
    return NULL;
}

static void forget_hash(vd_upload_hash *h) {
    if (h)
        vd_sha_destroy(h->sha);
    if (h)
        *h = (vd_upload_hash){.sha = NULL};
}

/* The place of the one that was used least lately. */
static vd_upload_hash *begin_hash(vd_uploads *u, const vd_chunk *c) {
    vd_upload_hash *oldest = &u->hash[0];
    for (int i = 1; i < VD_UPLOAD_HASHES; i++)
        if (u->hash[i].used < oldest->used)
            oldest = &u->hash[i];
    forget_hash(oldest);
    oldest->sha = vd_sha_create();
    if (!oldest->sha)
        return NULL;
    snprintf(oldest->client, VD_ID_SIZE, "%s", c->client);
    snprintf(oldest->hash, VD_ID_SIZE, "%s", c->hash);
    return oldest;
}

/* A hash that does not stand where the chunk begins is of no use: the file is hashed at its end. */
static void go_on_hashing(vd_uploads *u, const vd_chunk *c) {
    vd_upload_hash *h = find_hash(u, c);
    if (h && h->at != c->from) {
        forget_hash(h);
        h = NULL;
    }
    if (!h && c->from == 0)
        h = begin_hash(u, c);
    if (!h)
        return;
    vd_sha_put(h->sha, c->bytes, c->count);
    h->at += c->count;
    h->used = ++u->used;
}

static vd_status hash_file(const char *path, vd_hash *out, vd_err *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *buffer = malloc(VD_UPLOAD_BUFFER);
    vd_sha *sha = vd_sha_create();
    ssize_t got = -1;
    while (fd >= 0 && buffer && sha && (got = read(fd, buffer, VD_UPLOAD_BUFFER)) > 0)
        vd_sha_put(sha, buffer, (size_t)got);
    const int error = errno;
    const bool hashed = got == 0 && vd_sha_finish(sha, out);
    vd_sha_destroy(sha);
    free(buffer);
    if (fd >= 0)
        close(fd);
    return hashed ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s: %s", path, strerror(error));
}

static vd_status hash_upload(vd_uploads *u, const vd_chunk *c, const char *path, vd_hash *out,
                             vd_err *err) {
    vd_upload_hash *h = find_hash(u, c);
    const bool whole = h && h->at == c->size && vd_sha_finish(h->sha, out);
    forget_hash(h);
    return whole ? VD_OK : hash_file(path, out, err);
}

/* ---- chunks ---- */

/* Bytes of a file; 0 if there is none. */
static uint64_t size_of(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
}

static bool has_room(const char *dir, size_t count) {
    struct statvfs disk;
    return statvfs(dir, &disk) != 0 ||
           (uint64_t)disk.f_bavail * disk.f_frsize >= count + (uint64_t)VD_DISK_SPARE;
}

static bool write_all(int fd, const vd_chunk *c) {
    for (size_t at = 0; at < c->count;) {
        const ssize_t put =
            pwrite(fd, (const char *)c->bytes + at, c->count - at, (off_t)(c->from + at));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += (size_t)put;
    }
    return true;
}

/* After a failure the file is as it was. */
static vd_status append(vd_uploads *u, const vd_chunk *c, const char *path, vd_chunk_fate *fate,
                        vd_err *err) {
    const int anew = c->from == 0 ? O_TRUNC : 0; /* a file that the ledger has forgotten */
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | anew, 0600);
    if (fd >= 0 && write_all(fd, c)) {
        close(fd);
        return VD_OK;
    }
    const int error = errno;
    const bool cut = fd >= 0 && ftruncate(fd, (off_t)c->from) == 0;
    if (fd >= 0)
        close(fd);
    forget_hash(find_hash(u, c));
    *fate = VD_CHUNK_DISK_FULL;
    return cut && (error == ENOSPC || error == EDQUOT || error == EFBIG)
               ? VD_OK
               : vd_fail(err, VD_ERR_LOCAL, "%s: %s", path, strerror(error));
}

bool vd_uploads_sync(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return synced;
}

/* The file is on disk under its name before the ledger says so. */
static vd_status name_blob(vd_uploads *u, const vd_chunk *c, const char *path, int64_t now,
                           vd_err *err) {
    char to[1100];
    vd_uploads_path(u, c->hash, to);
    if (!vd_uploads_sync(path) || rename(path, to) != 0 || !vd_uploads_sync(u->blobs))
        return vd_fail(err, VD_ERR_LOCAL, "%s: %s", to, strerror(errno));
    return vd_ledger_end_blob(u->ledger, c->client, c->hash, now, err);
}

/* While it was hashed, without the lock, the upload may have been collected. */
static vd_status keep_blob(vd_uploads *u, const vd_chunk *c, const char *path, int64_t now,
                           vd_chunk_fate *fate, uint64_t *have, vd_err *err) {
    vd_blob blob;
    pthread_mutex_lock(&u->lock);
    vd_status status = vd_ledger_find_blob(u->ledger, c->client, c->hash, &blob, err);
    if (status == VD_OK && blob.size < 0) {
        *fate = VD_CHUNK_ELSEWHERE;
        *have = 0;
    } else if (status == VD_OK) {
        status = name_blob(u, c, path, now, err);
    }
    pthread_mutex_unlock(&u->lock);
    return status;
}

static vd_status finish(vd_uploads *u, const vd_chunk *c, const char *path, int64_t now,
                        vd_chunk_fate *fate, uint64_t *have, vd_err *err) {
    vd_hash hash;
    char hex[VD_ID_SIZE];
    vd_status status = hash_upload(u, c, path, &hash, err);
    if (status != VD_OK)
        return status;
    vd_hex(hash.b, VD_HASH_SIZE, hex);
    if (strcmp(hex, c->hash) == 0)
        return keep_blob(u, c, path, now, fate, have, err);
    *fate = VD_CHUNK_WRONG;
    unlink(path);
    return vd_ledger_drop_upload(u->ledger, c->client, c->hash, err);
}

/* Reserves the bytes of an upload that begins, or is of another size than it was said to be. The
 * ledger learns that it goes on. */
static vd_status reserve(vd_uploads *u, const vd_chunk *c, const vd_blob *blob, int64_t quota,
                         int64_t now, vd_chunk_fate *fate, vd_err *err) {
    vd_usage usage;
    vd_status status = vd_ledger_usage(u->ledger, c->client, &usage, err);
    const int64_t others = usage.bytes - (blob->size > 0 ? blob->size : 0);
    if (status == VD_OK && blob->size != (int64_t)c->size &&
        (c->size > (uint64_t)quota || others > quota - (int64_t)c->size)) {
        *fate = VD_CHUNK_OVER_QUOTA;
        return VD_OK;
    }
    return status == VD_OK
               ? vd_ledger_begin_blob(u->ledger, c->client, c->hash, (int64_t)c->size, now, err)
               : status;
}

/* A daemon that was killed between the last byte of an upload and its end has all bytes of what is
 * not complete. The last one is to come again, and ends it. */
static vd_status leave_last(const char *path, uint64_t size, uint64_t *have, vd_err *err) {
    if (*have < size)
        return VD_OK;
    if (truncate(path, (off_t)size - 1) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "%s: %s", path, strerror(errno));
    *have = size - 1;
    return VD_OK;
}

vd_status vd_uploads_find(vd_uploads *u, const char *client, const char *hash, vd_blob *out,
                          uint64_t *have, vd_err *err) {
    char path[1200];
    vd_status status = vd_ledger_find_blob(u->ledger, client, hash, out, err);
    upload_path(u, client, hash, path);
    *have = status != VD_OK || out->size < 0 ? 0
            : out->complete                  ? (uint64_t)out->size
                                             : size_of(path);
    return status == VD_OK && out->size > 0 && !out->complete
               ? leave_last(path, (uint64_t)out->size, have, err)
               : status;
}

/* Under the lock, so that the upload is not collected between two of these. *whole: the blob was
 * complete already. */
static vd_status take_chunk(vd_uploads *u, const vd_chunk *c, const char *path, int64_t quota,
                            int64_t now, vd_chunk_fate *fate, uint64_t *have, bool *whole,
                            vd_err *err) {
    vd_blob blob;
    vd_status status = vd_uploads_find(u, c->client, c->hash, &blob, have, err);
    *whole = status == VD_OK && blob.complete && blob.size == (int64_t)c->size;
    if (status == VD_OK && !blob.complete) /* it may be said to be smaller than it was */
        status = leave_last(path, c->size, have, err);
    if (status != VD_OK || *whole)
        return status;
    if (blob.complete || c->from != *have || c->from > c->size || c->count > c->size - c->from)
        *fate = VD_CHUNK_ELSEWHERE;
    else
        status = reserve(u, c, &blob, quota, now, fate, err);
    if (status == VD_OK && *fate == VD_CHUNK_TAKEN && !has_room(u->uploads, c->count))
        *fate = VD_CHUNK_DISK_FULL;
    return status == VD_OK && *fate == VD_CHUNK_TAKEN ? append(u, c, path, fate, err) : status;
}

vd_status vd_uploads_put(vd_uploads *u, const vd_chunk *c, int64_t quota, int64_t now,
                         vd_chunk_fate *fate, uint64_t *have, vd_err *err) {
    char path[1200];
    bool whole = false;
    *fate = VD_CHUNK_TAKEN;
    upload_path(u, c->client, c->hash, path);
    pthread_mutex_lock(&u->lock);
    vd_status status = take_chunk(u, c, path, quota, now, fate, have, &whole, err);
    pthread_mutex_unlock(&u->lock);
    if (status != VD_OK || *fate != VD_CHUNK_TAKEN || whole)
        return status;
    go_on_hashing(u, c);
    *have = c->from + c->count;
    return *have == c->size ? finish(u, c, path, now, fate, have, err) : VD_OK;
}

/* ---- collection ---- */

static void drop_file(void *user, const char *client, const char *hash) {
    const vd_uploads *u = user;
    char path[1200];
    if (client)
        upload_path(u, client, hash, path);
    else
        vd_uploads_path(u, hash, path);
    unlink(path);
}

vd_status vd_uploads_collect(vd_uploads *u, int64_t before, vd_err *err) {
    pthread_mutex_lock(&u->lock);
    vd_status status = vd_ledger_collect(u->ledger, before, drop_file, u, err);
    pthread_mutex_unlock(&u->lock);
    return status;
}
