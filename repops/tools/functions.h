/* The elementary functions of SPEC.md section 2 as loops over arrays, compiled for every
 * instruction set; tests/golden/functions.txt has the hashes of their results. */
#ifndef REPOPS_TOOLS_FUNCTIONS_H
#define REPOPS_TOOLS_FUNCTIONS_H

#include <stdint.h>

/* The arguments: every 17th number of [2^-8, 2^7), where no function is trivial. Functions of turns
 * take the bits of these numbers as integers. */
#define SAMPLE_FIRST  UINT32_C(0x3b800000)
#define SAMPLE_STRIDE UINT32_C(17)
#define SAMPLE_COUNT  ((UINT32_C(0x43000000) - SAMPLE_FIRST) / SAMPLE_STRIDE)

typedef struct {
    const char *name;
    void (*apply)(float *x, int64_t count); /* in place */
} elementary;

/* The list ends with an entry whose name is NULL. */
extern const elementary ro_elementary_scalar[];
#if defined(__x86_64__)
extern const elementary ro_elementary_avx2[], ro_elementary_avx512[];
#elif defined(__aarch64__)
extern const elementary ro_elementary_neon[];
#endif

/* The list of functions for each backend's instruction set. */
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
