/* This file spreads the iterations of a repeat evenly over ranks. */
#include "verde/team/spread.h"

uint32_t vd_spread_first(const vd_spread *s, uint32_t rank) {
    const uint32_t more = s->count % s->ranks;
    return rank * (s->count / s->ranks) + (rank < more ? rank : more);
}

uint32_t vd_spread_rank(const vd_spread *s, uint32_t iteration) {
    const uint32_t each = s->count / s->ranks, more = s->count % s->ranks;
    if (iteration < more * (each + 1))
        return iteration / (each + 1);
    return more + (iteration - more * (each + 1)) / each;
}

/* The sum is made at `home` if home has any of the iterations, so that its partial sums do not
 * leave it. Otherwise the bits of home's first iteration choose a half at each level, as in a
 * binomial tree with root `home`, so that sums for different homes are made on different ranks. */
uint32_t vd_spread_place(const vd_spread *s, uint32_t lo, uint32_t hi, uint32_t home) {
    const uint32_t first = vd_spread_first(s, home), end = vd_spread_first(s, home + 1);
    if (lo < end && first < hi)
        return home;
    while (hi - lo > 1) {
        const uint32_t half = UINT32_C(1) << (31 - __builtin_clz(hi - lo - 1));
        if (first & half)
            lo += half;
        else
            hi = lo + half;
    }
    return vd_spread_rank(s, lo);
}
