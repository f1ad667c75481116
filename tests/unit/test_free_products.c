/* Free products and convolutions (SPEC.md section 14): values lie within their bounds of the exact
 * ones, a report of one profile makes others give the same result, and profiles differ. */
#include <criterion/criterion.h>

#include "each_operator.h"
#include "free_products_exact.h"
#include "repops/free.h"
#include "repops/op_attention.h"
#include "repops/op_image.h"
#include "repops/op_product.h"

enum { CASES = 36, MOST_CHECKED = 1500, CONTEXTS = 3 };

/* User-defined profiles, to test more values of each parameter than the built-in ones have. */
static const ro_profile more[] = {
    {sizeof(ro_profile), "chain", .lanes = 1, .split = 1024, .pairwise = 1, .descending = 1},
    {sizeof(ro_profile), "pieces", .lanes = 4, .split = 192, .contract = 1},
    {sizeof(ro_profile), "long", .lanes = 2, .split = 1024, .contract = 1, .descending = 1},
    {sizeof(ro_profile), "single", .lanes = 1, .split = 64, .contract = 1},
};
enum { BUILT_IN = 4, PROFILES = BUILT_IN + sizeof more / sizeof more[0] };

static const ro_profile *profile(int i) {
    return i < BUILT_IN ? ro_profile_at(i) : &more[i - BUILT_IN];
}

static ro_ctx *context(int i) {
    static ro_ctx *ctx[CONTEXTS];
    const ro_options options[CONTEXTS] = {
        {.size = sizeof *options, .threads = 3},
        {.size = sizeof *options, .threads = 1, .backend = "scalar"},
        {.size = sizeof *options, .threads = 2, .backend = "avx2"}};
    if (!ctx[i] && ro_ctx_create(&options[i], &ctx[i]) != RO_OK)
        cr_assert(ro_ctx_create(&options[0], &ctx[i]) == RO_OK);
    return ctx[i];
}

static ro_free_report run(int ctx, int p, const ro_rounding *r, const op_case *c, void *out) {
    ro_free_report report = {.size = sizeof report};
    const ro_status status = ro_free_run(context(ctx), profile(p), r, &c->call,
                                         (const void *const *)c->data, out, &report);
    cr_assert(status == RO_OK, "%s", ro_ctx_error(context(ctx)));
    return report;
}

typedef struct {
    op_case c;
    uint64_t seed;
    int64_t n;
    const char *name;
    double *value, *bound;
    float *out, *other;
} check;

static void open_check(check *x, int op, uint64_t seed) {
    const char *why = case_roll(&x->c, op, seed);
    cr_assert(!why, "%s", why);
    case_free(&x->c); /* filled again, with each class of data in turn */
    cr_assert(case_fill(&x->c, seed, (data_class)(seed % DATA_END)));
    x->seed = seed, x->name = ro_op_describe(op)->name;
    x->n = ro_shape_numel(&x->c.call.output);
    x->value = calloc((size_t)x->n + 1, sizeof(double));
    x->bound = calloc((size_t)x->n + 1, sizeof(double));
    x->out = calloc((size_t)x->n + 1, sizeof(float));
    x->other = calloc((size_t)x->n + 1, sizeof(float));
}

static void close_check(check *x) {
    case_free(&x->c);
    free(x->value);
    free(x->bound);
    free(x->out);
    free(x->other);
}

static void check_element(const check *x, int p, int64_t e) {
    const long double exact = exact_product(&x->c, e);
    const double y = x->value[e], bound = x->bound[e];
    cr_assert(isnan(y) ? isnan(exact) : 1, "%s seed %d element %d: %La, not NaN", x->name,
              (int)x->seed, (int)e, exact);
    cr_assert(isnan(exact)   ? isnan(y)
              : isinf(exact) ? y == (double)exact
                             : 1,
              "%s seed %d element %d: %a, exactly %La", x->name, (int)x->seed, (int)e, y, exact);
    if (isnan(exact) || isinf(exact))
        return;
    cr_assert(fabsl((long double)y - exact) <= 0.5L * (long double)bound,
              "%s seed %d profile %d element %d: %a, exactly %La, bound %a", x->name, (int)x->seed,
              p, (int)e, y, exact, bound);
    cr_assert(bound < INFINITY);
}

