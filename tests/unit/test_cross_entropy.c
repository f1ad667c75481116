/* Fused cross-entropy gives the same bytes as its operators run one by one. */
#include "hostile_modes.h"
#include "repops/fused.h"
#include "repops/tools/op_data.h"
#include "repops/op_reduce.h"
#include "repops/op_softmax.h"

#include <criterion/criterion.h>

static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

typedef struct {
    int64_t rows, cols, ignore;
    float *x, *dloss, *loss, *m, *l, *dx;
    int32_t *ids;
} tensors;

/* With `ignores`, every third label is ignored: label 0 for an even seed, -100 for an odd one. */
static tensors make(int64_t rows, int64_t cols, int ignores, uint64_t seed, data_class class) {
    tensors t = {.rows = rows, .cols = cols, .ignore = RO_IGNORE_NONE};
    if (ignores)
        t.ignore = seed % 2 ? -100 : 0;
    t.x = malloc((size_t)(rows * cols) * 4), t.dx = malloc((size_t)(rows * cols) * 4);
    float **const row[] = {&t.dloss, &t.loss, &t.m, &t.l};
    for (int i = 0; i < 4; i++)
        *row[i] = malloc((size_t)rows * 4);
    t.ids = malloc((size_t)rows * 4);
    for (int64_t e = 0; e < rows * cols; e++)
        ((uint32_t *)t.x)[e] = case_f32(case_word(seed, 0, e), class);
    for (int64_t r = 0; r < rows; r++) {
        ((uint32_t *)t.dloss)[r] = case_f32(case_word(seed, 1, r), class);
        t.ids[r] = ignores && r % 3 == 1
                       ? (int32_t)t.ignore
                       : (int32_t)(case_word(seed, 2, r) % (uint64_t)(cols + 2)) - 1;
    }
    return t;
}

static void drop(tensors *t) {
    void *all[] = {t->x, t->dloss, t->loss, t->m, t->l, t->dx, t->ids};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static void node(ro_ctx *ctx, int op, int64_t cols, int64_t block, const ro_shape *in, int count,
                 const void *const *data, ro_shape out, void *output) {
    ro_call call = {op, count, {cols, block}, in, out};
    char why[200] = "";
    cr_assert(ro_infer(&call, why, sizeof why) == RO_OK, "%s", why);
    cr_assert(ro_run(ctx, &call, data, output) == RO_OK);
}

/* Applies all levels of the sum R and writes the result to `out`. */
static void reduce(ro_ctx *ctx, int op, int next, const tensors *t, const float *second,
                   float *out) {
    int64_t left = t->cols;
    ro_shape in[2] = {{RO_F32, 2, {t->rows, left}}, {RO_F32, 1, {t->rows}}};
    float *from = t->x;
    do {
        const int64_t block = 1024, blocks = left > block ? (left + block - 1) / block : 1;
        const ro_shape shape = {RO_F32, 2, {t->rows, blocks}};
        float *to = malloc((size_t)(t->rows * blocks) * 4);
        node(ctx, op, left, block, in, op == RO_OP_REDUCE_EXPSUM ? 2 : 1,
             (const void *[]){from, second}, shape, to);
        if (from != t->x)
            free(from);
        from = to, left = blocks, op = next, in[0] = shape;
    } while (left > 1);
    memcpy(out, from, (size_t)t->rows * 4);
    free(from);
}

static void run_nodes(ro_ctx *ctx, tensors *t) {
    const ro_shape row = {RO_F32, 1, {t->rows}}, ids = {RO_I32, 1, {t->rows}};
    const ro_shape x = {RO_F32, 2, {t->rows, t->cols}};
    const ro_shape in[] = {x, row, row, ids, row};
    const void *const data[] = {t->x, t->m, t->l, t->ids, t->dloss};
    reduce(ctx, RO_OP_REDUCE_MAX, RO_OP_REDUCE_MAX, t, NULL, t->m);
    reduce(ctx, RO_OP_REDUCE_EXPSUM, RO_OP_REDUCE_SUM, t, t->m, t->l);
    const int ignores = t->ignore != RO_IGNORE_NONE;
    const int64_t ignore = ignores ? t->ignore : 0;
    node(ctx, ignores ? RO_OP_XENT_IGNORE : RO_OP_XENT, ignore, 0, in, 4, data, row, t->loss);
    node(ctx, ignores ? RO_OP_XENT_IGNORE_GRAD : RO_OP_XENT_GRAD, ignore, 0, in, 5, data, x, t->dx);
}

static void expect_same(const void *got, const void *want, int64_t count, const char *name,
                        const tensors *t, const char *backend) {
    cr_expect(memcmp(got, want, (size_t)count * 4) == 0, "%s of %lld x %lld on %s", name,
              (long long)t->rows, (long long)t->cols, backend);
}

static void compare(ro_ctx *ctx, const tensors *t) {
    const char *backend = ro_ctx_backend(ctx);
    const int64_t count = t->rows * t->cols;
    float *m = malloc((size_t)t->rows * 4), *l = malloc((size_t)t->rows * 4);
    float *loss = malloc((size_t)t->rows * 4), *dx = malloc((size_t)count * 4);
    cr_assert(ro_cross_entropy(ctx, t->rows, t->cols, t->x, t->ids, t->ignore, t->dloss, loss, m, l,
                               dx) == RO_OK);
    expect_same(m, t->m, t->rows, "m", t, backend);
    expect_same(l, t->l, t->rows, "l", t, backend);
    expect_same(loss, t->loss, t->rows, "loss", t, backend);
    expect_same(dx, t->dx, count, "dx", t, backend);
    memcpy(dx, t->x, (size_t)count * 4); /* in place */
    memset(loss, 0, (size_t)t->rows * 4);
    cr_assert(ro_cross_entropy(ctx, t->rows, t->cols, dx, t->ids, t->ignore, t->dloss, loss, NULL,
                               NULL, dx) == RO_OK);
    expect_same(dx, t->dx, count, "dx in place", t, backend);
    expect_same(loss, t->loss, t->rows, "loss", t, backend);
    memset(loss, 0, (size_t)t->rows * 4); /* without a gradient */
    cr_assert(ro_cross_entropy(ctx, t->rows, t->cols, t->x, t->ids, t->ignore, NULL, loss, NULL, l,
                               NULL) == RO_OK);
    expect_same(loss, t->loss, t->rows, "loss alone", t, backend);
    free(m), free(l), free(loss), free(dx);
}

static void check(int64_t rows, int64_t cols, int ignores, uint64_t seed, data_class class) {
    tensors t = make(rows, cols, ignores, seed, class);
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ctx) ==
              RO_OK);
    run_nodes(ctx, &t);
    ro_ctx_destroy(ctx);
    for (int b = 0; b < BACKENDS; b++) {
        if (ro_ctx_create(
                &(ro_options){.size = sizeof(ro_options), .backend = backends[b], .threads = 1 + b},
                &ctx) != RO_OK)
            continue;
        compare(ctx, &t);
        ro_ctx_destroy(ctx);
    }
    drop(&t);
}

