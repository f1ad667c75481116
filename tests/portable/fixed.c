/* Golden elements of fixed products, tests/vectors/fixed, with every engine of this machine. */
#include "portable.h"

#include <stdlib.h>
#define FIXED_ASSERT(truth, ...)                                                                   \
    do {                                                                                           \
        if (!(truth)) {                                                                            \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#include "tests/unit/fixed_run.h"

static void check_elements(const fixed_case *x, const fixed_run *r, const char *set, int number) {
    const int64_t step = kept_step(r);
    for (int i = 0; i < x->kept_count; i++)
        CHECK(r->out[i * step] == x->kept[i],
              "%s, element %d: %08x, expected %08x by %s, engine %d", x->name, (int)(i * step),
              r->out[i * step], x->kept[i], set, number);
}

/* ran: counts the products that each engine has computed. */
static void check_kept(const fixed_case *x, int ran[FIXED_SETS][ENGINES_MOST]) {
    fixed_run r;
    build(x, &r);
    for (int s = 0; s < FIXED_SETS; s++)
        for (int i = 0; i < ENGINES_MOST && run_engine(&fixed_sets[s], i, &r); i++) {
            check_elements(x, &r, fixed_sets[s].name, i);
            ran[s][i]++;
        }
    release(&r);
}

static void check_engines(int ran[FIXED_SETS][ENGINES_MOST], int products) {
    CHECK(products >= 150, "only %d kept products", products);
    for (int s = 0; s < FIXED_SETS; s++) {
        ro_ctx *ctx;
        if (ro_ctx_create(
                &(ro_options){.size = sizeof(ro_options), .backend = fixed_sets[s].backend},
                &ctx) != RO_OK)
            continue;
        ro_ctx_destroy(ctx);
        for (int i = 0; i < fixed_engines(fixed_sets[s].backend); i++)
            CHECK(ran[s][i] == products, "%s, engine %d: %d of %d products", fixed_sets[s].name, i,
                  ran[s][i], products);
    }
}

void check_fixed_products(void) {
    static char line[1 << 14];
    static fixed_case x;
    int ran[FIXED_SETS][ENGINES_MOST] = {{0}}, products = 0;
    FILE *file = fopen("tests/vectors/fixed/products.txt", "r");
    FIXED_ASSERT(file, "tests/vectors/fixed/products.txt cannot be read");
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "numbers ", 8) == 0) {
            read_numbers(line);
            continue;
        }
        read_product(&x, line);
        check_kept(&x, ran);
        products++;
    }
    fclose(file);
    check_engines(ran, products);
}
