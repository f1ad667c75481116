/* Golden hashes of ro_attention_forward, ro_attention_backward and ro_cross_entropy:
 * tests/golden/fused.txt fixes their bits for all time. */
#include "golden_lines.h"
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
