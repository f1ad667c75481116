/* How weights lie that stay packed: a head, each chunk's groups of columns, and the powers of all.
 */
#ifndef REPOPS_CPU_FIXED_PACKED_H
#define REPOPS_CPU_FIXED_PACKED_H

#include "repops/cpu/gemm/fixed.h"

typedef struct {
    const fixed_engine *engine; /* that of another set of instructions packs otherwise */
    int64_t in, out, bits;      /* of the layer */
    int64_t groups;             /* of a chunk */
    int64_t power_at;           /* bytes from the head on */
} fixed_packed;
enum { PACKED_HEAD = 64 };

RO_INLINE char *packed_group(const fixed_packed *p, int64_t chunk, int64_t group) {
    return (char *)(uintptr_t)p + PACKED_HEAD + (chunk * p->groups + group) * p->engine->b_bytes;
}

RO_INLINE double *packed_powers(const fixed_packed *p, int64_t chunk, int64_t group) {
    double *power = (double *)(void *)((char *)(uintptr_t)p + p->power_at);
    return power + (chunk * p->groups + group) * p->engine->b_lines;
}

#endif
