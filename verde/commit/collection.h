/* Many programs of one job: one hash names all of them, and one root the results of all.
 * verde/PROTOCOL.md section 1.4. */
#ifndef VD_COLLECTION_H
#define VD_COLLECTION_H

#include "verde/commit/commit.h"

enum { VD_COLLECTION_ITEMS_MAX = 1 << 20, VD_COLLECTION_HEAD = 2 + 16 + 2 + 8 };

/* Appends the canonical bytes. */
void vd_collection_write(const vd_hash *program, uint64_t count, vd_buf *out);
/* The programs' hashes; *program is the caller's to free. VD_ERR_PEER: these are not such bytes. */
VD_MUST_USE vd_status vd_collection_read(const void *bytes, size_t size, vd_hash **program,
                                         uint64_t *count, vd_err *err);
/* H("verde/collection/1", bytes) */
VD_MUST_USE vd_status vd_collection_hash(const vd_hash *program, uint64_t count, vd_hash *out,
                                         vd_err *err);
/* The root over the items' run roots, in order. */
VD_MUST_USE vd_status vd_collection_root(const vd_hash *run_root, uint64_t count, vd_hash *out,
                                         vd_err *err);

#endif