static void check_values(check *x) {
    for (int p = 0; p < PROFILES; p++) {
        const ro_rounding r = {
            .size = sizeof r, .mode = RO_FREE_VALUES, .value = x->value, .bound = x->bound};
        run((int)(x->seed + (uint64_t)p) % CONTEXTS, p, &r, &x->c, x->out);
        const int64_t step = x->n / (MOST_CHECKED / PROFILES) + 1;
        for (int64_t e = p % step; e < x->n; e += step)
            check_element(x, p, e);
    }
}

static void check_same(const check *x, const char *what, int a, int b) {
    for (int64_t e = 0; e < x->n; e++)
        cr_assert(ro_to_bits(x->out[e]) == ro_to_bits(x->other[e]),
                  "%s seed %d %s, profiles %d and %d, element %d: %a and %a", x->name, (int)x->seed,
                  what, a, b, (int)e, (double)x->out[e], (double)x->other[e]);
}

static int64_t check_replay(check *x, int bits) {
    int64_t calls = 0;
    for (int a = 0; a < PROFILES; a++) {
        const int here = (int)(x->seed + (uint64_t)a) % CONTEXTS, there = (here + 1) % CONTEXTS;
        const ro_rounding report = {.size = sizeof report, .mode = RO_FREE_REPORT, .bits = bits};
        const ro_free_report made = run(here, a, &report, &x->c, x->out);
        calls += made.call_count;
        for (int b = 0; b < PROFILES; b++) {
            const ro_rounding replay = {.size = sizeof replay,
                                        .mode = RO_FREE_REPLAY,
                                        .bits = bits,
                                        .call = made.call,
                                        .call_count = made.call_count};
            if (a == b)
                continue;
            run(there, b, &replay, &x->c, x->other);
            check_same(x, "replayed", a, b);
        }
    }
    return calls;
}

static int apart(double y, double reach) {
    return ro_to_bits(ro_round(y - reach, 32)) != ro_to_bits(ro_round(y + reach, 32));
}

/* Compares RO_FREE_REPORT with RO_FREE_VALUES: the results are its values, rounded, and a rounding
 * is reported as a close call exactly where its bound would allow another result. */
static void check_report(check *x) {
    const int p = (int)(x->seed % PROFILES), ctx = (int)x->seed % CONTEXTS;
    const ro_rounding values = {
        .size = sizeof values, .mode = RO_FREE_VALUES, .value = x->value, .bound = x->bound};
    const ro_rounding report = {.size = sizeof report, .mode = RO_FREE_REPORT, .bits = 32};
    const ro_rounding plain = {.size = sizeof plain, .mode = RO_FREE_F64, .bits = 32};
    run(ctx, p, &values, &x->c, NULL);
    run(ctx, p, &plain, &x->c, x->other);
    const ro_free_report made = run(ctx, p, &report, &x->c, x->out);
    check_same(x, "reported", p, p);
    const ro_close_call *call = made.call, *end = made.call + made.call_count;
    for (int64_t e = 0; e < x->n; e++) {
        const double y = x->value[e], bound = x->bound[e];
        const int called = call < end && call->element == e;
        cr_assert(ro_to_bits(x->out[e]) == ro_to_bits(ro_round(y, 32)), "%s seed %d element %d",
                  x->name, (int)x->seed, (int)e);
        cr_assert(bound > 0x1p199              ? 1
                  : !isfinite(y) || bound == 0 ? !called
                  : called                     ? apart(y, 2.01 * bound)
                                               : !apart(y, 2 * bound),
                  "%s seed %d element %d: %a, bound %a", x->name, (int)x->seed, (int)e, y, bound);
        call += called;
    }
    cr_assert(call == end);
}

static void check_symbols(check *x) {
    uint8_t *symbol = malloc((size_t)x->n + 1);
    const int p = (int)(x->seed % PROFILES);
    ro_rounding r = {.size = sizeof r,
                     .mode = RO_FREE_SYMBOLS,
                     .bits = 32,
                     .threshold = 0x1.8p-25,
                     .symbol = symbol};
    run(0, p, &r, &x->c, x->out);
    r.mode = RO_FREE_FOLLOW;
    run(0, p, &r, &x->c, x->other);
    check_same(x, "by symbols", p, p);
    free(symbol);
}

/* Returns how many elements differ in binary32 from one built-in profile to the next. All must lie
 * near the order-fixed operator's. */
