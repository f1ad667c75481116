/* Golden hashes of ro_sgemm and ro_sgemm_batch: tests/golden/sgemm.txt fixes their bits for all
 * time. */
#include "golden_lines.h"
#include "repops/tools/product.h"

/* Returns c, which the caller frees. */
static void *bytes_of(ro_ctx *ctx, const char *line, size_t *size) {
    golden_product g;
    product p;
    cr_assert(golden_product_parse(line, &g) && golden_product_build(&g, &p), "\"%s\"", line);
    cr_assert(product_run(ctx, &p) == RO_OK, "%s: %s", g.name, ro_ctx_error(ctx));
    float *out = p.out;
    *size = (size_t)p.c_count * sizeof *out;
    p.out = NULL;
    product_free(&p);
    return out;
}

Test(sgemm_golden, every_backend_gives_the_recorded_bits) {
    static golden_lines g = {.path = "tests/golden/sgemm.txt", .bytes = bytes_of};
    golden_check(&g);
}
