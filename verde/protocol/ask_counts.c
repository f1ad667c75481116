/* This file keeps the greatest request count of each referee that asked lately. */
#include "verde/protocol/ask_counts.h"

#include <string.h>

/* Returns the index of the referee's entry, or of the entry that is least recently used. */
static int place_of(const vd_ask_counts *c, const vd_public_key *referee) {
    int oldest = 0;
    for (int i = 0; i < VD_ASK_COUNTS; i++) {
        if (c->of[i].asked && memcmp(&c->of[i].referee, referee, sizeof *referee) == 0)
            return i;
        if (c->of[i].asked < c->of[oldest].asked)
            oldest = i;
    }
    return oldest;
}

bool vd_ask_counts_take(vd_ask_counts *c, const vd_public_key *referee, int64_t count,
                        int64_t *have) {
    const int i = place_of(c, referee);
    const bool known = c->of[i].asked && memcmp(&c->of[i].referee, referee, sizeof *referee) == 0;
    *have = known ? c->of[i].count : 0;
    if (count <= *have)
        return false;
    c->of[i].referee = *referee;
    c->of[i].count = count;
    c->of[i].asked = ++c->now;
    return true;
}
