/* Contexts for the tests of ro_sgemm. */
#ifndef TESTS_SGEMM_PRODUCT_H
#define TESTS_SGEMM_PRODUCT_H

#include "repops/tools/product.h"

#include <criterion/criterion.h>

static const char *const backends[] = {"scalar", "avx2", "avx512"};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* Returns NULL if this processor lacks the backend. */
static inline ro_ctx *context(const char *backend, int threads) {
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options, .backend = backend, .threads = threads};
    return ro_ctx_create(&options, &ctx) == RO_OK ? ctx : NULL;
}

#endif
