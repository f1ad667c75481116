/* Each engine for fixed products on this machine, by itself, against the reference and against
 * elements from rational arithmetic (tests/vectors/fixed/make.py, which explains the lines). */
#include <criterion/criterion.h>
#define FIXED_ASSERT cr_assert
#include "repops/ref.h"
#include "tests/unit/fixed_run.h"

#if defined(__x86_64__)
/* The engine of repops/cpu/gemm/fixed_tiles.c, compiled with tests/support/tiles.h. */
const fixed_engine *ro_fixed_tiles_emulated(int bits);
const fixed_engine *ro_fixed_tiles_avx512(int bits);

static const fixed_engine *tiles_in_software(int bits, int number) {
    return number == 0 ? ro_fixed_tiles_emulated(bits) : NULL;
}

enum { SETS = FIXED_SETS + 1 };
static const fixed_set emulated = {"avx512, tiles in software", "avx512", ro_matmul_fixed_by_avx512,
                                   tiles_in_software};
#else
enum { SETS = FIXED_SETS };
static const fixed_set emulated;
#endif

static const fixed_set *set_of(int i) {
    return i < FIXED_SETS ? &fixed_sets[i] : &emulated;
}

/* ---- elements ---- */

static void expect_kept(const fixed_case *x, const fixed_run *r, const char *who) {
    const int64_t step = kept_step(r);
    for (int i = 0; i < x->kept_count; i++)
        cr_expect(r->out[i * step] == x->kept[i],
                  "%s, seed %" PRIu64 ", element %d: %08x, not %08x by %s", x->name, x->seed,
                  (int)(i * step), r->out[i * step], x->kept[i], who);
}

static void expect_elements(const fixed_case *x, const fixed_run *r, const uint32_t *want,
                            const char *who) {
    for (int64_t e = 0; e < r->numel; e++)
        cr_expect(r->out[e] == want[e], "%s, seed %" PRIu64 ", element %d: %08x, not %08x by %s",
                  x->name, x->seed, (int)e, r->out[e], want[e], who);
}

static void compute_reference(const fixed_run *r, uint32_t *out) {
    const ro_ref_memory memory = {&r->call, (const void *const *)r->data};
    const ro_access in = {ro_ref_load_memory, (void *)&memory};
    for (int64_t e = 0; e < r->numel; e++)
        out[e] = ro_ref_element(&r->call, e, &in);
}

/* ran[set][engine] counts the products that each engine has computed. */
static void check_product(const fixed_case *x, int ran[SETS][ENGINES_MOST]) {
    fixed_run r;
    build(x, &r);
    uint32_t *want = malloc((size_t)r.numel * sizeof *want);
    compute_reference(&r, want);
    memcpy(r.out, want, (size_t)r.numel * sizeof *want);
    expect_kept(x, &r, "the reference");
    for (int set = 0; set < SETS; set++)
        for (int number = 0; number < ENGINES_MOST && run_engine(set_of(set), number, &r);
             number++) {
            char who[60];
            snprintf(who, sizeof who, "%s, engine %d", set_of(set)->name, number);
            expect_kept(x, &r, who);
            expect_elements(x, &r, want, who);
            ran[set][number]++;
        }
    free(want);
    release(&r);
}

static int engines_expected(int set) {
#if defined(__x86_64__)
    if (set_of(set) == &emulated)
        return 1;
    if (set_of(set)->engine == ro_fixed_engine_avx512)
        return fixed_engines("avx512") + (ro_fixed_tiles_avx512(RO_FIXED_24) != NULL);
#endif
    return fixed_engines(set_of(set)->backend);
}

/* Expects that every engine that this machine should have has computed every product. */
static void expect_engines(int ran[SETS][ENGINES_MOST], int products) {
    for (int set = 0; set < SETS; set++) {
        ro_ctx *ctx;
        const ro_options options = {
            .size = sizeof options, .threads = 1, .backend = set_of(set)->backend};
        if (ro_ctx_create(&options, &ctx) != RO_OK)
            continue;
        ro_ctx_destroy(ctx);
        const int engines = engines_expected(set);
        for (int i = 0; i < ENGINES_MOST; i++)
            cr_expect(ran[set][i] == (i < engines ? products : 0),
                      "%s, engine %d: %d of %d products", set_of(set)->name, i, ran[set][i],
                      products);
    }
}

Test(fixed, every_engine_gives_the_kept_elements_and_those_of_the_reference) {
    static char line[1 << 14];
    static fixed_case x;
    int ran[SETS][ENGINES_MOST] = {{0}}, products = 0;
    FILE *file = fopen("tests/vectors/fixed/products.txt", "r");
    cr_assert(file);
    while (fgets(line, sizeof line, file)) {
        cr_assert(strchr(line, '\n'), "a long line: %.30s", line);
        if (strncmp(line, "numbers ", 8) == 0) {
            read_numbers(line);
            continue;
        }
        read_product(&x, line);
        check_product(&x, ran);
        products++;
    }
    fclose(file);
    cr_expect(products >= 150, "only %d products", products);
    expect_engines(ran, products);
}
