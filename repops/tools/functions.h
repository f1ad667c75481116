/* The elementary functions of SPEC.md section 2 as loops over arrays, compiled for every
 * instruction set: what tests/golden/functions.txt has the hashes of. */
#ifndef REPOPS_TOOLS_FUNCTIONS_H
#define REPOPS_TOOLS_FUNCTIONS_H

#include <stdint.h>

/* The arguments: every 17th number of [2^-8, 2^7), where no function is trivial. A function of
 * turns takes their bits as its argument. */
#define SAMPLE_FIRST  UINT32_C(0x3b800000)
#define SAMPLE_STRIDE UINT32_C(17)
#define SAMPLE_COUNT  ((UINT32_C(0x43000000) - SAMPLE_FIRST) / SAMPLE_STRIDE)

typedef struct {
    const char *name;
    void (*apply)(float *x, int64_t count); /* in place */
} elementary;

/* Ends with a NULL name. */
extern const elementary ro_elementary_scalar[];
#if defined(__x86_64__)
extern const elementary ro_elementary_avx2[], ro_elementary_avx512[];
#elif defined(__aarch64__)
extern const elementary ro_elementary_neon[];
#endif

/* Functions by the name of the backend that has the same instruction set. */
static const struct {
    const char *backend;
    const elementary *list;
} elementary_sets[] = {
    {"scalar", ro_elementary_scalar},
#if defined(__x86_64__)
    {"avx2", ro_elementary_avx2},
    {"avx512", ro_elementary_avx512},
#elif defined(__aarch64__)
    {"neon", ro_elementary_neon},
#endif
};
enum { ELEMENTARY_SETS = sizeof elementary_sets / sizeof elementary_sets[0] };

#endif
