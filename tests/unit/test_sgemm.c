/* ro_sgemm and ro_sgemm_batch: their bits against the one-element reference on every backend, what
 * they read and write, and what they refuse. */
#include "op_dice.h"
#include "repops/ref.h"
#include "repops/src/math.h"
#include "repops/op_product.h"
#include "sgemm_product.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { THREADS = 3, CASES = 400, WORK = 400000 };

/* ---- random products ---- */

/* Sizes near the boundaries of tiles, blocks and chunks, few of them large. */
static void roll_sizes(product *p, dice *d) {
    const int64_t most = roll(d, 4) ? 130 : 1100;
    p->m = roll(d, 20) ? roll_dim(d, roll(d, 3) ? most : 16) : 0;
    p->n = roll(d, 20) ? roll_dim(d, roll(d, 3) ? most : 16) : 0;
    p->k = roll(d, 20) ? roll_dim(d, roll(d, 3) ? 1100 : 3000) : 0;
    p->batch = roll(d, 3) ? 1 : roll(d, 6);
    while (p->m * p->n * p->k * p->batch > 40 * WORK)
        p->m = (p->m + 1) / 2, p->n = (p->n + 1) / 2;
}

static float roll_scale(dice *d) {
    const float usual[] = {0.0f, 1.0f, 1.0f, -1.0f, -0.0f, 0.5f, 3.0f};
    return roll(d, 10) ? usual[roll(d, 7)] : ro_from_bits(case_special((uint64_t)roll(d, 65536)));
}

static int64_t roll_ld(dice *d, int64_t width) {
    return (width ? width : 1) + (roll(d, 2) ? 0 : roll(d, 20));
}

static void roll_product(product *p, uint64_t seed) {
    dice d = {.seed = seed};
    *p = (product){.trans_a = (int)roll(&d, 2), .trans_b = (int)roll(&d, 2)};
    roll_sizes(p, &d);
    p->lda = roll_ld(&d, p->trans_a ? p->m : p->k);
    p->ldb = roll_ld(&d, p->trans_b ? p->k : p->n);
    p->ldc = roll_ld(&d, p->n);
    p->stride_a = roll(&d, 4) ? p->lda * (p->trans_a ? p->k : p->m) + roll(&d, 3) : 0;
    p->stride_b = roll(&d, 4) ? p->ldb * (p->trans_b ? p->n : p->k) + roll(&d, 3) : 0;
    p->stride_c = p->ldc * p->m + roll(&d, 3);
    p->alpha = roll_scale(&d);
    p->beta = roll_scale(&d);
    p->class = (data_class)roll(&d, DATA_MASKED);
    product_fill(p, seed);
}

/* Compares element `at` of c with the reference. Elements outside the products must be
 * unchanged. */
static void expect_element(const product *p, int64_t at, const char *where, uint64_t seed) {
    const int64_t i = p->stride_c ? at / p->stride_c : 0;
    const int64_t product_i = i < p->batch ? i : p->batch - 1, left = at - product_i * p->stride_c;
    const int64_t row = left / p->ldc, col = left % p->ldc;
    float want = p->c[at];
    if (p->batch > 0 && row < p->m && col < p->n)
        want = ro_ref_sgemm(p->trans_a, p->trans_b, row, col, p->k, p->alpha,
                            p->a + product_i * p->stride_a, p->lda, p->b + product_i * p->stride_b,
                            p->ldb, p->beta, p->c + product_i * p->stride_c, p->ldc);
    cr_assert(ro_to_bits(want) == ro_to_bits(p->out[at]),
              "%s, case %llu (%lldx%lldx%lld, trans %d%d), product %lld [%lld, %lld]: %08x, "
              "expected %08x",
              where, (unsigned long long)seed, (long long)p->m, (long long)p->n, (long long)p->k,
              p->trans_a, p->trans_b, (long long)product_i, (long long)row, (long long)col,
              ro_to_bits(p->out[at]), ro_to_bits(want));
}

