/* Products with few rows, as in decoding, and with many, as for a prompt. An operand b of 16-bit
 * elements gives the same bits as the same values in f32, and every instruction set those of the
 * scalar code. */
#include "repops/src/half.h"
#include "repops/tools/op_data.h"
#include "repops/op_product.h"

#include <criterion/criterion.h>

enum { FEW_ROWS = 9, MOST_ROWS = 800, MOST_K = 515, MOST_N = 4500, MOST_RESULTS = 100000 };

static float a[MOST_ROWS * MOST_K], b[MOST_K * MOST_N], out[MOST_RESULTS], want[MOST_RESULTS];
static uint16_t half[MOST_K * MOST_N];

typedef struct {
    int64_t m, k, n;
    int trans;
    float alpha;
} product;

static void multiply(ro_ctx *ctx, const product *p, int dtype, const void *right, float *to) {
    cr_assert(p->m <= MOST_ROWS && p->k <= MOST_K && p->n <= MOST_N && p->m * p->n <= MOST_RESULTS);
    const int turned = p->trans & 2;
    ro_shape in[] = {{RO_F32, 2, {p->m, p->k}},
                     {dtype, 2, {turned ? p->n : p->k, turned ? p->k : p->n}}};
    ro_call call = {RO_OP_MATMUL, 2, {0}, in, {0}};
    const void *const data[] = {a, right};
    char why[200];
    call.attr[RO_MATMUL_TRANS] = p->trans;
    call.attr[RO_MATMUL_ALPHA] = ro_attr_f32(p->alpha);
    call.attr[RO_MATMUL_CHUNK] = RO_DOT_CHUNK;
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    cr_assert(ro_run(ctx, &call, data, to) == RO_OK, "%s", ro_ctx_error(ctx));
}

/* Every fourth product has NaNs and infinities. */
static void fill(const product *p, int dtype, uint64_t seed) {
    const data_class class = seed % 4 ? DATA_NORMAL : DATA_RARE;
    for (int64_t i = 0; i < p->m * p->k; i++) {
        const uint32_t bits = case_f32(case_word(seed, 0, i), class);
        memcpy(&a[i], &bits, sizeof bits);
    }
    for (int64_t i = 0; i < p->k * p->n; i++) {
        half[i] = case_half(case_word(seed, 1, i), class, dtype);
        b[i] = ro_number_of(dtype, half[i]);
    }
}

static void expect_alike(const product *p, const char *backend, const char *of) {
    for (int64_t i = 0; i < p->m * p->n; i++)
        cr_assert(memcmp(&out[i], &want[i], sizeof out[i]) == 0,
                  "%s, %s, [%lld, %lld] by [%lld, %lld], trans %d: element %lld is %a, expected %a",
                  backend, of, (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n,
                  p->trans, (long long)i, (double)out[i], (double)want[i]);
}

/* Checks a product with one thread and with two, each of which computes some of the columns. */
static void check_product(const product *p, int dtype, uint64_t seed) {
    static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
    fill(p, dtype, seed);
    for (size_t i = 0; i < 2 * sizeof backends / sizeof backends[0]; i++) {
        const char *name = backends[i / 2];
        const ro_options options = {
            .size = sizeof options, .threads = 1 + (int)(i % 2), .backend = name};
        ro_ctx *ctx;
        if (ro_ctx_create(&options, &ctx) != RO_OK)
            continue; /* this machine lacks the backend */
        multiply(ctx, p, RO_F32, b, i == 0 ? want : out);
        if (i > 0)
            expect_alike(p, name, "f32");
        multiply(ctx, p, dtype, half, out);
        expect_alike(p, name, ro_dtype_name(dtype));
        ro_ctx_destroy(ctx);
    }
}

static void check_rows(int64_t m, uint64_t seed) {
    static const int64_t lengths[] = {1, 7, 256, 257, 515};
    static const int64_t columns[] = {5, 17, 511, 512, 777, 1024, 2049, 4097, 4500};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        seed++;
        const product p = {m, lengths[seed % 5], columns[i], seed % 3 ? 0 : 2,
                           seed % 2 ? 1.0f : 0.3f};
        check_product(&p, seed % 2 ? RO_BF16 : RO_F16, seed);
    }
}

Test(few_rows, one_row) {
    for (uint64_t seed = 0; seed < 40; seed += 10)
        check_rows(1, seed);
}

Test(few_rows, up_to_nine) {
    for (int64_t m = 2; m <= FEW_ROWS; m++)
        check_rows(m, (uint64_t)m * 1000);
}

/* From 29 rows on, panels of b are packed. With 800 rows, two blocks of rows share them. */
Test(few_rows, and_more) {
    static const int64_t rows[] = {10, 28, 29, 64, 131, MOST_ROWS}, columns[] = {1, 15, 33, 100};
    static const int64_t lengths[] = {1, 31, 64, 257, 515};
    for (uint64_t i = 0; i < 6 * 4; i++)
        for (uint64_t k = 0; k < 5; k++) {
            const product p = {rows[i / 4], lengths[k], columns[i % 4], (i / 4 + k) % 2 ? 0 : 2,
                               k % 2 ? 1.0f : 0.3f};
            check_product(&p, (i + k) % 2 ? RO_BF16 : RO_F16, 5 * i + k);
        }
}
