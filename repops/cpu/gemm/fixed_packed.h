/* The layout of an operand of a fixed product that is packed as a whole: a head, the groups of
 * lines of each chunk, and the powers of all lines. */
#ifndef REPOPS_CPU_FIXED_PACKED_H
#define REPOPS_CPU_FIXED_PACKED_H

#include "repops/cpu/gemm/fixed.h"
#include "repops/src/packed.h"

typedef struct {
    const fixed_engine *engine; /* the engine that packed it; others pack differently */
    int64_t lines, steps;
    int64_t group_lines, group_bytes;
    int64_t groups;   /* groups of lines in a chunk */
    int64_t power_at; /* offset of the powers from the head, in bytes */
    int bits;
    ro_packed_operand side;
    int adds; /* whether the sums of groups are known, for checks (fixed_check.h) */
} fixed_packed;
enum { PACKED_HEAD = 128 };
_Static_assert(sizeof(fixed_packed) <= PACKED_HEAD, "groups begin with a line of a cache");

RO_INLINE char *packed_group(const fixed_packed *p, int64_t chunk, int64_t group) {
    return (char *)(uintptr_t)p + PACKED_HEAD + (chunk * p->groups + group) * p->group_bytes;
}

RO_INLINE double *packed_powers(const fixed_packed *p, int64_t chunk, int64_t group) {
    double *power = (double *)(void *)((char *)(uintptr_t)p + p->power_at);
    return power + (chunk * p->groups + group) * p->group_lines;
}

/* Returns where the sum of a group's words and powers is kept since they were packed. */
RO_INLINE uint32_t *packed_sum(const fixed_packed *p, int64_t chunk, int64_t group) {
    const int64_t powers = ceil_div(p->steps, RO_DOT_CHUNK) * p->groups * p->group_lines;
    char *sums = (char *)(uintptr_t)p + p->power_at + powers * (int64_t)sizeof(double);
    return (uint32_t *)(void *)sums + chunk * p->groups + group;
}

/* Returns the bytes of an operand that is packed as a whole. */
int64_t RO_NAME(ro_fixed_packed_size)(const fixed_engine *engine, ro_packed_operand side,
                                      int64_t lines, int64_t steps);
/* Packs all lines into `to`, which has room for ro_fixed_packed_size bytes, and returns it. */
const fixed_packed *RO_NAME(ro_fixed_pack)(ro_ctx *ctx, const fixed_engine *engine,
                                           ro_packed_operand side, const fixed_lines *all, int bits,
                                           void *to);

/* Runs ro_linear with operands that may be packed (repops/packed.h). */
ro_status RO_NAME(ro_linear_of_packed)(ro_ctx *ctx, const ro_linear_job *job,
                                       const ro_linear_operands *in);

#endif