/* Compares all elements, or a sample that has the first and the last. */
static void expect_reference(const product *p, const char *where, uint64_t seed) {
    const int64_t most = 2 + WORK / (p->k + 1);
    for (int64_t i = 0; i < (p->c_count < most ? p->c_count : most); i++) {
        const int64_t random = (int64_t)(case_word(seed, 9, i) % (uint64_t)p->c_count);
        const int64_t at = p->c_count <= most ? i : i < 2 ? i * (p->c_count - 1) : random;
        expect_element(p, at, where, seed);
    }
}

typedef struct {
    ro_ctx *at[BACKENDS][THREADS]; /* NULL: this processor lacks the backend */
} contexts;

static contexts create_contexts(void) {
    contexts c;
    for (int b = 0; b < BACKENDS; b++)
        for (int t = 0; t < THREADS; t++)
            c.at[b][t] = context(backends[b], t + 1);
    return c;
}

static void destroy_contexts(contexts *c) {
    for (int b = 0; b < BACKENDS; b++)
        for (int t = 0; t < THREADS; t++)
            ro_ctx_destroy(c->at[b][t]);
}

/* Checks one product on all contexts, and frees its data. */
static void check_product(const contexts *ctx, product *p, uint64_t seed) {
    float *first = NULL;
    for (int b = 0; b < BACKENDS; b++) {
        for (int t = 0; t < THREADS && ctx->at[b][t]; t++) {
            cr_assert(product_run(ctx->at[b][t], p) == RO_OK, "%s", ro_ctx_error(ctx->at[b][t]));
            if (first && memcmp(first, p->out, (size_t)p->c_count * sizeof(float)) == 0)
                continue;
            expect_reference(p, backends[b], seed);
            cr_assert(!first,
                      "%s with %d threads, case %llu: an element outside the sample differs",
                      backends[b], t + 1, (unsigned long long)seed);
            first = malloc((size_t)p->c_count * sizeof(float));
            memcpy(first, p->out, (size_t)p->c_count * sizeof(float));
        }
    }
    free(first);
    product_free(p);
}

Test(sgemm, has_the_bits_of_the_reference) {
    contexts ctx = create_contexts();
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        product p;
        roll_product(&p, seed);
        check_product(&ctx, &p, seed);
    }
    destroy_contexts(&ctx);
}

/* Few rows, few columns and small matrices have kernels of their own. */
Test(sgemm, every_way_gives_the_bits_of_the_reference) {
    static const int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 15, 16, 28, 29, 36, 37, 75};
    static const int64_t cols[] = {1, 3, 5, 8, 9, 15, 16, 17, 24, 33, 64, 65, 129};
    enum { ROWS = sizeof rows / sizeof rows[0], COLS = sizeof cols / sizeof cols[0] };
    contexts ctx = create_contexts();
    for (int i = 0; i < ROWS * COLS * 8; i++) {
        product p = {.m = rows[i % ROWS], .n = cols[i / ROWS % COLS], .batch = 1, .alpha = 0.75f};
        const int rest = i / ROWS / COLS;
        p.k = rest & 1 ? 19 : 275, p.trans_a = rest >> 1 & 1, p.trans_b = rest >> 2;
        p.lda = p.trans_a ? p.m : p.k, p.ldb = p.trans_b ? p.k : p.n, p.ldc = p.n;
        p.beta = i & 1 ? -1.5f : 0;
        p.class = DATA_RARE;
        cr_assert(product_fill(&p, (uint64_t)i));
        check_product(&ctx, &p, (uint64_t)i);
    }
    destroy_contexts(&ctx);
}

/* If columns of b are half a page apart, or a multiple of that, kernels take fewer of them at a
 * time. */