static int64_t differences(check *x) {
    const ro_rounding r = {.size = sizeof r, .mode = RO_FREE_F32};
    int64_t n = 0;
    for (int p = 0; p < BUILT_IN; p++) {
        run((int)x->seed % CONTEXTS, p, &r, &x->c, x->out);
        run((int)x->seed % CONTEXTS, (p + 1) % BUILT_IN, &r, &x->c, x->other);
        for (int64_t e = 0; e < x->n; e++)
            n += ro_to_bits(x->out[e]) != ro_to_bits(x->other[e]);
    }
    cr_assert(ro_run(context(0), &x->c.call, (const void *const *)x->c.data, x->other) == RO_OK);
    for (int64_t e = 0; e < x->n && x->seed % DATA_END == DATA_NORMAL; e++)
        cr_assert(fabs((double)x->out[e] - (double)x->other[e]) <= 0x1p30 * x->bound[e],
                  "%s seed %d element %d: %a, order-fixed %a", x->name, (int)x->seed, (int)e,
                  (double)x->out[e], (double)x->other[e]);
    return n;
}

static void check_operator(int op) {
    static const int bits[] = {32, 24, 16};
    int64_t differ = 0, calls = 0;
    if (!is_tested(op))
        return;
    cr_assert(ro_op_is_free(op));
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        check x;
        open_check(&x, op, seed);
        check_values(&x);
        calls += check_replay(&x, bits[seed / DATA_END % 3]);
        check_report(&x);
        check_symbols(&x);
        differ += differences(&x);
        close_check(&x);
    }
    cr_assert(differ > 0 && calls > 0);
}

Test(free_products, matmul) {
    check_operator(RO_OP_MATMUL);
}

Test(free_products, attn_av) {
    check_operator(RO_OP_ATTN_AV);
    check_operator(RO_OP_ATTN_AV_AT);
}

Test(free_products, conv2d) {
    check_operator(RO_OP_CONV2D);
}

Test(free_products, conv2d_dx) {
    check_operator(RO_OP_CONV2D_DX);
}

Test(free_products, conv2d_dw) {
    check_operator(RO_OP_CONV2D_DW);
}

/* ---- each parameter of a profile changes sums ---- */

static int changed(const ro_profile *a, const ro_profile *b, int64_t k) {
    const ro_shape in[2] = {{RO_F32, 2, {15, k}}, {RO_F32, 2, {k, 17}}};
    const ro_call call = {RO_OP_MATMUL, 2, {0, 0, ro_attr_f32(1), 256}, in, {RO_F32, 2, {15, 17}}};
    float *x = malloc((size_t)(k * 32) * sizeof *x), y[15 * 17], z[15 * 17];
    const ro_rounding r = {.size = sizeof r, .mode = RO_FREE_F32};
    int count = 0;
    for (int64_t i = 0; i < 32 * k; i++)
        x[i] = ro_from_bits(case_f32(case_word(7, 0, i), DATA_NORMAL));
    const void *data[] = {x, x + 15 * k};
    cr_assert(ro_free_run(context(0), a, &r, &call, data, y, NULL) == RO_OK);
    cr_assert(ro_free_run(context(0), b, &r, &call, data, z, NULL) == RO_OK);
    for (int i = 0; i < 15 * 17; i++)
        count += y[i] != z[i];
    free(x);
    return count;
}

Test(free_products, every_parameter_changes_sums) {
    const ro_profile base = {sizeof(ro_profile), "base", .lanes = 4, .split = 256};
    static const int64_t sizes[] = {300, 700, 2000};
    for (int i = 0; i < 3; i++) {
        ro_profile p[5] = {base, base, base, base, base};
        p[0].lanes = 2;
        p[1].split = 128;
        p[2].pairwise = 1;
        p[3].descending = 1;
        p[4].contract = 1;
        for (int j = 0; j < (ro_op_is_free(RO_OP_MATMUL) ? 5 : 0); j++)
            cr_assert(changed(&base, &p[j], sizes[i]) > 20 ||
                          (j == 4 && strcmp(ro_ctx_backend(context(0)), "scalar") == 0),
                      "parameter %d, k = %d", j, (int)sizes[i]);
    }
}

/* A masked or padded term stays absent even if its other factor is not finite. */
static void run_values(const ro_call *call, const void *const *data, double *y, double *bound) {
    const ro_rounding r = {.size = sizeof r, .mode = RO_FREE_VALUES, .value = y, .bound = bound};
    cr_assert(ro_free_run(context(0), profile(0), &r, call, data, NULL, NULL) == RO_OK);
}

