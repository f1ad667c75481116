/* A job of many programs, its items: one hash names all of them. PROTOCOL.md section 1.4. */
#ifndef VD_PROTOCOL_COLLECTION_H
#define VD_PROTOCOL_COLLECTION_H

#include "verde/commit/collection.h"
#include "verde/graph/graph.h"

typedef struct {
    uint64_t count;         /* 1..VD_COLLECTION_ITEMS_MAX */
    vd_hash programs;       /* root over the hashes of the items' programs, in order */
    const vd_hash *program; /* those hashes, borrowed; NULL where a verdict is verified */
    /* An item's program; whoever called frees it. Any thread may call it. */
    vd_status (*load)(void *user, uint64_t item, vd_program *out, vd_err *err);
    void *user;
} vd_collection;

/* `load`, and is the program of that hash? VD_ERR_LOCAL: it is another one. *hash may be NULL. */
VD_MUST_USE vd_status vd_collection_open(const vd_collection *collection, uint64_t item,
                                         vd_program *out, vd_hash *hash, vd_err *err);

#endif