Test(cross_entropy_fused, has_the_bytes_of_its_nodes) {
    static const int64_t cols[] = {1,    2,    7,    127,  128,  129,  1000, 1023,
                                   1024, 1025, 2047, 2048, 2049, 3000, 50257};
    for (size_t i = 0; i < sizeof cols / sizeof cols[0]; i++)
        for (int ignores = 0; ignores < 2; ignores++)
            check(i % 3 ? 5 : 40, cols[i], ignores, i, DATA_NORMAL);
    check(0, 5, 0, 75, DATA_NORMAL);
    check(3, 0, 0, 76, DATA_NORMAL);
    check(3, 0, 1, 77, DATA_NORMAL);
    check(1, RO_CROSS_ENTROPY_COLS_MAX, 0, 77, DATA_NORMAL);
    check(1, 1024 * 100 + 5, 0, 78, DATA_NORMAL);
}

Test(cross_entropy_fused, special_values_stay_where_the_nodes_leave_them) {
    for (int class = 0; class < DATA_END; class ++)
        for (int64_t cols = 3; cols < 3000; cols = 5 * cols + 1)
            for (int ignores = 0; ignores < 2; ignores++)
                check(30, cols, ignores, (uint64_t)(100 * class) + (uint64_t)cols,
                      (data_class) class);
}

#ifdef HOSTILE
Test(cross_entropy_fused, modes_of_the_caller_do_not_show) {
    for (int b = 0; b < 2 * BACKENDS; b++) {
        const ro_options options = {
            .size = sizeof options, .backend = backends[b / 2], .threads = 2};
        tensors t = make(40, 1030, b / 2 % 2, (uint64_t)b, b & 1 ? DATA_NORMAL : DATA_TINY);
        ro_ctx *ctx;
        if (ro_ctx_create(&options, &ctx) == RO_OK) {
            run_nodes(ctx, &t);
            const uint64_t before = ro_fp_read();
            ro_fp_write(HOSTILE);
            compare(ctx, &t);
            const uint64_t after = ro_fp_read();
            ro_fp_write(before);
            cr_expect((after | RO_FP_STICKY) == (HOSTILE | RO_FP_STICKY), "modes are now %x",
                      (unsigned)after);
        }
        ro_ctx_destroy(ctx);
        drop(&t);
    }
}
#endif

Test(cross_entropy_fused, impossible_sizes_are_refused_with_a_sentence) {
    float x = 0, y;
    int32_t id = 0;
    ro_ctx *ctx;
    cr_assert(ro_ctx_create(NULL, &ctx) == RO_OK);
    cr_expect(ro_cross_entropy(ctx, -1, 1, &x, &id, RO_IGNORE_NONE, NULL, &y, NULL, NULL, NULL) ==
              RO_ERR_ARG);
    cr_expect(ro_cross_entropy(ctx, INT64_MAX, 2, &x, &id, RO_IGNORE_NONE, NULL, &y, NULL, NULL,
                               NULL) == RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "rows and cols must be"));
    cr_expect(ro_cross_entropy(ctx, 1, 1 + RO_CROSS_ENTROPY_COLS_MAX, &x, &id, RO_IGNORE_NONE, NULL,
                               &y, NULL, NULL, NULL) == RO_ERR_UNSUPPORTED);
    cr_expect(strstr(ro_ctx_error(ctx), "cols must be at most 1048576"));
    cr_expect(ro_cross_entropy(ctx, 1, 1, &x, &id, RO_IGNORE_NONE, NULL, &y, NULL, NULL, &x) ==
              RO_ERR_ARG);
    cr_expect(strstr(ro_ctx_error(ctx), "dx needs dloss"));
    ro_ctx_destroy(ctx);
}
