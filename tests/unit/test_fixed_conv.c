/* Each engine for fixed products in convolutions, by itself, against the reference and against
 * elements from rational arithmetic (tests/vectors/fixed/convolutions.py, which explains the
 * lines). */
#include <criterion/criterion.h>
#define FIXED_ASSERT cr_assert
#include "repops/ref.h"
#include "repops/src/backend.h"
#include "repops/op_image.h"
#include "tests/unit/fixed_convolutions.h"

#include <stdbool.h>

/* Declared in repops/cpu/image/conv_fixed.h and repops/cpu/gemm/fixed.h for each instruction
 * set. */
struct fixed_engine;
typedef const struct fixed_engine *find_engine(int bits, int number);
enum { EITHER, ROWS, COLUMNS, WAYS }; /* windows as rows or columns of a product */
typedef ro_status run_by(const ro_job *job, const struct fixed_engine *engine, int way);
find_engine ro_fixed_engine_scalar;
run_by ro_conv2d_fixed_by_scalar;
#if defined(__x86_64__)
find_engine ro_fixed_engine_avx2, ro_fixed_engine_avx512;
run_by ro_conv2d_fixed_by_avx2, ro_conv2d_fixed_by_avx512;

/* The engine of repops/cpu/gemm/fixed_tiles.c, compiled with tests/support/tiles.h. */
const struct fixed_engine *ro_fixed_tiles_emulated(int bits);

static const struct fixed_engine *tiles_in_software(int bits, int number) {
    return number == 0 ? ro_fixed_tiles_emulated(bits) : NULL;
}
#elif defined(__aarch64__)
find_engine ro_fixed_engine_neon;
run_by ro_conv2d_fixed_by_neon;
#endif

static const struct {
    const char *backend;
    find_engine *engine;
    run_by *run;
} sets[] = {
    {"scalar", ro_fixed_engine_scalar, ro_conv2d_fixed_by_scalar},
#if defined(__x86_64__)
    {"avx2", ro_fixed_engine_avx2, ro_conv2d_fixed_by_avx2},
    {"avx512", ro_fixed_engine_avx512, ro_conv2d_fixed_by_avx512},
    {"avx512", tiles_in_software, ro_conv2d_fixed_by_avx512},
#elif defined(__aarch64__)
    {"neon", ro_fixed_engine_neon, ro_conv2d_fixed_by_neon},
#endif
};
enum { SETS = sizeof sets / sizeof sets[0], ENGINES_MOST = 4 };

/* ---- engines ---- */

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
    for (int i = 0; i < x->kept_count; i++)
        cr_expect(r->out[i * kept_step(r)] == x->kept[i],
                  "%s of %s, element %d: %08x, not %08x by %s", ro_op_describe(r->call.op)->name,
                  x->name, (int)(i * kept_step(r)), r->out[i * kept_step(r)], x->kept[i], who);
}

/* Returns RO_ERR_DEVICE if this machine has no such engine. */
static ro_status run_engine(int set, int number, int way, fixed_run *r) {
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options,
                                .threads = 1 + (number + way) % 2,
                                .backend = sets[set].backend,
                                .alloc = spoilt,
                                .free = unspoilt};
    if (ro_ctx_create(&options, &ctx) != RO_OK)
        return RO_ERR_DEVICE;
    const int bits = (int)r->call.attr[RO_CONV_FIXED_BITS];
    const struct fixed_engine *engine = sets[set].engine(bits, number);
    memset(r->out, 0xa5, (size_t)r->numel * sizeof(float));
    const ro_job job = {ctx, &r->call, (const void *const *)r->data, r->out};
    const ro_status status = engine ? sets[set].run(&job, engine, way) : RO_ERR_DEVICE;
    ro_ctx_destroy(ctx);
    cr_assert(status == RO_OK || !engine || (way == COLUMNS && status == RO_ERR_UNSUPPORTED),
              "%s: %d", sets[set].backend, status);
    return status;
}

static void expect_elements(const fixed_case *x, const fixed_run *r, const uint32_t *want,
                            const char *who) {
    for (int64_t e = 0; e < r->numel; e++)
        cr_expect(r->out[e] == want[e], "%s of %s, element %d: %08x, not %08x by %s",
                  ro_op_describe(r->call.op)->name, x->name, (int)e, r->out[e], want[e], who);
}

/* ran[set][engine][way] counts the convolutions that each engine has computed in each way. */
static void check_line(const char *line, int ran[SETS][ENGINES_MOST][WAYS]) {
    static fixed_case x;
    fixed_run r;
    build_convolution(&x, line, &r);
    const ro_ref_memory memory = {&r.call, (const void *const *)r.data};
    const ro_access in = {ro_ref_load_memory, (void *)&memory};
    uint32_t *want = malloc((size_t)r.numel * sizeof *want);
    for (int64_t e = 0; e < r.numel; e++)
        want[e] = r.out[e] = ro_ref_element(&r.call, e, &in);
    expect_kept(&x, &r, "the reference");
    for (int i = 0; i < SETS * ENGINES_MOST * WAYS; i++) {
        const int set = i / WAYS / ENGINES_MOST, number = i / WAYS % ENGINES_MOST, way = i % WAYS;
        char who[60];
        if (run_engine(set, number, way, &r) != RO_OK)
            continue;
        snprintf(who, sizeof who, "%s, engine %d, way %d", sets[set].backend, number, way);
        expect_elements(&x, &r, want, who);
        ran[set][number][way]++;
    }
    free(want);
    release(&r);
}

/* Expects that an engine of this machine has computed all convolutions with windows as rows, and
 * more than half with windows as columns (gradients of weights do not run that way). */
static void expect_ran(const char *backend, int number, const int ran[WAYS], int convolutions) {
    if (ran[EITHER] + ran[ROWS] + ran[COLUMNS] == 0)
        return;
    cr_expect(ran[EITHER] == convolutions && ran[ROWS] == convolutions, "%s, engine %d: %d, %d",
              backend, number, ran[EITHER], ran[ROWS]);
    cr_expect(ran[COLUMNS] > convolutions / 2, "%s, engine %d, windows as columns: %d", backend,
              number, ran[COLUMNS]);
}

Test(fixed_conv, every_engine_gives_the_kept_elements_and_those_of_the_reference) {
    static char line[1 << 14];
    int ran[SETS][ENGINES_MOST][WAYS] = {{{0}}}, convolutions = 0;
    FILE *file = fopen("tests/vectors/fixed/convolutions.txt", "r");
    cr_assert(file);
    while (fgets(line, sizeof line, file)) {
        cr_assert(strchr(line, '\n'), "a long line: %.30s", line);
        if (strncmp(line, "numbers ", 8) == 0) {
            read_numbers(line);
            continue;
        }
        check_line(line, ran);
        convolutions++;
    }
    fclose(file);
    cr_expect(convolutions >= 220, "only %d convolutions", convolutions);
    for (int set = 0; set < SETS; set++)
        for (int i = 0; i < ENGINES_MOST; i++)
            expect_ran(sets[set].backend, i, ran[set][i], convolutions);
    cr_expect(ran[0][0][EITHER] == convolutions, "the scalar engine has not run");
}
