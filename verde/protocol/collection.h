/* A collection: a job of many programs, its items, named by one hash. PROTOCOL.md section 1.4. */
#ifndef VD_PROTOCOL_COLLECTION_H
#define VD_PROTOCOL_COLLECTION_H

#include "verde/commit/collection.h"
#include "verde/graph/graph.h"

typedef struct {
    uint64_t count;         /* 1..VD_COLLECTION_ITEMS_MAX */
    vd_hash programs;       /* root over the hashes of the items' programs, in order */
    const vd_hash *program; /* hashes below `programs`, borrowed; NULL while verifying */
    /* Loads an item's program, which the caller frees. Thread-safe. */
    vd_status (*load)(void *user, uint64_t item, vd_program *out, vd_err *err);
    void *user;
} vd_collection;

/* Loads a program and checks its hash. VD_ERR_LOCAL: it is another one. *hash may be NULL. */
VD_MUST_USE vd_status vd_collection_open(const vd_collection *collection, uint64_t item,
                                         vd_program *out, vd_hash *hash, vd_err *err);

#endif