Test(sgemm, few_rows_with_columns_pages_apart_have_the_bits_of_the_reference) {
    static const int64_t cols[] = {16, 31, 33, 50, 100};
    enum { COLS = sizeof cols / sizeof cols[0], ROWS = 9 };
    contexts ctx = create_contexts();
    for (int i = 0; i < COLS * ROWS * 4; i++) {
        product p = {.m = 1 + i % ROWS, .n = cols[i / ROWS % COLS], .batch = 1, .alpha = 0.75f};
        const int rest = i / ROWS / COLS;
        p.k = rest & 1 ? 512 : 300, p.trans_b = 1;
        p.lda = p.k, p.ldb = rest & 2 ? 1024 : 512, p.ldc = p.n;
        p.class = DATA_RARE;
        cr_assert(product_fill(&p, (uint64_t)i));
        check_product(&ctx, &p, (uint64_t)i);
    }
    destroy_contexts(&ctx);
}

/* Later products of a batch begin at other offsets within a cache line, but the workspace is
 * measured for the first one. */
Test(sgemm, batches_with_odd_strides_have_the_bits_of_the_reference) {
    static const int64_t rows[] = {3, 14, 15, 16, 17}, depths[] = {200, 533}, cols[] = {80, 160};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    contexts ctx = create_contexts();
    for (int i = 0; i < ROWS * 2 * 2 * 4; i++) {
        const int rest = i / ROWS, trans = rest / 4;
        product p = {.m = rows[i % ROWS], .n = cols[rest % 2], .k = depths[rest / 2 % 2]};
        p.batch = 3, p.alpha = 1, p.beta = i & 1 ? 0.5f : 0, p.class = DATA_RARE;
        p.trans_a = trans & 1, p.trans_b = trans >> 1;
        p.lda = p.trans_a ? p.m : p.k, p.ldb = p.trans_b ? p.k : p.n, p.ldc = p.n;
        p.stride_a = p.m * p.k + 1, p.stride_b = p.n * p.k + 1 + i % 7, p.stride_c = p.m * p.n + 3;
        cr_assert(product_fill(&p, (uint64_t)i));
        check_product(&ctx, &p, (uint64_t)i);
    }
    destroy_contexts(&ctx);
}

/* Few rows of a: rows of b up to a page apart or more, from any offset in a cache line. */
Test(sgemm, few_rows_of_any_b_have_the_bits_of_the_reference) {
    static const int64_t rows[] = {1, 1, 2, 3, 4, 5, 6, 8, 14, 16, 20, 28};
    static const int64_t cols[] = {516, 1000, 2100}, steps[] = {1024, 2048, 3072, 528, 1040, 2304};
    static const int64_t depths[] = {261, 523}, over[] = {0, 1, 4, 16, 100};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    contexts ctx = create_contexts();
    for (int i = 0; i < ROWS * 3 * 2 * 2; i++) {
        const int rest = i / ROWS, col = rest % 3;
        product p = {.m = rows[i % ROWS], .n = cols[col], .k = depths[rest / 6]};
        p.batch = 2, p.trans_a = i % 5 == 0;
        p.alpha = i % 3 ? 1 : 0.75f, p.beta = i % 4 ? 0 : -1.5f;
        p.lda = p.trans_a ? p.m : p.k, p.ldb = steps[rest / 3 % 2 * 3 + col], p.ldc = p.n + i % 2;
        p.stride_a = p.m * p.k, p.stride_c = p.m * p.ldc;
        p.stride_b = p.ldb * p.k + over[i % 5];
        p.class = i % 7 == 0 ? DATA_SPECIAL : DATA_RARE;
        cr_assert(product_fill(&p, (uint64_t)i));
        check_product(&ctx, &p, (uint64_t)i);
    }
    destroy_contexts(&ctx);
}

