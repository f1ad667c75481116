/* Free kernels (SPEC.md section 14) on random cases of an operator: bounds hold, following a
 * profile's reports gives its bits with every other, and profiles differ. */
#ifndef TESTS_FREE_CASES_H
#define TESTS_FREE_CASES_H

#include <criterion/criterion.h>
#include <stdio.h>

#include "each_operator.h"
#include "free_exact.h"
#include "repops/free.h"
#include "repops/op_elementwise.h"
#include "repops/op_function.h"

enum { FREE_PROFILES = 4, FREE_CONTEXTS = 3, FREE_CASES = 40, FREE_ELEMENTS = 4000 };

/* Returns a context with the best instruction set or with the portable kernels, and 1 to 3
 * threads. */
static inline ro_ctx *free_context(int i) {
    static ro_ctx *ctx[FREE_CONTEXTS];
    const ro_options options[FREE_CONTEXTS] = {
        {.size = sizeof *options, .threads = 3},
        {.size = sizeof *options, .threads = 1, .backend = "scalar"},
        {.size = sizeof *options, .threads = 2, .backend = "avx2"}};
    if (!ctx[i] && ro_ctx_create(&options[i], &ctx[i]) != RO_OK)
        cr_assert(ro_ctx_create(&options[0], &ctx[i]) == RO_OK);
    return ctx[i];
}

static inline void free_run_on(ro_ctx *ctx, int profile, const ro_rounding *r, const op_case *c,
                               const void *const *in, void *out, ro_free_report *report) {
    const ro_status status = ro_free_run(ctx, ro_profile_at(profile), r, &c->call, in, out, report);
    cr_assert(status == RO_OK, "%s: %s", ro_op_describe(c->call.op)->name, ro_ctx_error(ctx));
}

static inline void free_run_case(int context, int profile, const ro_rounding *r, const op_case *c,
                                 void *out, ro_free_report *report) {
    free_run_on(free_context(context), profile, r, c, (const void *const *)c->data, out, report);
}

typedef struct {
    const op_case *c;
    int64_t n;
    const char *name;
    uint64_t seed;
    double *value[FREE_PROFILES], *bound[FREE_PROFILES];
    float *out, *other, *fixed;
} free_check;

static inline int same_number(double a, double b) {
    return a == b || (a != a && b != b);
}

/* Is the operator a single correctly rounded operation? Then its values count as exact. */
static inline int free_is_single(int op) {
    return op == RO_OP_ADD || op == RO_OP_SUB || op == RO_OP_MUL || op == RO_OP_DIV ||
           op == RO_OP_DIV_CONST || op == RO_OP_SCALE || op == RO_OP_SQRT;
}

static inline void check_exact(const free_check *f, int p) {
    const int64_t step = f->n / FREE_ELEMENTS + 1;
    for (int64_t e = (int64_t)(f->seed % (uint64_t)step); e < f->n; e += step) {
        const double y = f->value[p][e], bound = f->bound[p][e];
        const ld exact = exact_value(f->c, e);
        cr_assert(!isnan(exact) || isnan(y) || isinf(y), "%s seed %llu element %lld: NaN, not %a",
                  f->name, (unsigned long long)f->seed, (long long)e, y);
        cr_assert(!isnan(y) || isnan(exact) || isnan(f->fixed[e]),
                  "%s seed %llu element %lld: %La, not NaN", f->name, (unsigned long long)f->seed,
                  (long long)e, exact);
        if (y - y != 0) {
            cr_assert(isnan(y) || !(fabsl(exact) < 0x1p128L) || isinf(f->fixed[e]) ||
                          isnan(f->fixed[e]),
                      "%s: %La, not infinite", f->name, exact);
            continue;
        }
        /* A bound is more than twice the greatest error. */
        const double most = free_is_single(f->c->call.op) ? fabs(y) * 0x1.01p-53 : bound / 2;
        cr_assert(!(fabsl((ld)y - exact) > (ld)most * 1.02L),
                  "%s seed %llu profile %d element %lld: %a, exactly %La, bound %a", f->name,
                  (unsigned long long)f->seed, p, (long long)e, y, exact, bound);
    }
}

