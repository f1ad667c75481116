/* The greatest count of each referee's questions so far, in memory: who sends a request again that
 * was answered before is no referee. PROTOCOL.md section 8.1. */
#ifndef VD_ASK_COUNTS_H
#define VD_ASK_COUNTS_H

#include "verde/commit/commit.h"

enum { VD_ASK_COUNTS = 64 }; /* referees; who asked longest ago is forgotten first */

typedef struct {
    struct {
        vd_public_key referee;
        int64_t count;
        uint64_t asked; /* when last; 0: the place is free */
    } of[VD_ASK_COUNTS];
    uint64_t now;
} vd_ask_counts;

/* False: the count is not greater than `*have`, which came before. */
bool vd_ask_counts_take(vd_ask_counts *counts, const vd_public_key *referee, int64_t count,
                        int64_t *have);

#endif
