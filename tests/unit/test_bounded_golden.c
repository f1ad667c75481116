/* Golden hashes of elements with bounds, so that any two referees come to the same verdict. */
#include "golden_lines.h"
#include "repops/free.h"
#include "repops/tools/bounded.h"
#include "repops/tools/golden.h"

static void *bytes_of(ro_ctx *ctx, const char *line, size_t *size) {
    uint64_t *out = malloc(2 * BOUNDED_ELEMENTS * sizeof *out);
    char why[200];
    golden_case g;
    op_case c;
    (void)ctx;
    cr_assert(out && golden_parse(line, &g), "\"%s\"", line);
    cr_assert(golden_build(&g, &c, why, sizeof why), "%s %s: %s", g.op, g.name, why);
    *size = (size_t)bounded_of_case(&c, out) * 2 * sizeof *out;
    case_free(&c);
    return out;
}

static int has_line(const golden_lines *g, int op) {
    golden_case parsed;
    for (int i = 0; i < g->count; i++)
        if (golden_parse(g->line[i], &parsed) && ro_op_by_name(parsed.op) == op)
            return 1;
    return 0;
}

Test(bounded_golden, elements_have_the_recorded_bits) {
    static golden_lines g = {.path = "tests/golden/bounded.txt", .bytes = bytes_of};
    golden_read(&g);
    if (getenv("GOLDEN_UPDATE"))
        golden_update(&g);
    golden_check_lines(&g, "cpu", 1);
    for (int op = 1; op < RO_OP_END; op++)
        cr_assert(!ro_op_is_free(op) || has_line(&g, op), "no line of %s",
                  ro_op_describe(op)->name);
}
