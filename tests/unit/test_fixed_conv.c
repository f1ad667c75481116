/* Every engine of fixed products in convolutions, by itself, against elements that rational numbers
 * gave (tests/vectors/fixed/convolutions.py, which says what a line means) and against the
 * reference. */
#include <criterion/criterion.h>
#define FIXED_ASSERT cr_assert
#include "fixed_products.h"
#include "repops/ref.h"
#include "repops/src/backend.h"
#include "repops/src/conv.h"
#include "repops/tools/op_data.h"

/* repops/cpu/image/conv_fixed.h and repops/cpu/gemm/fixed.h, for each instruction set. */
struct fixed_engine;
typedef const struct fixed_engine *find_engine(int bits, int number);
typedef ro_status run_by(const ro_job *job, const struct fixed_engine *engine);
find_engine ro_fixed_engine_scalar;
run_by ro_conv2d_fixed_by_scalar;
#if defined(__x86_64__)
find_engine ro_fixed_engine_avx2, ro_fixed_engine_avx512;
run_by ro_conv2d_fixed_by_avx2, ro_conv2d_fixed_by_avx512;

/* repops/cpu/gemm/fixed_tiles.c, compiled with tests/support/tiles.h. */
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

/* A line of the file, with its data. */
typedef struct {
    fixed_case line; /* names, numbers and what is replaced: `line` of a plant is not used */
    ro_shape in[2];
    ro_call call;
    uint32_t *data[2], *out;
    int64_t numel;
} conv_run;

/* ---- reading ---- */

static const char *read_conv_plants(fixed_case *x, const char *at) {
    int length;
    for (plant p = {0}; sscanf(at, " %d:%" SCNd64 "-%" SCNd64 ":%8" SCNx32 "%n", &p.side, &p.from,
                               &p.to, &p.word, &length) == 4;
         at += length) {
        cr_assert(x->plants < PLANTS_MOST, "%s: %.30s", x->name, at);
        x->plant[x->plants++] = p;
    }
    return at;
}

static void read_kept(fixed_case *x, const char *at) {
    int length;
    cr_assert(strncmp(at, " =", 2) == 0, "%s: %.30s", x->name, at);
    for (at += 2; *at == ' '; at += length) {
        cr_assert(x->kept_count < KEPT_MOST &&
                      sscanf(at, " %8" SCNx32 "%n", &x->kept[x->kept_count], &length) == 1,
                  "%s: %.30s", x->name, at);
        x->kept_count++;
    }
}

/* The image, filters and kernel of a line, then its call. */
enum {
    DIRECTION,
    BITS,
    IMAGE,
    FILTERS = IMAGE + 4,
    GROUPS,
    KERNEL,
    ATTRIBUTES = KERNEL + 2,
    FIELDS = ATTRIBUTES + 6
};

static void set_call(conv_run *r, const int64_t *field) {
    const int64_t *image = field + IMAGE, *kernel = field + KERNEL, *a = field + ATTRIBUTES;
    const int64_t filters = field[FILTERS];
    int64_t size[2];
    for (int i = 0; i < 2; i++)
        size[i] = ro_windows(image[1 + i], a[2 + i], a[4 + i] * (kernel[i] - 1) + 1, a[i]);
    const ro_shape x = {RO_F32, 4, {image[0], image[1], image[2], image[3]}};
    const ro_shape w = {RO_F32, 4, {kernel[0], kernel[1], image[3] / field[GROUPS], filters}};
    const ro_shape y = {RO_F32, 4, {image[0], size[0], size[1], filters}};
    const ro_shape in[3][2] = {{x, w}, {y, w}, {x, y}}, out[3] = {y, x, w};
    memcpy(r->in, in[field[DIRECTION]], sizeof r->in);
    r->call = (ro_call){
        (int)(RO_OP_CONV2D_FIXED + field[DIRECTION]), 2, {0}, r->in, out[field[DIRECTION]]};
    memcpy(r->call.attr, a, 6 * sizeof *a);
    r->call.attr[RO_CONV_FIXED_GROUPS] = field[GROUPS];
    r->call.attr[RO_CONV_FIXED_BITS] = field[BITS];
}

static void read_line(conv_run *r, const char *at) {
    fixed_case *x = &r->line;
    char a[NAME_SIZE], b[NAME_SIZE];
    int64_t field[FIELDS];
    int length;
    memset(r, 0, sizeof *r);
    cr_assert(sscanf(at, "convolution %31s%n", x->name, &length) == 1, "%.60s", at);
    at += length;
    for (int i = 0; i < FIELDS; i++, at += length)
        cr_assert(sscanf(at, " %" SCNd64 "%n", &field[i], &length) == 1, "%s: %.30s", x->name, at);
    cr_assert(field[DIRECTION] >= 0 && field[DIRECTION] <= 2 && field[GROUPS] > 0);
    cr_assert(sscanf(at, " %31s %31s %" SCNu64 "%n", a, b, &x->seed, &length) == 3, "%.30s", at);
    x->of[0] = numbers_named(a), x->of[1] = numbers_named(b);
    read_kept(x, read_conv_plants(x, at + length));
    set_call(r, field);
}