Test(free_products, absent_terms_do_not_meet_infinities) {
    float e[4] = {1, 2, 3, 4}, v[2] = {5, INFINITY};
    const ro_shape in[2] = {{RO_F32, 2, {2, 2}}, {RO_F32, 2, {2, 1}}};
    const ro_call masked = {
        RO_OP_MATMUL, 2, {0, 0, ro_attr_f32(1), 128, RO_MASK_UPTO_ROW}, in, {RO_F32, 2, {2, 1}}};
    double y[9], bound[9];
    run_values(&masked, (const void *const[]){e, v}, y, bound);
    cr_assert(y[0] == 5 && bound[0] < 0x1p-40 && isinf(y[1]));
    float x[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, w[9] = {INFINITY, 1, 1, 1, 1, 1, 1, 1, 1};
    const ro_shape images[2] = {{RO_F32, 4, {1, 3, 3, 1}}, {RO_F32, 4, {3, 3, 1, 1}}};
    const ro_call conv = {
        RO_OP_CONV2D, 2, {1, 1, 1, 1, 1, 1, 1}, images, {RO_F32, 4, {1, 3, 3, 1}}};
    run_values(&conv, (const void *const[]){x, w}, y, bound);
    cr_assert(y[0] == 4 && y[1] == 6 && y[3] == 6 && isinf(y[4]) && bound[0] < 0x1p-40);
}

/* A tile with a NaN is processed twice, but its calls are counted once. */
Test(free_products, calls_beside_nans_are_followed_once) {
    float a[2] = {1, 3}, b[3] = {2, NAN, 5}, out[6];
    const ro_shape in[2] = {{RO_F32, 2, {2, 1}}, {RO_F32, 2, {1, 3}}};
    const ro_call call = {RO_OP_MATMUL, 2, {0, 0, ro_attr_f32(1), 128}, in, {RO_F32, 2, {2, 3}}};
    const ro_close_call up = {.element = 5, .place = (ro_to_bits(15) + 1) & 1, .bits = 1};
    const ro_rounding r = {
        .size = sizeof r, .mode = RO_FREE_REPLAY, .bits = 32, .call = &up, .call_count = 1};
    ro_free_report report = {.size = sizeof report};
    cr_assert(ro_free_run(context(0), profile(0), &r, &call, (const void *const[]){a, b}, out,
                          &report) == RO_OK);
    cr_assert(report.corrected == 1 && report.call_count == 1 && report.call[0].element == 5);
    cr_assert(out[0] == 2 && out[2] == 5 && out[3] == 6 && out[5] != 15);
    cr_assert(ro_to_bits(out[1]) == 0x7fc00000u && ro_to_bits(out[4]) == 0x7fc00000u);
}

/* No terms, no outputs, one row or column, many small products. */
Test(free_products, odd_shapes) {
    static const int64_t dims[][4] = {{1, 3, 5, 0},   {1, 0, 5, 7},    {0, 2, 2, 2},
                                      {1, 1, 1, 1},   {1, 1, 300, 70}, {1, 300, 1, 70},
                                      {300, 2, 3, 1}, {2, 29, 33, 513}};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        const int64_t b = dims[i][0], m = dims[i][1], n = dims[i][2], k = dims[i][3];
        op_case c = {.in = {{RO_F32, 3, {b, m, k}}, {RO_F32, 3, {b, k, n}}}};
        c.call = (ro_call){.op = RO_OP_MATMUL, .input_count = 2, .input = c.in};
        c.call.attr[RO_MATMUL_BATCH_DIMS] = 1, c.call.attr[RO_MATMUL_ALPHA] = ro_attr_f32(-2),
        c.call.attr[RO_MATMUL_CHUNK] = 256;
        char why[200];
        cr_assert(ro_infer(&c.call, why, sizeof why) == RO_OK, "%s", why);
        cr_assert(case_fill(&c, i, DATA_NORMAL));
        double *y = calloc((size_t)(b * m * n) + 1, sizeof *y);
        double *bound = calloc((size_t)(b * m * n) + 1, sizeof *bound);
        for (int p = 0; p < PROFILES; p++) {
            const ro_rounding r = {
                .size = sizeof r, .mode = RO_FREE_VALUES, .value = y, .bound = bound};
            run(p % CONTEXTS, p, &r, &c, c.out);
            for (int64_t e = 0; e < b * m * n; e++)
                cr_assert(fabsl((long double)y[e] - exact_matmul(&c, e)) <= 0.6L * bound[e]);
        }
        free(y);
        free(bound);
        case_free(&c);
    }
}
