/* This file takes chunks of blobs, names complete ones by their hash, and deletes abandoned
 * ones. */
#include "verde/provide/uploads_internal.h"

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
    if (pthread_mutex_init(&u->lock, NULL) != 0 || pthread_cond_init(&u->wake, NULL) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "could not create a mutex");
    vd_status status = vd_make_dir(u->blobs, err);
    if (status == VD_OK)
        status = vd_make_dir(u->uploads, err);
    if (status == VD_OK)
        status = vd_upload_hasher_start(u, err);
    if (status != VD_OK) {
        pthread_cond_destroy(&u->wake);
        pthread_mutex_destroy(&u->lock);
    }
    return status;
}

void vd_uploads_close(vd_uploads *u) {
    vd_upload_hasher_stop(u);
    for (int i = 0; i < VD_UPLOAD_HASHES; i++)
        vd_upload_hash_forget(&u->hash[i]);
    pthread_cond_destroy(&u->wake);
    pthread_mutex_destroy(&u->lock);
}

void vd_uploads_path(const vd_uploads *u, const char *hash, char path[1100]) {
    snprintf(path, 1100, "%.1000s/%.64s", u->blobs, hash);
}

void vd_upload_path(const vd_uploads *u, const char *client, const char *hash, char path[1200]) {
    snprintf(path, 1200, "%.1000s/%.64s-%.64s", u->uploads, client, hash);
}

/* ---- chunks ---- */

/* Returns the size of a file, 0 if there is none. */
static uint64_t size_of(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
}

bool vd_disk_has_room(const char *dir, size_t count) {
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

/* Appends a chunk. After a failure the file is unchanged. */
static vd_status append(vd_uploads *u, const vd_chunk *c, const char *path, vd_chunk_fate *fate,
                        vd_err *err) {
    const int anew = c->from == 0 ? O_TRUNC : 0; /* may have a file that the ledger forgot */
    const int fd =
        open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | anew, 0600);
    if (fd >= 0 && write_all(fd, c)) {
        close(fd);
        return VD_OK;
    }
    const int error = errno;
    const bool cut = fd >= 0 && ftruncate(fd, (off_t)c->from) == 0;
    if (fd >= 0)
        close(fd);
    vd_upload_hash_forget(vd_upload_hash_find(u, c->client, c->hash));
    *fate = VD_CHUNK_DISK_FULL;
    return cut && (error == ENOSPC || error == EDQUOT || error == EFBIG)
               ? VD_OK
               : vd_fail(err, VD_ERR_LOCAL, "%s: %s", path, strerror(error));
}

bool vd_uploads_sync(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return synced;
}

/* Makes an upload a blob. The file is on disk under its name before the ledger records it. */
static vd_status name_blob(vd_uploads *u, const char *client, const char *hash, const char *path,
                           int64_t now, vd_err *err) {
    char to[1100];
    vd_uploads_path(u, hash, to);
    if (!vd_uploads_sync(path) || rename(path, to) != 0 || !vd_uploads_sync(u->blobs))
        return vd_fail(err, VD_ERR_LOCAL, "%s: %s", to, strerror(errno));
    return vd_ledger_end_blob(u->ledger, client, hash, now, err);
}

/* The lock was released for hashing: the upload may have been collected meanwhile. */
vd_status vd_upload_end(vd_uploads *u, const char *client, const char *hash, const vd_hash *found,
                        int64_t now, vd_chunk_fate *fate, vd_err *err) {
    char hex[VD_ID_SIZE], path[1200];
    vd_blob blob;
    vd_hex(found->b, VD_HASH_SIZE, hex);
    vd_upload_path(u, client, hash, path);
    vd_status status = vd_ledger_find_blob(u->ledger, client, hash, &blob, err);
    if (status != VD_OK || blob.complete)
        return status;
    if (blob.size < 0) {
        *fate = VD_CHUNK_ELSEWHERE;
        return VD_OK;
    }
    if (strcmp(hex, hash) == 0)
        return name_blob(u, client, hash, path, now, err);
    *fate = VD_CHUNK_WRONG;
    unlink(path);
    return vd_ledger_drop_upload(u->ledger, client, hash, err);
}

/* Reserves the bytes of a new upload, and records in the ledger that it is in use. */
static vd_status reserve(vd_uploads *u, const vd_chunk *c, int64_t before, const vd_quota *quota,
                         int64_t now, vd_chunk_fate *fate, vd_err *err) {
    vd_usage usage;
    vd_status status = vd_ledger_usage(u->ledger, c->client, &usage, err);
    const int64_t own = before < 0 ? 0 : vd_disk_bytes(before), wants = (int64_t)c->size;
    if (status == VD_OK && before < 0 && usage.blobs >= quota->blobs)
        *fate = VD_CHUNK_TOO_MANY;
    else if (status == VD_OK && before != wants &&
             (wants > quota->bytes || usage.bytes - own > quota->bytes - vd_disk_bytes(wants)))
        *fate = VD_CHUNK_OVER_QUOTA;
    if (*fate != VD_CHUNK_TAKEN)
        return VD_OK;
    return status == VD_OK
               ? vd_ledger_begin_blob(u->ledger, c->client, c->hash, (int64_t)c->size, now, err)
               : status;
}

