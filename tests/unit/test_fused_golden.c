/* Golden hashes of the functions of repops/fused.h. tests/golden/fused.txt fixes their bits for all
 * time. */
#include "golden_lines.h"
#include "hostile_modes.h"
#include "repops/tools/fused.h"

static void *bytes_of(ro_ctx *ctx, const char *line, size_t *size) {
    golden_fused g;
    float *out;
    int64_t count = 0;
    cr_assert(golden_fused_parse(line, &g), "\"%s\"", line);
    cr_assert(golden_fused_run(ctx, &g, &out, &count) == RO_OK, "%s: %s", g.name,
              ro_ctx_error(ctx));
    *size = (size_t)count * sizeof *out;
    return out;
}

Test(fused_golden, every_backend_gives_the_recorded_bits) {
    static golden_lines g = {.path = "tests/golden/fused.txt", .bytes = bytes_of};
    golden_check(&g);
}

#ifdef HOSTILE
/* The data are integers, which are the same in all modes. Attention's scale is not, and is tested
 * in test_attention.c. */
static void check_hostile(golden_lines *g, const char *backend) {
    ro_ctx *ctx = golden_context(backend, 2);
    for (int i = 0; ctx && i < g->count; i++) {
        char hash[65];
        if (*g->line[i] == '#' || strncmp(g->line[i], "attention", 9) == 0)
            continue;
        const uint64_t before = ro_fp_read();
        ro_fp_write(HOSTILE);
        golden_compute(g, ctx, i, hash);
        const uint64_t after = ro_fp_read();
        ro_fp_write(before);
        cr_expect((after | RO_FP_STICKY) == (HOSTILE | RO_FP_STICKY), "modes are now %x",
                  (unsigned)after);
        cr_expect_str_eq(hash, golden_hash_of(g->line[i]), "%.60s on %s", g->line[i], backend);
    }
    ro_ctx_destroy(ctx);
}

Test(fused_golden, modes_of_the_caller_do_not_show) {
    static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
    static golden_lines g = {.path = "tests/golden/fused.txt", .bytes = bytes_of};
    if (getenv("GOLDEN_UPDATE"))
        return; /* the other test writes the file */
    golden_read(&g);
    for (int b = 0; b < 4; b++)
        check_hostile(&g, backends[b]);
}
#endif