/* ---- data, in memory of just that size ---- */

static void fill(conv_run *r, int side) {
    const int64_t count = ro_shape_numel(&r->in[side]);
    const numbers *of = r->line.of[side];
    r->data[side] = malloc((size_t)count * sizeof(uint32_t));
    for (int64_t i = 0; i < count; i++) {
        const uint64_t h = case_word(r->line.seed, side, i);
        const int range = (int)(h % (uint64_t)of->count);
        const uint32_t low = of->range[range].low, high = of->range[range].high;
        r->data[side][i] = low + (uint32_t)((h >> 20) % ((uint64_t)high - low + 1));
    }
    for (const plant *p = r->line.plant; p < r->line.plant + r->line.plants; p++)
        for (int64_t i = p->from; p->side == side && i < p->to; i++)
            r->data[side][i] = p->word;
}

static void prepare(conv_run *r) {
    char why[200];
    fill(r, 0);
    fill(r, 1);
    cr_assert(ro_infer(&r->call, why, sizeof why) == RO_OK, "%s: %s", r->line.name, why);
    r->numel = ro_shape_numel(&r->call.output);
    r->out = malloc((size_t)r->numel * sizeof(float));
}

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

static void expect_kept(const conv_run *r, const char *who) {
    const int64_t step = (r->numel + KEPT_MOST - 1) / KEPT_MOST | 1;
    const fixed_case *x = &r->line;
    cr_assert(x->kept_count == (r->numel + step - 1) / step, "%s: %d elements are kept", x->name,
              x->kept_count);
    for (int i = 0; i < x->kept_count; i++)
        cr_expect(r->out[i * step] == x->kept[i], "%s of %s, element %d: %08x, not %08x by %s",
                  ro_op_describe(r->call.op)->name, x->name, (int)(i * step), r->out[i * step],
                  x->kept[i], who);
}

/* False if this machine has no such engine. */
static bool run_engine(int set, int number, conv_run *r) {
    ro_ctx *ctx;
    const ro_options options = {1 + number % 2, sets[set].backend, spoilt, unspoilt, NULL};
    if (ro_ctx_create(&options, &ctx) != RO_OK)
        return false;
    const int bits = (int)r->call.attr[RO_CONV_FIXED_BITS];
    const struct fixed_engine *engine = sets[set].engine(bits, number);
    memset(r->out, 0xa5, (size_t)r->numel * sizeof(float));
    const ro_job job = {ctx, &r->call, (const void *const *)r->data, r->out};
    const ro_status status = engine ? sets[set].run(&job, engine) : RO_OK;
    ro_ctx_destroy(ctx);
    cr_assert(status == RO_OK, "%s: %d", sets[set].backend, status);
    return engine != NULL;
}

static void expect_elements(const conv_run *r, const uint32_t *want, const char *who) {
    for (int64_t e = 0; e < r->numel; e++)
        cr_expect(r->out[e] == want[e], "%s of %s, element %d: %08x, not %08x by %s",
                  ro_op_describe(r->call.op)->name, r->line.name, (int)e, r->out[e], want[e], who);
}

/* ran: how many cases each engine has computed. */
static void check_line(const char *line, int ran[SETS][ENGINES_MOST]) {
    static conv_run r;
    read_line(&r, line);
    prepare(&r);
    const ro_ref_memory memory = {&r.call, (const void *const *)r.data};
    const ro_access in = {ro_ref_load_memory, (void *)&memory};
    uint32_t *want = malloc((size_t)r.numel * sizeof *want);
    for (int64_t e = 0; e < r.numel; e++)
        want[e] = r.out[e] = ro_ref_element(&r.call, e, &in);
    expect_kept(&r, "the reference");
    for (int set = 0; set < SETS; set++)
        for (int number = 0; number < ENGINES_MOST && run_engine(set, number, &r); number++) {
            char who[60];
            snprintf(who, sizeof who, "%s, engine %d", sets[set].backend, number);
            expect_elements(&r, want, who);
            ran[set][number]++;
        }
    free(want);
    free(r.data[0]), free(r.data[1]), free(r.out);
}

Test(fixed_conv, every_engine_gives_the_kept_elements_and_those_of_the_reference) {
    static char line[1 << 14];
    int ran[SETS][ENGINES_MOST] = {{0}}, convolutions = 0;
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
    cr_expect(convolutions >= 120, "only %d convolutions", convolutions);
    for (int set = 0; set < SETS; set++)
        for (int i = 0; i < ENGINES_MOST; i++)
            cr_expect(ran[set][i] == (ran[set][i] > 0 ? convolutions : 0), "%s, engine %d: %d",
                      sets[set].backend, i, ran[set][i]);
    cr_expect(ran[0][0] == convolutions, "the scalar engine has not run");
}
