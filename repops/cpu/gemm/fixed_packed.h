/* How an operand of a fixed product lies that is packed as a whole: a head, each chunk's groups of
 * lines, and the powers of all. */
#ifndef REPOPS_CPU_FIXED_PACKED_H
#define REPOPS_CPU_FIXED_PACKED_H

#include "repops/cpu/gemm/fixed.h"
#include "repops/src/packed.h"

typedef struct {
    const fixed_engine *engine; /* that of another set of instructions packs otherwise */
    int64_t lines, steps;
    int64_t group_lines, group_bytes;
    int64_t groups;   /* of a chunk */
    int64_t power_at; /* bytes from the head on */
    int bits;
    ro_packed_operand side;
    int adds; /* groups' sums are known, for checks (fixed_check.h) */
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

/* The sum of a group's words and powers is kept here from when they were packed. */
RO_INLINE uint32_t *packed_sum(const fixed_packed *p, int64_t chunk, int64_t group) {
    const int64_t powers = ceil_div(p->steps, RO_DOT_CHUNK) * p->groups * p->group_lines;
    char *sums = (char *)(uintptr_t)p + p->power_at + powers * (int64_t)sizeof(double);
    return (uint32_t *)(void *)sums + chunk * p->groups + group;
}

/* Bytes of such an operand. */
int64_t RO_NAME(ro_fixed_packed_size)(const fixed_engine *engine, ro_packed_operand side,
                                      int64_t lines, int64_t steps);
/* Packs all lines into so many bytes, whose beginning is returned. */
const fixed_packed *RO_NAME(ro_fixed_pack)(ro_ctx *ctx, const fixed_engine *engine,
                                           ro_packed_operand side, const fixed_lines *all, int bits,
                                           void *to);

/* For repops/packed.h. */
ro_status RO_NAME(ro_linear_of_packed)(ro_ctx *ctx, const ro_linear_job *job,
                                       const ro_linear_operands *in);

#endif
