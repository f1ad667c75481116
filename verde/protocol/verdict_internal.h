/* Declarations shared by the writing and reading of verdicts. Private to verde/protocol. */
#ifndef VD_VERDICT_INTERNAL_H
#define VD_VERDICT_INTERNAL_H

#include "verde/protocol/referee.h"

#define VD_COST_LEVELS    "level_seconds" /* an optional member of `cost` */
#define VD_STATEMENT_TYPE "https://in-toto.io/Statement/v1"

/* Opens an assignment note and appends its payload to *payload. `referee`: the key that must have
 * signed it; NULL: any. */
VD_MUST_USE vd_status vd_verdict_assignment(const vd_buf *note, const vd_public_key *referee,
                                            vd_buf *payload, vd_assignment *out, vd_err *err);

/* ---- verdict_items.c: verdicts about collections ---- */

typedef struct {
    uint64_t item;
    vd_program program;
    bool used; /* a dispute is about this item */
} vd_verdict_item;

/* Must not be moved: `collection` points into it. */
typedef struct {
    vd_collection collection;
    vd_verdict_item *item; /* owned */
    size_t count;
} vd_verdict_items;

/* Returns the programs of the items in dispute, each with its proof. */
json_t *vd_verdict_items_json(const vd_collection *collection, const vd_referee *const *dispute,
                              size_t count);
/* Reads the items. *out must be freed even after a failure. */
VD_MUST_USE vd_status vd_verdict_items_read(const json_t *from, vd_verdict_items *out, vd_err *err);
VD_MUST_USE vd_status vd_verdict_items_all_used(const vd_verdict_items *items, vd_err *err);
void vd_verdict_items_free(vd_verdict_items *items);

#endif
