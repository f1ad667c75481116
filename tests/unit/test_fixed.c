/* Every way to compute a fixed product on this machine, by itself, against elements that rational
 * numbers gave (tests/vectors/fixed/make.py, which says what a line means) and against the
 * reference. */
#include "fixed_products.h"
#include "repops/ref.h"
#include "repops/src/backend.h"
#include "repops/src/call.h"
#include "repops/tools/op_data.h"

#include <criterion/criterion.h>

/* repops/cpu/gemm/fixed.h, for each instruction set. */
typedef ro_status run_by(const ro_job *job, int number);
run_by ro_matmul_fixed_by_scalar;
#if defined(__x86_64__)
run_by ro_matmul_fixed_by_avx2, ro_matmul_fixed_by_avx512;
#elif defined(__aarch64__)
run_by ro_matmul_fixed_by_neon;
#endif

static const struct {
    const char *backend;
    run_by *run;
} sets[] = {
    {"scalar", ro_matmul_fixed_by_scalar},
#if defined(__x86_64__)
    {"avx2", ro_matmul_fixed_by_avx2},
    {"avx512", ro_matmul_fixed_by_avx512},
#elif defined(__aarch64__)
    {"neon", ro_matmul_fixed_by_neon},
#endif
};
enum { SETS = sizeof sets / sizeof sets[0], ENGINES_MOST = 4 };

/* ---- a call and its data, in memory of just that size ---- */

typedef struct {
    ro_shape in[2];
    ro_call call;
    uint32_t *data[2], *out;
    int64_t numel;
} fixed_run;

static void fill(const fixed_case *x, int side, uint32_t *data, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const uint64_t h = case_word(x->seed, side, i);
        const numbers *of = x->of[side];
        const int range = (int)(h % (uint64_t)of->count);
        const uint32_t low = of->range[range].low, high = of->range[range].high;
        data[i] = low + (uint32_t)((h >> 20) % ((uint64_t)high - low + 1));
    }
}

static void replace(const fixed_case *x, uint32_t *const data[2]) {
    for (const plant *p = x->plant; p < x->plant + x->plants; p++) {
        const int64_t lines = p->side == 0 ? x->m : x->n;
        const int across = p->side == 0 ? x->trans & 1 : !(x->trans & 2);
        for (int64_t k = p->from; k < p->to; k++)
            data[p->side][across ? k * lines + p->line : p->line * x->k + k] = p->word;
    }
}

static void build(const fixed_case *x, fixed_run *r) {
    const int64_t lines[2] = {x->m, x->n};
    char why[200];
    for (int i = 0; i < 2; i++) {
        const int64_t count = x->batch * lines[i] * x->k;
        const int across = i == 0 ? x->trans & 1 : !(x->trans & 2);
        r->in[i] =
            (ro_shape){RO_F32, 3, {x->batch, across ? x->k : lines[i], across ? lines[i] : x->k}};
        r->data[i] = malloc((size_t)count * sizeof(float));
        fill(x, i, r->data[i], count);
    }
    replace(x, r->data);
    r->call = (ro_call){RO_OP_MATMUL_FIXED, 2, {1, x->trans, x->alpha, x->bits}, r->in, {0}};
    cr_assert(ro_infer(&r->call, why, sizeof why) == RO_OK, "%s: %s", x->name, why);
    r->numel = ro_shape_numel(&r->call.output);
    r->out = malloc((size_t)r->numel * sizeof(float));
}

static void release(fixed_run *r) {
    free(r->data[0]);
    free(r->data[1]);
    free(r->out);
}

/* ---- engines ---- */

/* NaNs, in place of what calls before have left. */
static void *spoilt(void *user, size_t size, size_t alignment) {
    (void)user;
    void *block = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    return block ? memset(block, 0xff, size) : NULL;
}

static void unspoilt(void *user, void *block) {
    (void)user;
    free(block);
}

static void expect_kept(const fixed_case *x, const fixed_run *r, const char *who) {
    const int64_t step = (r->numel + KEPT_MOST - 1) / KEPT_MOST | 1;
    cr_assert(x->kept_count == (r->numel + step - 1) / step, "%s: %d elements are kept", x->name,
              x->kept_count);
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

/* False if this machine has no such engine. */
static bool run_engine(int set, int number, fixed_run *r) {
    ro_ctx *ctx;
    const ro_options options = {1, sets[set].backend, spoilt, unspoilt, NULL};
    if (ro_ctx_create(&options, &ctx) != RO_OK)
        return false;
    memset(r->out, 0xa5, (size_t)r->numel * sizeof(float));
    const ro_job job = {ctx, &r->call, (const void *const *)r->data, r->out};
    const ro_status status = sets[set].run(&job, number);
    ro_ctx_destroy(ctx);
    cr_assert(status == RO_OK || status == RO_ERR_UNSUPPORTED, "%s: %d", sets[set].backend, status);
    return status == RO_OK;
}

static void compute_reference(const fixed_run *r, uint32_t *out) {
    const ro_ref_memory memory = {&r->call, (const void *const *)r->data};
    const ro_access in = {ro_ref_load_memory, (void *)&memory};
    for (int64_t e = 0; e < r->numel; e++)
        out[e] = ro_ref_element(&r->call, e, &in);
}

/* ran: how many cases each engine has computed. */
static void check_product(const fixed_case *x, int ran[SETS][ENGINES_MOST]) {
    fixed_run r;
    build(x, &r);
    uint32_t *want = malloc((size_t)r.numel * sizeof *want);
    compute_reference(&r, want);
    memcpy(r.out, want, (size_t)r.numel * sizeof *want);
    expect_kept(x, &r, "the reference");
    for (int set = 0; set < SETS; set++)
        for (int number = 0; number < ENGINES_MOST && run_engine(set, number, &r); number++) {
            char who[60];
            snprintf(who, sizeof who, "%s, engine %d", sets[set].backend, number);
            expect_kept(x, &r, who);
            expect_elements(x, &r, want, who);
            ran[set][number]++;
        }
    free(want);
    release(&r);
}

/* Every engine that this machine should have has computed every product. */
static void expect_engines(int ran[SETS][ENGINES_MOST], int products) {
    for (int set = 0; set < SETS; set++) {
        ro_ctx *ctx;
        const ro_options options = {.threads = 1, .backend = sets[set].backend};
        if (ro_ctx_create(&options, &ctx) != RO_OK)
            continue;
        ro_ctx_destroy(ctx);
        int engines = 1;
#if defined(__x86_64__)
        engines += strcmp(sets[set].backend, "avx512") == 0 && __builtin_cpu_supports("avx512vnni");
#endif
        for (int i = 0; i < ENGINES_MOST; i++)
            cr_expect(ran[set][i] == (i < engines ? products : 0),
                      "%s, engine %d: %d of %d products", sets[set].backend, i, ran[set][i],
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
