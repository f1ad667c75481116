/* What writing and reading verdicts share. Private to verde/protocol. */
#ifndef VD_VERDICT_INTERNAL_H
#define VD_VERDICT_INTERNAL_H

#include "verde/protocol/referee.h"

#define VD_COST_LEVELS    "level_seconds" /* the member of `cost` that may be absent */
#define VD_STATEMENT_TYPE "https://in-toto.io/Statement/v1"

/* An assignment that its referee has signed, who must be this one, or NULL; its payload is appended
 * to *payload. */
VD_MUST_USE vd_status vd_verdict_assignment(const vd_buf *note, const vd_public_key *referee,
                                            vd_buf *payload, vd_assignment *out, vd_err *err);

/* ---- verdict_items.c: of a job of many programs ---- */

typedef struct {
    uint64_t item;
    vd_program program;
    bool used; /* a dispute is about it */
} vd_verdict_item;

/* Stays where it is: `collection` points into it. */
typedef struct {
    vd_collection collection;
    vd_verdict_item *item; /* owned */
    size_t count;
} vd_verdict_items;

/* The programs of the items that disputes are about, each with a proof. */
json_t *vd_verdict_items_json(const vd_collection *collection, const vd_referee *const *dispute,
                              size_t count);
/* *out may be freed after a failure too. */
VD_MUST_USE vd_status vd_verdict_items_read(const json_t *from, vd_verdict_items *out, vd_err *err);
VD_MUST_USE vd_status vd_verdict_items_all_used(const vd_verdict_items *items, vd_err *err);
void vd_verdict_items_free(vd_verdict_items *items);

#endif
