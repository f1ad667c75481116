/* Counts of what was tried, for the table at the end. */
#ifndef TESTS_GRAPHS_COUNTS_H
#define TESTS_GRAPHS_COUNTS_H

#include "tests/graphs/mutate.h"
#include "verde/exec/fuse.h"

enum { COUNTS_KINDS = VD_FUSED_ROTARY_GRAD + 1, COUNTS_MUTATIONS = 32 };

typedef struct {
    uint64_t tried[COUNTS_MUTATIONS], taken[COUNTS_MUTATIONS]; /* wires first, then values */
    uint64_t run;                    /* changed programs that were executed */
    uint64_t refused, large, barren; /* refused by the decoder; too much work; no change possible */
    uint64_t together;               /* of those that ran: also run together, */
    uint64_t similar;                /* and together with a program that was changed once more */
    uint64_t fused;                  /* of those that ran: with at least one fused group */
    uint64_t with[COUNTS_KINDS], groups[COUNTS_KINDS]; /* by kind: programs with a group; groups */
} counts;

void counts_add(counts *c, const vd_program *p);
void counts_print(const counts *c);

#endif
