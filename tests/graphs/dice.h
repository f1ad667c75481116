/* Random numbers: equal for equal starts, on every machine. */
#ifndef TESTS_GRAPHS_DICE_H
#define TESTS_GRAPHS_DICE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t at;
} dice;

/* SplitMix64: Steele, Lea and Flood, 2014. */
static inline uint64_t dice_word(dice *d) {
    uint64_t x = d->at += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Returns a number below count, which is at least 1. */
static inline uint32_t dice_below(dice *d, uint64_t count) {
    return (uint32_t)(dice_word(d) % count);
}

static inline bool dice_one_in(dice *d, uint32_t count) {
    return dice_below(d, count) == 0;
}

#endif
