/* Stochastic rounding to bf16, SPEC.md section 5. */
#ifndef REPOPS_CPU_STOCHASTIC_H
#define REPOPS_CPU_STOCHASTIC_H

#include "repops/cpu/elements/philox.h"
#include "repops/src/half.h"

enum { STOCHASTIC_MOST = 512 };
_Static_assert(STOCHASTIC_MOST / 8 % PHILOX_BLOCKS == 0, "philox_words writes whole groups");

/* Rounds elements first to first + count of a tensor; `first` is a multiple of 8, and count at most
 * STOCHASTIC_MOST. x and out point to element `first`. */
RO_INLINE void stochastic_bf16(philox from, int64_t first, int64_t count, const float *restrict x,
                               uint16_t *restrict out) {
    uint32_t word[STOCHASTIC_MOST / 2];
    uint16_t part[STOCHASTIC_MOST]; /* two for each word, the lower half first */
    philox_words(from, (uint64_t)first / 8, STOCHASTIC_MOST / 8, word);
    for (int i = 0; i < STOCHASTIC_MOST / 2; i++)
        part[2 * i] = (uint16_t)word[i], part[2 * i + 1] = (uint16_t)(word[i] >> 16);
    for (int64_t i = 0; i < count; i++)
        out[i] = ro_to_bf16_at_random(x[i], part[i]);
}

#endif
