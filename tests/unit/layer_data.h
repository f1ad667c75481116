/* Data and contexts shared by all tests of repops/layers.h. */
#ifndef TESTS_UNIT_LAYER_DATA_H
#define TESTS_UNIT_LAYER_DATA_H

#include "repops/layers.h"
#include "repops/tools/op_data.h"

#include <criterion/criterion.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0], MOST = 1 << 21, NOT_WRITTEN = 0x5a };

static float x[MOST], dy[MOST], want[MOST], got[MOST];

static void fill(float *to, int input, int64_t count, data_class class) {
    cr_assert(count <= MOST);
    for (int64_t e = 0; e < count; e++)
        ((uint32_t *)to)[e] = case_f32(case_word((uint64_t)count, input, e), class);
}

static ro_ctx *context(const char *backend, int threads) {
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options, .backend = backend, .threads = threads};
    return ro_ctx_create(&options, &ctx) == RO_OK ? ctx : NULL;
}

static void expect_refused(const ro_ctx *ctx, ro_status status, const char *words) {
    cr_expect(status == RO_ERR_ARG && strstr(ro_ctx_error(ctx), words), "%s, expected %s",
              ro_ctx_error(ctx), words);
}

#endif
