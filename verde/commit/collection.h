/* Collections: jobs of many programs, which have one hash for all programs and one root for all
 * results. verde/PROTOCOL.md section 1.4. */
#ifndef VD_COLLECTION_H
#define VD_COLLECTION_H

#include "verde/commit/commit.h"

enum { VD_COLLECTION_ITEMS_MAX = 1 << 20 };

/* H("verde/collection/1", count, root over the programs' hashes). */
VD_MUST_USE bool vd_collection_commit(uint64_t count, const vd_hash *programs, vd_hash *out);
/* The same, from the hashes of the programs. */
VD_MUST_USE vd_status vd_collection_hash(const vd_hash *program, uint64_t count, vd_hash *out,
                                         vd_err *err);
/* The root over the items' program hashes, or over their run roots, in order. */
VD_MUST_USE vd_status vd_collection_root(const vd_hash *item, uint64_t count, vd_hash *out,
                                         vd_err *err);

#endif
