/* Iterations of a repeat spread over ranks. Private to verde/team. */
#ifndef VD_SPREAD_H
#define VD_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

/* `count` iterations in consecutive ranges, one for each rank; the first ranks have one more where
 * they do not divide. */
typedef struct {
    uint32_t count, ranks;
} vd_spread;

uint32_t vd_spread_first(const vd_spread *s, uint32_t rank); /* of rank `ranks`: count */
uint32_t vd_spread_rank(const vd_spread *s, uint32_t iteration);
/* The rank that makes the sum over iterations [lo, hi), which is one of the tree that splits at the
 * largest power of two, if its root is wanted at rank `home`. */
uint32_t vd_spread_place(const vd_spread *s, uint32_t lo, uint32_t hi, uint32_t home);

#endif
