/* Every kernel of a product by itself (repops/cpu/gemm/gemm.c): which kernel takes a shape, that
 * its bits are the specified ones, and that it needs no more memory than it says. */
#define RO_ISA        scalar
#define RO_ISA_scalar 1
#include "repops/cpu/gemm/gemm_kernel.h"

#include "repops/src/half.h"
#include "tests/unit/op_cases.h"

#include <criterion/criterion.h>
#include <stdio.h>

typedef const gemm_kernel *const kernel_tables[2][GEMM_KERNELS_MOST];
extern kernel_tables ro_gemm_kernels_avx2, ro_gemm_kernels_avx512, ro_gemm_kernels_neon;

static const struct {
    const char *backend;
    kernel_tables *kernels;
} sets[] = {
    {"scalar", &ro_gemm_kernels_scalar},
#if defined(__x86_64__)
    {"avx2", &ro_gemm_kernels_avx2},
    {"avx512", &ro_gemm_kernels_avx512},
#elif defined(__aarch64__)
    {"neon", &ro_gemm_kernels_neon},
#endif
};
enum { SETS = sizeof sets / sizeof sets[0], RANDOM = 120 };

static bool machine_has(const char *backend) {
    const ro_options options = {.size = sizeof options, .threads = 1, .backend = backend};
    ro_ctx *ctx = NULL;
    const bool has = ro_ctx_create(&options, &ctx) == RO_OK;
    ro_ctx_destroy(ctx);
    return has;
}

/* ---- products ---- */

typedef struct {
    const char *kernel; /* NULL: any */
    int64_t m, n, k;
    int trans_a, trans_b, dtype;
    ro_mask mask;
    int64_t window;
    float beta;
    int ends; /* whether a bias and an activation follow */
} shape;

/* All instruction sets choose the same kernel. */
static const shape shapes[] = {
    {.kernel = "small", .m = 20, .n = 20, .k = 16},
    {.kernel = "small", .m = 20, .n = 20, .k = 256, .ends = 1},
    {.kernel = "small", .m = 5, .n = 33, .k = 77, .beta = 0.5f},
    {.kernel = "windowed", .m = 40, .n = 20, .k = 300, .mask = RO_MASK_UPTO_ROW, .window = 30},
    {.kernel = "windowed", .m = 40, .n = 20, .k = 700, .mask = RO_MASK_FROM_ROW, .window = 290},
    {.kernel = "chunks", .m = 1, .n = 1, .k = 257},
    {.kernel = "chunks", .m = 1, .n = 1, .k = 4100, .trans_a = 1, .beta = -1.0f},
    {.kernel = "chunks", .m = 2, .n = 2, .k = 300, .trans_b = 1, .ends = 1},
    {.kernel = "dots", .m = 1, .n = 50, .k = 300, .trans_b = 1},
    {.kernel = "dots", .m = 4, .n = 50, .k = 300, .trans_a = 1, .trans_b = 1, .ends = 1},
    {.kernel = "dots", .m = 50, .n = 2, .k = 300, .beta = 2.0f},
    {.kernel = "turned", .m = 30, .n = 30, .k = 70, .trans_b = 1},
    {.kernel = "turned", .m = 30, .n = 30, .k = 256, .trans_b = 1, .beta = 3.0f},
    {.kernel = "sweep", .m = 1, .n = 600, .k = 300, .ends = 1},
    {.kernel = "sweep", .m = 600, .n = 1, .k = 300, .trans_a = 1, .ends = 1},
    {.kernel = "blocks", .m = 100, .n = 100, .k = 600},
    {.kernel = "blocks", .m = 100, .n = 40, .k = 600, .trans_a = 1, .trans_b = 1, .ends = 1},
    {.kernel = "blocks", .m = 40, .n = 40, .k = 1100, .beta = 0.5f},
    {.kernel = "blocks", .m = 40, .n = 40, .k = 300, .mask = RO_MASK_UPTO_ROW},
    {.kernel = "blocks", .m = 8, .n = 8, .k = 0, .ends = 1},
    {.kernel = "blocks", .m = 60, .n = 40, .k = 300, .dtype = RO_BF16},
    {.kernel = "widened", .m = 20, .n = 40, .k = 600, .dtype = RO_F16},
    {.kernel = "widened", .m = 9, .n = 40, .k = 600, .trans_b = 1, .dtype = RO_BF16},
    {.kernel = "widened", .m = 9, .n = 9, .k = 300, .dtype = RO_BF16, .mask = RO_MASK_FROM_ROW},
};

