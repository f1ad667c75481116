/* Philox4x32-10 and the permutation of windows. SPEC.md section 10. */
#ifndef RO_PHILOX_H
#define RO_PHILOX_H

#include <stdint.h>

#include "repops/src/inline.h"

#define RO_PHILOX_M0   UINT32_C(0xD2511F53)
#define RO_PHILOX_M1   UINT32_C(0xCD9E8D57)
#define RO_PHILOX_KEY0 UINT32_C(0x9E3779B9)
#define RO_PHILOX_KEY1 UINT32_C(0xBB67AE85)

RO_INLINE void ro_philox_round(uint32_t counter[4], uint32_t key0, uint32_t key1) {
    uint64_t p0 = (uint64_t)RO_PHILOX_M0 * counter[0];
    uint64_t p1 = (uint64_t)RO_PHILOX_M1 * counter[2];
    uint32_t c0 = (uint32_t)(p1 >> 32) ^ counter[1] ^ key0;
    uint32_t c2 = (uint32_t)(p0 >> 32) ^ counter[3] ^ key1;
    counter[0] = c0;
    counter[1] = (uint32_t)p1;
    counter[2] = c2;
    counter[3] = (uint32_t)p0;
}

/* Replaces a counter by its block of Philox. */
RO_INLINE void ro_philox(uint64_t seed, uint32_t counter[4]) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        ro_philox_round(counter, key0, key1);
        key0 += RO_PHILOX_KEY0;
        key1 += RO_PHILOX_KEY1;
    }
}

/* SPEC 10.1: computes block `block` of a stream. */
RO_INLINE void ro_philox_block(uint64_t seed, uint64_t block, uint32_t step, uint32_t stream,
                               uint32_t word[4]) {
    word[0] = (uint32_t)block;
    word[1] = (uint32_t)(block >> 32);
    word[2] = step;
    word[3] = stream;
    ro_philox(seed, word);
}

/* SPEC 10.2: permutes the numbers below count, by a cycle-walking Feistel network. */
RO_INLINE uint64_t ro_permute(uint64_t seed, uint32_t stream, uint64_t epoch, uint64_t count,
                              uint64_t i) {
    if (count <= 1)
        return 0;
    int half = 1;
    while (half < 20 && (UINT64_C(1) << 2 * half) < count)
        half++;
    uint32_t mask = (uint32_t)((UINT64_C(1) << half) - 1);
    do {
        uint32_t left = (uint32_t)(i >> half), right = (uint32_t)i & mask;
        for (uint32_t round = 0; round < 4; round++) {
            uint32_t word[4] = {right, (uint32_t)epoch, round, stream};
            ro_philox(seed, word);
            uint32_t next = left ^ (word[0] & mask);
            left = right;
            right = next;
        }
        i = (uint64_t)left << half | right;
    } while (i >= count);
    return i;
}

#endif
