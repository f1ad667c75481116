/* Declarations shared by uploads.c and uploads_hash.c. */
#ifndef VD_UPLOADS_INTERNAL_H
#define VD_UPLOADS_INTERNAL_H

#include "verde/provide/uploads.h"

/* ---- uploads_hash.c: the lock is held unless a comment says otherwise ---- */

/* Adds a chunk to its hash. The lock is not held: these entries are the putting thread's. */
void vd_upload_hash_chunk(vd_uploads *u, const vd_chunk *c);
/* All bytes have come. True: *out is the hash, for which at most VD_UPLOAD_AT_ONCE bytes were read.
 * False: the thread must read them, or err->status says what is wrong. The lock is not held. */
bool vd_upload_hash_end(vd_uploads *u, const vd_chunk *c, const char *path, vd_hash *out,
                        vd_err *err);
/* Returns an upload's entry, or NULL. */
vd_upload_hash *vd_upload_hash_find(vd_uploads *u, const char *client, const char *hash);
/* The upload's file will be deleted. */
void vd_upload_hash_collected(vd_uploads *u, const char *client, const char *hash);
/* Has the thread hash an upload. If no entry is free, nothing happens: the client asks again. */
void vd_upload_hash_wish(vd_uploads *u, const char *client, const char *hash, uint64_t size);
void vd_upload_hash_forget(vd_upload_hash *h); /* accepts NULL */
VD_MUST_USE vd_status vd_upload_hasher_start(vd_uploads *u, vd_err *err);
void vd_upload_hasher_stop(vd_uploads *u);

/* ---- uploads.c ---- */

void vd_upload_path(const vd_uploads *u, const char *client, const char *hash, char path[1200]);
/* Ends an upload with the hash `found`: it becomes a blob, or is dropped. The lock is held. */
VD_MUST_USE vd_status vd_upload_end(vd_uploads *u, const char *client, const char *hash,
                                    const vd_hash *found, int64_t now, vd_chunk_fate *fate,
                                    vd_err *err);

#endif