/* The lock is held. If a daemon was killed after an upload's last byte, the upload has all bytes
 * but is not complete: they are hashed again. */
static vd_status find_place(vd_uploads *u, const char *client, const char *hash,
                            vd_chunk_fate *fate, vd_upload_place *p, vd_err *err) {
    char path[1200];
    vd_blob blob;
    vd_status status = vd_ledger_find_blob(u->ledger, client, hash, &blob, err);
    vd_upload_path(u, client, hash, path);
    *p = (vd_upload_place){.size = blob.size, .complete = blob.complete};
    if (status != VD_OK)
        return status;
    vd_upload_hash *h = vd_upload_hash_find(u, client, hash);
    if (h && h->state == VD_HASH_WRONG) {
        *fate = VD_CHUNK_WRONG;
        vd_upload_hash_forget(h);
        h = NULL;
    }
    p->have = blob.size < 0 ? 0 : blob.complete ? (uint64_t)blob.size : size_of(path);
    if (blob.size <= 0 || blob.complete || p->have < (uint64_t)blob.size)
        return VD_OK;
    p->hashing = true;
    p->hashed = h && h->state == VD_HASH_READS ? h->at : 0;
    return VD_OK;
}

vd_status vd_uploads_find(vd_uploads *u, const char *client, const char *hash, vd_chunk_fate *fate,
                          vd_upload_place *place, vd_err *err) {
    *fate = VD_CHUNK_TAKEN;
    pthread_mutex_lock(&u->lock);
    vd_status status = find_place(u, client, hash, fate, place, err);
    if (status == VD_OK && place->hashing)
        vd_upload_hash_wish(u, client, hash, (uint64_t)place->size);
    pthread_mutex_unlock(&u->lock);
    return status;
}

/* While an upload has no bytes, another size may be stated. */
static bool is_of_other_size(const vd_upload_place *p, const vd_chunk *c) {
    return p->size >= 0 && (p->complete || p->have > 0) && p->size != (int64_t)c->size;
}

/* The lock is held, so that the upload is not collected in between. */
static vd_status take_chunk(vd_uploads *u, const vd_chunk *c, const char *path,
                            const vd_quota *quota, int64_t now, vd_chunk_fate *fate,
                            vd_upload_place *p, vd_err *err) {
    vd_status status = find_place(u, c->client, c->hash, fate, p, err);
    if (status != VD_OK || *fate != VD_CHUNK_TAKEN || (p->complete && p->size == (int64_t)c->size))
        return status;
    if (is_of_other_size(p, c))
        *fate = VD_CHUNK_OTHER_SIZE;
    else if (p->complete || p->hashing || c->from != p->have || c->from > c->size ||
             c->count > c->size - c->from)
        *fate = VD_CHUNK_ELSEWHERE;
    else
        status = reserve(u, c, p->size, quota, now, fate, err);
    if (status == VD_OK && *fate == VD_CHUNK_TAKEN && !vd_disk_has_room(u->uploads, c->count))
        *fate = VD_CHUNK_DISK_FULL;
    if (status == VD_OK && *fate == VD_CHUNK_TAKEN)
        status = append(u, c, path, fate, err);
    if (status == VD_OK && *fate == VD_CHUNK_TAKEN) {
        p->size = (int64_t)c->size;
        p->have = c->from + c->count;
    }
    return status;
}

/* Ends an upload that has all of its bytes. */
static vd_status end_chunk(vd_uploads *u, const vd_chunk *c, const char *path, int64_t now,
                           vd_chunk_fate *fate, vd_upload_place *p, vd_err *err) {
    vd_hash found;
    vd_err trouble = {.status = VD_OK};
    p->complete = vd_upload_hash_end(u, c, path, &found, &trouble);
    p->hashing = !p->complete;
    if (trouble.status != VD_OK)
        return vd_fail(err, trouble.status, "%s", trouble.text);
    if (p->hashing)
        return VD_OK;
    pthread_mutex_lock(&u->lock);
    vd_status status = vd_upload_end(u, c->client, c->hash, &found, now, fate, err);
    pthread_mutex_unlock(&u->lock);
    if (*fate == VD_CHUNK_ELSEWHERE)
        *p = (vd_upload_place){.size = -1};
    return status;
}

vd_status vd_uploads_put(vd_uploads *u, const vd_chunk *c, const vd_quota *quota, int64_t now,
                         vd_chunk_fate *fate, vd_upload_place *place, vd_err *err) {
    char path[1200];
    *fate = VD_CHUNK_TAKEN;
    vd_upload_path(u, c->client, c->hash, path);
    pthread_mutex_lock(&u->lock);
    vd_status status = take_chunk(u, c, path, quota, now, fate, place, err);
    pthread_mutex_unlock(&u->lock);
    if (status != VD_OK || *fate != VD_CHUNK_TAKEN || place->complete)
        return status;
    vd_upload_hash_chunk(u, c);
    return place->have == c->size ? end_chunk(u, c, path, now, fate, place, err) : VD_OK;
}

/* ---- collection ---- */

static void drop_file(void *user, const char *client, const char *hash) {
    vd_uploads *u = user;
    char path[1200];
    if (client)
        vd_upload_hash_collected(u, client, hash);
    if (client)
        vd_upload_path(u, client, hash, path);
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
