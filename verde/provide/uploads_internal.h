/* Shared by uploads.c and uploads_hash.c. */
#ifndef VD_UPLOADS_INTERNAL_H
#define VD_UPLOADS_INTERNAL_H

#include "verde/provide/uploads.h"

/* ---- uploads_hash.c. Under the lock, unless it is said otherwise ---- */

/* Takes a chunk along, without the lock: those that go along are the putting thread's. */
void vd_upload_hash_chunk(vd_uploads *u, const vd_chunk *c);
/* All bytes are there. True: they are hashed, which at most VD_UPLOAD_AT_ONCE bytes were read for;
 * false: the thread is to read them, or err->status says what is wrong. Without the lock. */
bool vd_upload_hash_end(vd_uploads *u, const vd_chunk *c, const char *path, vd_hash *out,
                        vd_err *err);
/* The hash of an upload, or NULL. */
vd_upload_hash *vd_upload_hash_find(vd_uploads *u, const char *client, const char *hash);
/* Its file goes. */
void vd_upload_hash_collected(vd_uploads *u, const char *client, const char *hash);
/* Has the thread read it. There may be no place: then it is asked again. */
void vd_upload_hash_wish(vd_uploads *u, const char *client, const char *hash, uint64_t size);
void vd_upload_hash_forget(vd_upload_hash *h); /* NULL is fine */
VD_MUST_USE vd_status vd_upload_hasher_start(vd_uploads *u, vd_err *err);
void vd_upload_hasher_stop(vd_uploads *u);

/* ---- uploads.c ---- */

void vd_upload_path(const vd_uploads *u, const char *client, const char *hash, char path[1200]);
/* The upload of so many bytes has this hash: it becomes a blob, or is dropped. Under the lock. */
VD_MUST_USE vd_status vd_upload_end(vd_uploads *u, const char *client, const char *hash,
                                    const vd_hash *found, int64_t now, vd_chunk_fate *fate,
                                    vd_err *err);

#endif
