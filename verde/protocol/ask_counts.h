/* The greatest count that each referee's requests have carried, in memory. A request whose count is
 * not greater is a replay. PROTOCOL.md section 8.1. */
#ifndef VD_ASK_COUNTS_H
#define VD_ASK_COUNTS_H

#include "verde/commit/commit.h"

enum { VD_ASK_COUNTS = 64 }; /* referees; the least recently used is replaced first */

typedef struct {
    struct {
        vd_public_key referee;
        int64_t count;
        uint64_t asked; /* time of last use, by `now`; 0: the entry is free */
    } of[VD_ASK_COUNTS];
    uint64_t now;
} vd_ask_counts;

/* Stores a count. Returns false if it is not greater than the one before (*have; 0 if none). */
bool vd_ask_counts_take(vd_ask_counts *counts, const vd_public_key *referee, int64_t count,
                        int64_t *have);

#endif