/* The chunks of such products are computed side by side, one in each vector lane. */
Test(sgemm, few_elements_of_any_depth_have_the_bits_of_the_reference) {
    static const int64_t depths[] = {1, 37, 256, 257, 512, 800, 1024, 2048, 4096, 4097, 9000};
    enum { DEPTHS = sizeof depths / sizeof depths[0] };
    contexts ctx = create_contexts();
    for (int i = 0; i < DEPTHS * 4 * 5; i++) {
        product p = {.m = 1, .n = 1, .k = depths[i % DEPTHS], .batch = 1, .alpha = 0.75f};
        const int trans = i / DEPTHS % 4, size = i / DEPTHS / 4;
        p.m = size == 1 ? 4 : size == 2 ? 2 : 1, p.n = size == 2 ? 2 : size == 3 ? 3 : 1;
        p.trans_a = trans & 1, p.trans_b = trans >> 1;
        p.lda = (p.trans_a ? p.m : p.k) + i % 3, p.ldb = (p.trans_b ? p.k : p.n) + i % 2;
        p.ldc = p.n + size, p.beta = size == 4 ? -1.5f : 0;
        p.class = (data_class[]){DATA_NORMAL, DATA_RARE, DATA_WIDE, DATA_TINY}[i % 4];
        cr_assert(product_fill(&p, (uint64_t)i));
        check_product(&ctx, &p, (uint64_t)i);
    }
    destroy_contexts(&ctx);
}

/* ---- the definition of results ---- */

static ro_status dense(ro_ctx *ctx, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                       const float *b, float beta, float *c) {
    return ro_sgemm(ctx, 0, 0, m, n, k, alpha, a, k ? k : 1, b, n ? n : 1, beta, c, n ? n : 1);
}

Test(sgemm, computes_what_blas_does) {
    ro_ctx *ctx = context("cpu", 1);
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 2, 3};
    float c[] = {10, 20, 30, 40};
    cr_assert(dense(ctx, 2, 2, 3, 2, a, b, 0.5f, c) == RO_OK);
    const float want[] = {2 * 7 + 5, 2 * 11 + 10, 2 * 16 + 15, 2 * 23 + 20};
    for (int i = 0; i < 4; i++)
        cr_expect(c[i] == want[i], "%d: %g", i, (double)c[i]);
    /* Column-major operands are exchanged and transposed. */
    float d[4];
    cr_assert(ro_sgemm(ctx, 1, 1, 2, 2, 3, 1, b, 2, a, 3, 0, d, 2) == RO_OK);
    cr_expect(d[0] == 7 && d[1] == 16 && d[2] == 11 && d[3] == 23);
    ro_ctx_destroy(ctx);
}

Test(sgemm, has_the_bits_of_the_operator) {
    ro_ctx *ctx = context("cpu", 2);
    op_case c = {.call = {.op = RO_OP_MATMUL, .input_count = 2}};
    c.call.input = c.in;
    c.call.attr[RO_MATMUL_ALPHA] = ro_attr_f32(0.125f);
    c.call.attr[RO_MATMUL_CHUNK] = RO_DOT_CHUNK;
    c.in[0] = shape2(131, 1100), c.in[1] = shape2(1100, 97);
    cr_assert(ro_infer(&c.call, NULL, 0) == RO_OK);
    case_fill(&c, 11, DATA_RARE);
    cr_assert(ro_run(ctx, &c.call, (const void *const *)c.data, c.out) == RO_OK);
    float *out = malloc(131 * 97 * sizeof *out);
    cr_assert(dense(ctx, 131, 97, 1100, 0.125f, c.data[0], c.data[1], 0, out) == RO_OK);
    cr_expect(memcmp(out, c.out, case_out_bytes(&c)) == 0);
    free(out);
    case_free(&c);
    ro_ctx_destroy(ctx);
}

static void expect_bits(const char *backend, float alpha, float a, float b, float beta, float c,
                        uint32_t want) {
    ro_ctx *ctx = context(backend, 1);
    if (!ctx)
        return;
    float out = c;
    cr_assert(dense(ctx, 1, 1, 1, alpha, &a, &b, beta, &out) == RO_OK);
    cr_expect(ro_to_bits(out) == want, "%s: %g*%g*%g + %g*%g: %08x, expected %08x", backend,
              (double)alpha, (double)a, (double)b, (double)beta, (double)c, ro_to_bits(out), want);
    ro_ctx_destroy(ctx);
}