/* Shapes whose kernels exist only for instruction sets with vectors. */
static const shape vector_shapes[] = {
    {.kernel = "dots of halves", .m = 3, .n = 50, .k = 300, .trans_b = 1, .dtype = RO_BF16},
    {.kernel = "sweep of halves", .m = 5, .n = 600, .k = 300, .dtype = RO_F16},
};

typedef struct {
    shape s;
    gemm g;
    float *a, *b, *c, *was, *y, *bias; /* b is widened to f32 */
    uint16_t *words;
} product;

static float *numbers(int64_t count, uint64_t seed) {
    float *x = malloc((size_t)(count + 1) * sizeof *x);
    for (int64_t i = 0; x && i < count; i++)
        x[i] = (float)(int32_t)(uint32_t)case_word(seed, 1, i) * 0x1p-31f;
    return x;
}

static product product_of(const shape *s, uint64_t seed) {
    product p = {.s = *s, .g = {.m = s->m, .n = s->n, .k = s->k, .chunk = RO_DOT_CHUNK}};
    p.a = numbers(s->m * s->k, seed), p.b = numbers(s->n * s->k, seed + 1);
    p.c = numbers(s->m * s->n, seed + 2), p.was = numbers(s->m * s->n, seed + 2);
    p.bias = numbers(s->n, seed + 3), p.y = numbers(s->m * s->n, seed + 4);
    p.words = malloc((size_t)(s->n * s->k + 1) * sizeof *p.words);
    for (int64_t i = 0; s->dtype && i < s->n * s->k; i++) {
        p.words[i] = s->dtype == RO_F16 ? ro_to_f16(p.b[i]) : ro_to_bf16(p.b[i]);
        p.b[i] = s->dtype == RO_F16 ? ro_from_f16(p.words[i]) : ro_from_bf16(p.words[i]);
    }
    p.g.a = p.a, p.g.a_row = s->trans_a ? 1 : s->k, p.g.a_col = s->trans_a ? s->m : 1;
    p.g.b_row = s->trans_b ? 1 : s->n, p.g.b_col = s->trans_b ? s->k : 1;
    p.g.c = p.c, p.g.c_row = s->n, p.g.mask = s->mask, p.g.window = s->window;
    p.g.alpha = 0.75f, p.g.beta = s->beta;
    if (s->dtype)
        p.g.narrow = (narrow_matrix){p.words, s->dtype};
    else
        p.g.b = p.b;
    if (s->ends)
        p.g.y = p.y, p.g.bias = p.bias, p.g.activation = RO_ACTIVATION_RELU;
    return p;
}

static void release(product *p) {
    free(p->a), free(p->b), free(p->c), free(p->was), free(p->y), free(p->bias), free(p->words);
}

/* The element (i, j) by the definition of SPEC.md section 3.1. */
static float element(const product *p, int64_t i, int64_t j) {
    const gemm *g = &p->g;
    const ro_range r = ro_masked_range(g->mask, g->window, i, g->k);
    float total = 0.0f;
    for (int64_t from = 0; from < g->k; from += g->chunk) {
        float sum = 0.0f;
        for (int64_t k = from; k < min_i64(from + g->chunk, g->k); k++)
            if (k >= r.first && k < r.last)
                sum = ro_fma(g->a[i * g->a_row + k * g->a_col], p->b[k * g->b_row + j * g->b_col],
                             sum);
        total = total + sum;
    }
    total = total * g->alpha;
    return ro_canon(g->beta == 0 ? total : ro_fma(g->beta, p->was[i * g->c_row + j], total));
}

static void expect_results(const product *p, const char *who) {
    const shape *s = &p->s;
    for (int64_t e = 0; e < s->m * s->n; e++) {
        const float z = element(p, e / s->n, e % s->n);
        const float biased = ro_canon(z + p->bias[e % s->n]), c = s->ends ? biased : z;
        cr_assert(ro_to_bits(p->c[e]) == ro_to_bits(c), "%s, %dx%dx%d, element %d: %08x, not %08x",
                  who, (int)s->m, (int)s->n, (int)s->k, (int)e, ro_to_bits(p->c[e]), ro_to_bits(c));
        cr_assert(!s->ends || p->y[e] == (c > 0 ? c : 0), "%s: y of element %d", who, (int)e);
    }
}

