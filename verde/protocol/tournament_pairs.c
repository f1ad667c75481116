/* Decides who plays whom, only by the assignment's order and the outcomes of earlier levels.
 * PROTOCOL.md section 5.8. */
#include "verde/protocol/tournament_internal.h"

bool vd_tournament_speaks(const vd_tournament *t, uint32_t p) {
    if (!t->seat[p].in)
        return false;
    for (uint32_t q = 0; q < p; q++)
        if (t->seat[q].in && vd_hash_equal(&t->seat[q].root, &t->seat[p].root))
            return false;
    return true;
}

/* Pairs neighbouring spokesmen. If their number is odd, the last one has no game. */
static size_t pair_neighbours(const vd_tournament *t, uint32_t pair[][2]) {
    size_t spokesmen = 0;
    for (uint32_t p = 0; p < t->assignment.provider_count; p++)
        if (vd_tournament_speaks(t, p)) {
            pair[spokesmen / 2][spokesmen % 2] = p;
            spokesmen++;
        }
    return spokesmen / 2;
}

/* In a job with rounding logs: pairs the trainer with the next auditor whose claim differs. */
static size_t pair_auditor(const vd_tournament *t, uint32_t pair[][2]) {
    for (uint32_t p = 1; p < t->assignment.provider_count && t->seat[0].in; p++)
        if (t->seat[p].in && !vd_hash_equal(&t->seat[0].root, &t->seat[p].root)) {
            pair[0][0] = 0;
            pair[0][1] = p;
            return 1;
        }
    return 0;
}

size_t vd_tournament_pairs(const vd_tournament *t, uint32_t pair[VD_PARTIES_MAX / 2][2]) {
    if (t->stuck)
        return 0;
    return t->assignment.rounded ? pair_auditor(t, pair) : pair_neighbours(t, pair);
}