Test(sgemm, special_values) {
    const float nan = ro_from_bits(0xffc12345), inf = ro_from_bits(0x7f800000);
    const float tiny = ro_from_bits(1);
    for (int i = 0; i < BACKENDS; i++) {
        const char *on = backends[i];
        expect_bits(on, 1, 2, 3, 0, nan, 0x40c00000);      /* beta = 0: c is not read */
        expect_bits(on, 1, 2, 3, -0.0f, nan, 0x40c00000);  /* -0 counts as zero */
        expect_bits(on, 1, 2, 3, 1, nan, RO_QNAN_BITS);    /* canonical */
        expect_bits(on, 1, nan, 3, 0, 1, RO_QNAN_BITS);    /* canonical */
        expect_bits(on, 0, nan, inf, 1, 5, 0x40a00000);    /* alpha = 0: a, b are not read */
        expect_bits(on, 0, nan, inf, 0, nan, 0);           /* alpha = beta = 0: nothing is read */
        expect_bits(on, 1, inf, 0, 0, 0, RO_QNAN_BITS);    /* inf * 0 */
        expect_bits(on, 1, inf, 1, 1, -inf, RO_QNAN_BITS); /* inf - inf */
        expect_bits(on, 1, inf, 1, 1, 7, 0x7f800000);      /* inf */
        expect_bits(on, 1, -0.0f, 1, 0, 7, 0);             /* a dot product is never -0 */
        expect_bits(on, -1, 0, 1, 0, 7, 0x80000000);       /* but -1 * +0 is */
        expect_bits(on, -1, 0, 1, 1, -0.0f, 0x80000000);   /* -0 + -0 */
        expect_bits(on, 1, tiny, 1, 1, tiny, 2);           /* subnormal numbers are kept */
        expect_bits(on, 1, 0x1p-75f, 0x1p-74f, 0, 0, 1);   /* and can be results */
        expect_bits(on, nan, 1, 1, 0, 1, RO_QNAN_BITS);    /* alpha */
        expect_bits(on, 1, 1, 1, nan, 1, RO_QNAN_BITS);    /* beta */
        expect_bits(on, 1, 1, -1, 1 + 0x1p-12f, 1 + 0x1p-12f, /* beta * c + t is rounded once */
                    ro_to_bits(0x1.0008p-11f));
    }
}

Test(sgemm, empty_products) {
    ro_ctx *ctx = context("cpu", 2);
    float c[4] = {1, 2, 3, 4};
    cr_expect(dense(ctx, 0, 2, 3, 1, NULL, NULL, 0, NULL) == RO_OK);
    cr_expect(dense(ctx, 2, 0, 3, 1, NULL, NULL, 0, NULL) == RO_OK);
    cr_expect(dense(ctx, 2, 2, 0, 1, NULL, NULL, 2, c) == RO_OK);
    cr_expect(c[0] == 2 && c[3] == 8, "k = 0: beta * c");
    cr_expect(dense(ctx, 2, 2, 3, 0, NULL, NULL, 2, c) == RO_OK);
    cr_expect(c[0] == 4 && c[3] == 16, "alpha = 0: beta * c");
    cr_expect(dense(ctx, 2, 2, 0, 1, NULL, NULL, 0, c) == RO_OK);
    cr_expect(c[0] == 0 && c[3] == 0, "k = 0, beta = 0: zeros");
    cr_expect(ro_sgemm_batch(ctx, 0, 0, 2, 2, 2, 1, NULL, 2, NULL, 2, 0, NULL, 2, 4, 4, 4, 0) ==
              RO_OK);
    ro_ctx_destroy(ctx);
}

/* ---- refusals ---- */

static void expect_refused(const product *p, const char *name) {
    ro_ctx *ctx = context("cpu", 1);
    cr_expect(ro_sgemm_batch(ctx, p->trans_a, p->trans_b, p->m, p->n, p->k, 1, NULL, p->lda, NULL,
                             p->ldb, 0, NULL, p->ldc, p->stride_a, p->stride_b, p->stride_c,
                             p->batch) == RO_ERR_ARG,
              "%s", name);
    cr_expect(strstr(ro_ctx_error(ctx), name) != NULL, "%s", ro_ctx_error(ctx));
    ro_ctx_destroy(ctx);
}