/* ---- kernels ---- */

enum { GUARD = 64 };

/* Runs the kernel with a workspace of NaNs, and checks that it leaves the numbers behind it
 * unchanged. */
static void run_guarded(const gemm_kernel *kernel, const gemm *g, const char *who) {
    const int64_t size = kernel->workspace ? kernel->workspace(g) : 0;
    cr_assert(size >= 0, "%s", who);
    float *workspace =
        aligned_alloc(64, (size_t)ceil_div(size + GUARD, 16) * 16 * sizeof *workspace);
    cr_assert(workspace);
    memset(workspace, 0xff, (size_t)size * sizeof *workspace);
    for (int i = 0; i < GUARD; i++)
        workspace[size + i] = 1.0f;
    run_kernel(kernel, g, workspace);
    for (int i = 0; i < GUARD; i++)
        cr_assert(workspace[size + i] == 1.0f, "%s needs more than %d floats", who, (int)size);
    free(workspace);
}

/* Returns the number of the kernel in its table. */
static int check_product(int set, const shape *s, uint64_t seed) {
    product p = product_of(s, seed);
    const gemm_kernel *const *table = (*sets[set].kernels)[s->dtype != 0];
    int number = 0;
    while (!table[number]->takes(&p.g))
        number++;
    char who[80];
    snprintf(who, sizeof who, "%s, %s", sets[set].backend, table[number]->name);
    cr_assert(!s->kernel || strcmp(s->kernel, table[number]->name) == 0,
              "%s computes %dx%dx%d, which is for %s", who, (int)s->m, (int)s->n, (int)s->k,
              s->kernel);
    run_guarded(table[number], &p.g, who);
    expect_results(&p, who);
    release(&p);
    return number;
}

static shape random_shape(uint64_t seed) {
    dice d = {.seed = seed};
    shape s = {
        .m = roll_dim(&d, roll(&d, 2) ? 5 : 70), .n = roll_dim(&d, 70), .k = roll_dim(&d, 600)};
    s.trans_a = (int)roll(&d, 2), s.trans_b = (int)roll(&d, 2);
    s.mask = roll(&d, 3) ? RO_MASK_NONE : (ro_mask)(1 + roll(&d, 2));
    s.window = s.mask != RO_MASK_NONE && roll(&d, 2) ? 1 + roll(&d, 300) : 0;
    s.dtype = roll(&d, 3) ? 0 : roll(&d, 2) ? RO_BF16 : RO_F16;
    s.beta = s.mask == RO_MASK_NONE && !s.dtype && roll(&d, 4) == 0 ? 0.5f : 0.0f;
    s.ends = s.mask == RO_MASK_NONE && !s.dtype && s.beta == 0 && roll(&d, 2) == 0;
    return s;
}

Test(gemm_kernels, each_computes_what_it_is_for) {
    for (int set = 0; set < SETS; set++) {
        const bool scalar = strcmp(sets[set].backend, "scalar") == 0;
        int chosen[2][GEMM_KERNELS_MOST] = {{0}};
        if (!machine_has(sets[set].backend))
            continue;
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            chosen[shapes[i].dtype != 0][check_product(set, &shapes[i], i)]++;
        for (size_t i = 0; !scalar && i < sizeof vector_shapes / sizeof vector_shapes[0]; i++)
            chosen[1][check_product(set, &vector_shapes[i], i)]++;
        for (int narrow = 0; narrow < 2; narrow++)
            for (int i = 0; (*sets[set].kernels)[narrow][i]; i++) {
                const char *name = (*sets[set].kernels)[narrow][i]->name;
                cr_assert(chosen[narrow][i] || strstr(name, "halves"), "%s: no shape for %s",
                          sets[set].backend, name);
            }
    }
}

Test(gemm_kernels, any_shape) {
    for (int set = 0; set < SETS; set++)
        for (uint64_t seed = 0; machine_has(sets[set].backend) && seed < RANDOM; seed++) {
            const shape s = random_shape(seed);
            check_product(set, &s, seed);
        }
}
