/* Distribution of a repeat's iterations over ranks. Private to verde/team. */
#ifndef VD_SPREAD_H
#define VD_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

/* `count` iterations in consecutive ranges, one per rank; the first ranks may have one more. */
typedef struct {
    uint32_t count, ranks;
} vd_spread;

uint32_t vd_spread_first(const vd_spread *s, uint32_t rank); /* for rank `ranks`: count */
uint32_t vd_spread_rank(const vd_spread *s, uint32_t iteration);
/* The rank that sums iterations [lo, hi) for a root at rank `home`. The range is a node of the tree
 * that splits at the largest power of two. */
uint32_t vd_spread_place(const vd_spread *s, uint32_t lo, uint32_t hi, uint32_t home);

#endif