Test(sgemm, impossible_arguments_are_refused) {
    const product ok = {.m = 3, .n = 4, .k = 5, .lda = 5, .ldb = 4, .ldc = 4, .batch = 1};
    product p;
    p = ok, p.m = -1, expect_refused(&p, "`m`");
    p = ok, p.n = -1, expect_refused(&p, "`n`");
    p = ok, p.k = -1, expect_refused(&p, "`k`");
    p = ok, p.m = INT64_MAX, expect_refused(&p, "`m`");
    p = ok, p.lda = 4, expect_refused(&p, "`lda`");
    p = ok, p.trans_a = 1, p.lda = 2, expect_refused(&p, "`lda`");
    p = ok, p.ldb = 3, expect_refused(&p, "`ldb`");
    p = ok, p.trans_b = 1, expect_refused(&p, "`ldb`");
    p = ok, p.ldc = 3, expect_refused(&p, "`ldc`");
    p = ok, p.k = 0, p.lda = 0, expect_refused(&p, "`lda`");
    p = ok, p.stride_a = -1, expect_refused(&p, "`stride_a`");
    p = ok, p.stride_b = -1, expect_refused(&p, "`stride_b`");
    p = ok, p.stride_c = -1, expect_refused(&p, "`stride_c`");
    p = ok, p.batch = -1, expect_refused(&p, "`batch`");
}

static void *no_memory(void *user, size_t size, size_t alignment) {
    int *left = user;
    return (*left)-- > 0 ? aligned_alloc(alignment, (size + 63) / 64 * 64) : NULL;
}

static void give_back(void *user, void *block) {
    (void)user;
    free(block);
}

Test(sgemm, lack_of_memory_is_a_status) {
    int left = 1;
    ro_ctx *ctx;
    const ro_options options = {
        .size = sizeof options, .threads = 1, .alloc = no_memory, .free = give_back, .user = &left};
    cr_assert(ro_ctx_create(&options, &ctx) == RO_OK);
    product p = {.m = 300, .n = 300, .k = 300, .lda = 300, .ldb = 300, .ldc = 300, .batch = 1};
    p.alpha = 1;
    product_fill(&p, 3);
    cr_expect(product_run(ctx, &p) == RO_ERR_MEMORY);
    cr_expect(memcmp(p.c, p.out, (size_t)p.c_count * sizeof(float)) == 0, "c is as it was");
    product_free(&p);
    ro_ctx_destroy(ctx);
}

#if defined(__x86_64__)
static void call_under(unsigned modes, ro_ctx *ctx, const product *p) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(modes);
    const ro_status status = product_run(ctx, p);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    cr_assert(status == RO_OK);
    cr_expect(after == modes, "mode is %04x", after);
}

Test(sgemm, modes_of_the_caller_do_not_show) {
    const unsigned hostile = 0x1f80 | 0x8000 | 0x0040 | 0x4000; /* FTZ, DAZ, rounding up */
    for (int i = 0; i < 4 * BACKENDS; i++) {
        ro_ctx *ctx = context(backends[i / 4], 2);
        product p = {.m = 70, .n = 90, .k = 300, .lda = 300, .ldb = 90, .ldc = 90, .batch = 1};
        p.class = DATA_WIDE;
        p.alpha = i & 1 ? 0x1.8p-130f : 0.3f, p.beta = i & 2 ? 0x1.8p-130f : 0.7f;
        product_fill(&p, (uint64_t)i);
        float *want = malloc((size_t)p.c_count * sizeof(float));
        if (ctx) {
            cr_assert(product_run(ctx, &p) == RO_OK);
            memcpy(want, p.out, (size_t)p.c_count * sizeof(float));
            call_under(hostile, ctx, &p);
            cr_expect(memcmp(want, p.out, (size_t)p.c_count * sizeof(float)) == 0, "case %d", i);
        }
        free(want);
        product_free(&p);
        ro_ctx_destroy(ctx);
    }
}
#endif