/* The order-fixed operator computes in binary32: its errors are about 2^29 bounds. */
static inline void check_fixed(const free_check *f, int p) {
    for (int64_t e = 0; e < f->n; e++) {
        const double y = f->value[p][e], x = (double)f->fixed[e], bound = f->bound[p][e];
        const double reach = 0x1p34 * bound + 0x1p-20 * fabs(y) + 0x1p-14;
        if (f->seed % DATA_END == 0 && y - y == 0 && x - x == 0)
            cr_assert(!(fabs(y - x) > reach), "%s seed %llu element %lld: %a, fixed %a", f->name,
                      (unsigned long long)f->seed, (long long)e, y, x);
    }
}

static inline void check_values(const free_check *f) {
    for (int p = 0; p < FREE_PROFILES; p++) {
        const ro_rounding r = {
            .size = sizeof r, .mode = RO_FREE_VALUES, .value = f->value[p], .bound = f->bound[p]};
        free_run_case((int)(f->seed + (uint64_t)p) % FREE_CONTEXTS, p, &r, f->c, f->out, NULL);
        check_exact(f, p);
        check_fixed(f, p);
        for (int64_t e = 0; e < f->n; e++) {
            const double a = f->value[0][e], b = f->value[p][e], bound = f->bound[0][e];
            cr_assert(same_number(a, b) || !(fabs(a - b) > bound),
                      "%s seed %llu element %lld: profiles 0 and %d: %a and %a, bound %a", f->name,
                      (unsigned long long)f->seed, (long long)e, p, a, b, bound);
        }
    }
}

static inline void check_equal(const free_check *f, const char *what, int a, int b, int bits) {
    for (int64_t e = 0; e < f->n; e++)
        cr_assert(ro_to_bits(f->out[e]) == ro_to_bits(f->other[e]),
                  "%s seed %llu %s, profiles %d and %d, b = %d, element %lld of %lld: %a and %a, "
                  "values %a and %a, bound %a",
                  f->name, (unsigned long long)f->seed, what, a, b, bits, (long long)e,
                  (long long)f->n, (double)f->out[e], (double)f->other[e], f->value[a][e],
                  f->value[b][e], f->bound[a][e]);
}

/* Runs again, overwriting each input that may be overwritten. */
static inline void check_in_place(const free_check *f, int p, const ro_rounding *r) {
    const op_case *c = f->c;
    for (int i = 0; i < c->call.input_count; i++) {
        const void *in[CASE_INPUTS];
        if (!(ro_op_in_place(c->call.op) >> i & 1) || ro_shape_numel(&c->in[i]) != f->n)
            continue;
        memcpy(in, c->data, sizeof in);
        in[i] = f->other;
        memcpy(f->other, c->data[i], (size_t)f->n * sizeof *f->other);
        free_run_on(free_context((int)f->seed % FREE_CONTEXTS), p, r, c, in, f->other, NULL);
        check_equal(f, "in place", p, p, r->bits);
    }
}

static inline void check_replay(const free_check *f, int bits, int64_t *calls) {
    for (int a = 0; a < FREE_PROFILES; a++) {
        const int at = (int)(f->seed + (uint64_t)a) % FREE_CONTEXTS;
        const ro_rounding report = {.size = sizeof report, .mode = RO_FREE_REPORT, .bits = bits};
        ro_free_report made = {.size = sizeof made};
        free_run_case(at, a, &report, f->c, f->out, &made);
        *calls += made.call_count;
        for (int b = 0; b < FREE_PROFILES; b++) {
            const ro_rounding replay = {.size = sizeof replay,
                                        .mode = RO_FREE_REPLAY,
                                        .bits = bits,
                                        .call = made.call,
                                        .call_count = made.call_count};
            if (a == b)
                continue;
            free_run_case((at + 1) % FREE_CONTEXTS, b, &replay, f->c, f->other, NULL);
            check_equal(f, "replayed", a, b, bits);
        }
        if (a == (int)(f->seed % FREE_PROFILES)) {
            const ro_rounding plain = {.size = sizeof plain, .mode = RO_FREE_F64, .bits = bits};
            check_in_place(f, a, &report);
            free_run_case(at, a, &plain, f->c, f->other, NULL);
            check_equal(f, "not reported", a, a, bits);
        }
    }
}

