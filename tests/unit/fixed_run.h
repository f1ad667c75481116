/* Computes golden products (fixed_products.h) with every engine of this machine. */
#ifndef TESTS_FIXED_RUN_H
#define TESTS_FIXED_RUN_H

#include "repops/src/backend.h"
#include "repops/src/call.h"
#include "repops/op_product.h"
#include "tests/unit/fixed_data.h"

#include <stdbool.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* Engines for each instruction set, see repops/cpu/gemm/fixed.h. */
typedef struct fixed_engine fixed_engine;
typedef ro_status run_by(const ro_job *job, const fixed_engine *engine);
typedef const fixed_engine *engine_of(int bits, int number);
run_by ro_matmul_fixed_by_scalar;
engine_of ro_fixed_engine_scalar;
#if defined(__x86_64__)
run_by ro_matmul_fixed_by_avx2, ro_matmul_fixed_by_avx512;
engine_of ro_fixed_engine_avx2, ro_fixed_engine_avx512;
#elif defined(__aarch64__)
run_by ro_matmul_fixed_by_neon;
engine_of ro_fixed_engine_neon;
#endif

/* Returns how many engines the processor supports, without tiles, which the system may refuse:
 * binary64, and words, pairs or dot products of them. */
static inline int fixed_engines(const char *backend) {
#if defined(__x86_64__)
    return 1 + (strcmp(backend, "avx2") == 0) +
           (strcmp(backend, "avx512") == 0 && __builtin_cpu_supports("avx512vnni"));
#elif defined(__aarch64__)
    return 1 + (strcmp(backend, "neon") == 0 && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0);
#else
    (void)backend;
    return 1;
#endif
}

typedef struct {
    const char *name, *backend;
    run_by *run;
    engine_of *engine;
} fixed_set;

static const fixed_set fixed_sets[] = {
    {"scalar", "scalar", ro_matmul_fixed_by_scalar, ro_fixed_engine_scalar},
#if defined(__x86_64__)
    {"avx2", "avx2", ro_matmul_fixed_by_avx2, ro_fixed_engine_avx2},
    {"avx512", "avx512", ro_matmul_fixed_by_avx512, ro_fixed_engine_avx512},
#elif defined(__aarch64__)
    {"neon", "neon", ro_matmul_fixed_by_neon, ro_fixed_engine_neon},
#endif
};
enum { FIXED_SETS = sizeof fixed_sets / sizeof fixed_sets[0], ENGINES_MOST = 4 };

/* ---- engines ---- */

/* Allocates memory full of NaNs, in place of earlier calls' data. */
static inline void *spoilt(void *user, size_t size, size_t alignment) {
    (void)user;
    void *block = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    return block ? memset(block, 0xff, size) : NULL;
}

static inline void unspoilt(void *user, void *block) {
    (void)user;
    free(block);
}

/* Returns false if this machine has no such engine. */
static inline bool run_engine(const fixed_set *set, int number, fixed_run *r) {
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options,
                                .threads = 1,
                                .backend = set->backend,
                                .alloc = spoilt,
                                .free = unspoilt};
    if (ro_ctx_create(&options, &ctx) != RO_OK)
        return false;
    memset(r->out, 0xff, (size_t)r->numel * sizeof(float)); /* NaNs, which no sum may read */
    const ro_job job = {ctx, &r->call, (const void *const *)r->data, r->out};
    const fixed_engine *engine = set->engine((int)r->call.attr[RO_MATMUL_FIXED_BITS], number);
    const ro_status status = engine ? set->run(&job, engine) : RO_OK;
    ro_ctx_destroy(ctx);
    FIXED_ASSERT(status == RO_OK, "%s: %d", set->backend, status);
    return engine != NULL;
}

#endif
