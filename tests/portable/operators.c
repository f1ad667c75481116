#include "portable.h"
#include "repops/ref.h"
#include "tests/unit/op_cases.h"

enum { CASES = 5, ELEMENTS = 40 };

static void check_case(ro_ctx *ctx, int op, uint64_t seed) {
    op_case c;
    const char *why = case_roll(&c, op, seed);
    const char *name = ro_op_describe(op)->name;
    CHECK(!why, "%s, case %llu: %s", name, (unsigned long long)seed, why);
    if (why)
        return;
    const ro_ref_memory memory = {&c.call, (const void *const *)c.data};
    const ro_access in = {ro_ref_load_memory, (void *)&memory};
    const int64_t numel = ro_shape_numel(&c.call.output);
    CHECK(ro_run(ctx, &c.call, (const void *const *)c.data, c.out) == RO_OK, "%s",
          ro_ctx_error(ctx));
    for (int i = 0; i < ELEMENTS; i++) {
        const int64_t e = i ? (int64_t)(case_word(seed, 9, i) % (uint64_t)numel) : numel - 1;
        const uint32_t want = ro_ref_element(&c.call, e, &in), got = case_out(&c, e);
        CHECK(got == want, "%s on %s, case %llu, element %lld: %08x, expected %08x", name,
              ro_ctx_backend(ctx), (unsigned long long)seed, (long long)e, got, want);
    }
    case_free(&c);
}

void check_operators(void) {
    static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
    for (int b = 0; b < 4; b++) {
        ro_ctx *ctx;
        if (ro_ctx_create(
                &(ro_options){.size = sizeof(ro_options), .backend = backends[b], .threads = 3},
                &ctx) != RO_OK)
            continue;
        for (int op = 1; op < RO_OP_END; op++)
            for (int i = 0; ro_op_describe(op) && i < CASES; i++)
                check_case(ctx, op, (uint64_t)(op * 1000 + i));
        ro_ctx_destroy(ctx);
    }
}