static inline void check_symbols(const free_check *f) {
    uint8_t *symbol = malloc((size_t)f->n + 1);
    const int p = (int)(f->seed % FREE_PROFILES);
    ro_rounding r = {.size = sizeof r,
                     .mode = RO_FREE_SYMBOLS,
                     .bits = 32,
                     .threshold = 0x1.8p-25,
                     .symbol = symbol};
    free_run_case(0, p, &r, f->c, f->out, NULL);
    r.mode = RO_FREE_FOLLOW;
    free_run_case(0, p, &r, f->c, f->other, NULL);
    check_equal(f, "by symbols", p, p, 32);
    free(symbol);
}

/* Returns how many elements differ between profiles in binary32. */
static inline int64_t differences(const free_check *f) {
    const ro_rounding r = {.size = sizeof r, .mode = RO_FREE_F32};
    int64_t n = 0;
    for (int p = 1; p < FREE_PROFILES; p++) {
        free_run_case(0, p - 1, &r, f->c, f->out, NULL);
        free_run_case(0, p, &r, f->c, f->other, NULL);
        for (int64_t e = 0; e < f->n; e++)
            n += ro_to_bits(f->out[e]) != ro_to_bits(f->other[e]);
    }
    return n;
}

typedef struct {
    int64_t differ, calls, elements;
} free_counts;

static inline void check_free_case(int op, uint64_t seed, int bits, free_counts *counts) {
    op_case c;
    const char *why = case_roll(&c, op, seed);
    cr_assert(!why, "%s: %s", ro_op_describe(op)->name, why);
    /* Takes the classes of data in turn. */
    for (int t = 0; t < c.call.input_count; t++)
        free(c.data[t]);
    free(c.out);
    cr_assert(case_fill(&c, seed, (data_class)(seed % DATA_END)));
    const int64_t n = ro_shape_numel(&c.call.output);
    free_check f = {&c, n, ro_op_describe(op)->name, seed, {NULL}, {NULL}, NULL, NULL, NULL};
    for (int p = 0; p < FREE_PROFILES; p++) {
        f.value[p] = calloc((size_t)n + 1, sizeof(double));
        f.bound[p] = calloc((size_t)n + 1, sizeof(double));
    }
    f.out = calloc((size_t)n + 1, sizeof(float));
    f.other = calloc((size_t)n + 1, sizeof(float));
    f.fixed = calloc((size_t)n + 1, sizeof(float));
    cr_assert(ro_run(free_context(0), &c.call, (const void *const *)c.data, f.fixed) == RO_OK);
    check_values(&f);
    check_replay(&f, bits, &counts->calls);
    check_symbols(&f);
    counts->differ += differences(&f);
    counts->elements += n;
    for (int p = 0; p < FREE_PROFILES; p++) {
        free(f.value[p]);
        free(f.bound[p]);
    }
    free(f.out);
    free(f.other);
    free(f.fixed);
    case_free(&c);
}

/* Contraction needs a fused multiply-add, which the portable x86-64 kernels lack; some operators'
 * profiles only differ by it. */
static inline int contracts(void) {
#if defined(__x86_64__)
    return strcmp(ro_ctx_backend(free_context(0)), "scalar") != 0;
#else
    return 1;
#endif
}

/* differs: profiles must differ in binary32. */
static inline void check_free_operator(int op, int differs) {
    static const int bits[] = {32, 24, 16};
    free_counts counts = {0, 0, 0};
    if (!is_tested(op))
        return;
    cr_assert(ro_op_is_free(op), "%s", ro_op_describe(op)->name);
    for (uint64_t seed = 1; seed <= FREE_CASES; seed++)
        check_free_case(op, seed, bits[seed % 3], &counts);
    cr_assert(!differs || counts.differ > 0 || !contracts(), "%s: profiles do not differ",
              ro_op_describe(op)->name);
    if (getenv("FREE_COUNTS"))
        fprintf(stderr, "%-22s %9lld elements, %7lld reports of 4 profiles, %8lld differences\n",
                ro_op_describe(op)->name, (long long)counts.elements, (long long)counts.calls,
                (long long)counts.differ);
}

#endif
