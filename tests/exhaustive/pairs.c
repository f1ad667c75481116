/* Functions of two operands, and running totals, against MPFR: random operands, the same in
 * every run, and for functions all pairs of special numbers. Every backend of this
 * processor must give the same bits. */
#include <stdlib.h>

#include "tests/exhaustive/errors.h"
#include "repops/operators.h"

enum { PAIRS = 1 << 20, LINES = 64, LENGTH = 4096, TOTALS = LINES * LENGTH };

/* ---- draws ---- */

/* SplitMix64. */
static uint64_t next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
static double between(uint64_t *state, double least, double most) {
    return least + (most - least) * ldexp((double)(next(state) >> 11), -53);
}
static float any_bits(uint64_t *state) {
    return ro_from_bits((uint32_t)next(state));
}
/* A number of either sign whose base 2 logarithm is uniform in [least, most). */
static float any_power(uint64_t *state, double least, double most) {
    const float size = (float)exp2(between(state, least, most));
    return next(state) & 1 ? size : -size;
}
static float any_integer(uint64_t *state, double most) {
    return (float)rint(between(state, -most, most));
}

static const float special[] = {
    0.0f,
    0x1p-149f,
    0x1.fffffcp-127f,
    0x1p-126f,
    0x1p-75f,
    0.5f,
    1.0f / 3,
    0x1.fffffep-1f,
    1.0f,
    0x1.000002p0f,
    1.5f,
    2.0f,
    3.0f,
    5.0f,
    127.0f,
    128.0f,
    149.0f,
    150.0f,
    151.0f,
    0x1.fffffp22f,
    0x1.fffffep22f,
    0x1.fffffep23f,
    0x1p24f,
    0x1.000002p24f,
    0x1p25f,
    0x1.921fb6p0f,
    0x1p63f,
    0x1p64f,
    0x1p127f,
    0x1.fffffep127f,
    INFINITY,
    NAN,
};
enum { SPECIAL = sizeof special / sizeof special[0], SIGNED = 2 * SPECIAL };

static float special_of(int i) {
    return i % 2 ? -special[i / 2] : special[i / 2];
}

/* Draws y so that x^y is neither 0 nor infinite, or only just. */
static void draw_power_in_range(uint64_t *state, float x, float *y) {
    *y = (float)(between(state, -152, 129) / log2(fabs((double)x)));
}

static void draw_for_pow(uint64_t *state, int way, float *x, float *y) {
    switch (way) {
    case 0: *x = any_bits(state), *y = any_bits(state); break;
    case 1:
        *x = fabsf(any_power(state, -149, 128));
        draw_power_in_range(state, *x, y);
        break;
    case 2: /* x is close to 1 */
        *x = (float)(1 + (double)any_power(state, -24, -1));
        draw_power_in_range(state, *x, y);
        break;
    case 3: /* the exact result is often halfway between two floats */
        *x = any_integer(state, 5000), *y = any_integer(state, 5);
        break;
    case 4: /* all combinations of signs */
        *x = any_power(state, -1, 1);
        draw_power_in_range(state, *x, y);
        *y = rintf(*y);
        break;
    default: *x = fabsf(any_power(state, -4, 4)), *y = any_power(state, -6, 6); break;
    }
}

static void draw_for_atan2(uint64_t *state, int way, float *y, float *x) {
    switch (way) {
    case 0: *y = any_bits(state), *x = any_bits(state); break;
    case 1: /* the result is subnormal, or nearly so */
        *x = any_power(state, -20, 126);
        *y = (float)((double)*x * any_power(state, -149, -124));
        break;
    case 2: /* the quotient is near a point where the formula changes */
        *x = any_power(state, -20, 20);
        *y = (float)((double)*x * (next(state) & 1 ? 0x1.a827999fcef32p-2 : 0x1.3504f333f9de6p1) *
                     (1 + (double)any_power(state, -23, -10)));
        break;
    case 3: *x = any_integer(state, 100), *y = any_integer(state, 100); break;
    default: *x = any_power(state, 0, 1), *y = any_power(state, -12, 12); break;
    }
}

/* ---- functions of two operands ---- */

typedef struct {
    const char *name;
    int op;
    float (*f)(float, float);
    void (*draw)(uint64_t *state, int way, float *a, float *b);
    int ways;
    int (*many)(mpfr_t out, const mpfr_t a, const mpfr_t b, mpfr_rnd_t);
    double bound;   /* of the error in ulp, as in SPEC.md */
    int64_t missed; /* pairs that do not give the nearest float, except exact ties */
} function_of_two;

typedef struct {
    float a[PAIRS], b[PAIRS], got[PAIRS], other[PAIRS];
} pairs;

static void draw_pairs(const function_of_two *f, pairs *p) {
    uint64_t state = 1;
    for (int i = 0; i < PAIRS; i++)
        f->draw(&state, i % f->ways, &p->a[i], &p->b[i]);
    for (int i = 0; i < SIGNED * SIGNED; i++)
        p->a[i] = special_of(i / SIGNED), p->b[i] = special_of(i % SIGNED);
}

static int64_t different(const float *got, const float *other, int64_t count) {
    int64_t differing = 0;
    for (int64_t i = 0; i < count; i++)
        differing += ro_to_bits(got[i]) != ro_to_bits(other[i]);
    return differing;
}

static int64_t pairs_that_differ(const function_of_two *f, pairs *p, ro_ctx *const *ctx) {
    const ro_shape shape[] = {{RO_F32, 1, {PAIRS}}, {RO_F32, 1, {PAIRS}}};
    const ro_call call = {f->op, 2, {0}, shape, shape[0]};
    int64_t differing = 0;
    for (int b = 0; b < BACKENDS && ctx[b]; b++) {
        if (ro_run(ctx[b], &call, (const void *[]){p->a, p->b}, p->other) != RO_OK)
            exit(2);
        differing += different(p->got, p->other, PAIRS);
    }
    return differing;
}

typedef struct {
    double worst;
    int64_t middles, missed; /* exact ties; other results that are not nearest */
    int worst_at, missed_at;
} pair_findings;

/* Is the number halfway between two floats? It is exact if `inexact` is 0. */
static int is_middle(const mpfr_t y, int inexact) {
    const double want = mpfr_get_d(y, MPFR_RNDN);
    if (inexact || isnan(want) || isinf((float)want) || mpfr_cmp_d(y, want) != 0)
        return 0;
    const double t = fabs(want) / ulp_of(want);
    return t - floor(t) == 0.5;
}

static void measure_pairs(const function_of_two *f, pairs *p, pair_findings *out) {
    mpfr_t a, b, y;
    mpfr_inits2(PRECISION, a, b, y, (mpfr_ptr)0);
    for (int i = 0; i < PAIRS; i++) {
        p->got[i] = f->f(p->a[i], p->b[i]);
        mpfr_set_flt(a, p->a[i], MPFR_RNDN);
        mpfr_set_flt(b, p->b[i], MPFR_RNDN);
        const int inexact = f->many(y, a, b, MPFR_RNDN);
        const double error = ulp_error(p->got[i], mpfr_get_d(y, MPFR_RNDN));
        if (error > out->worst)
            out->worst = error, out->worst_at = i;
        if (ro_to_bits(p->got[i]) == ro_to_bits(ro_canon(mpfr_get_flt(y, MPFR_RNDN))))
            continue;
        if (is_middle(y, inexact))
            out->middles++;
        else
            out->missed++, out->missed_at = i;
    }
    mpfr_clears(a, b, y, (mpfr_ptr)0);
}

static int run_pairs(const function_of_two *f, ro_ctx *const *ctx) {
    pairs *p = malloc(sizeof *p);
    pair_findings out = {0};
    if (!p)
        exit(2);
    draw_pairs(f, p);
    measure_pairs(f, p, &out);
    const int64_t differing = pairs_that_differ(f, p, ctx);
    printf("%-14s max %.4f ulp at (%a, %a); %lld of %d pairs differ between paths\n", f->name,
           out.worst, (double)p->a[out.worst_at], (double)p->b[out.worst_at], (long long)differing,
           PAIRS);
    printf("               %lld exact middles are not rounded to even; %lld others do not get "
           "the nearest float",
           (long long)out.middles, (long long)out.missed);
    if (out.missed)
        printf(", as (%a, %a)", (double)p->a[out.missed_at], (double)p->b[out.missed_at]);
    printf("\n");
    if (out.missed > f->missed)
        printf("               FAILED: SPEC.md states %lld\n", (long long)f->missed);
    fflush(stdout);
    free(p);
    return judge("error in ulp", out.worst, f->bound) || out.missed > f->missed || differing > 0;
}

int run_atan2(ro_ctx *const *ctx) {
    const function_of_two f = {"atan2", RO_OP_ATAN2, ro_atan2, draw_for_atan2,
                               5,       mpfr_atan2,  0.5,      0};
    return run_pairs(&f, ctx);
}

int run_pow(ro_ctx *const *ctx) {
    const function_of_two f = {"pow", RO_OP_POW, ro_pow, draw_for_pow, 6, mpfr_pow, 0.5, 0};
    return run_pairs(&f, ctx);
}

/* ---- running totals ---- */

static float draw_part(uint64_t *state) {
    return (float)between(state, 0, 1);
}
static float draw_signed(uint64_t *state) {
    return any_power(state, -20, 4);
}
static float draw_factor(uint64_t *state) {
    return (float)between(state, 0.9, 1.1) * (next(state) & 1 ? 1 : -1);
}
static float draw_logarithm(uint64_t *state) {
    return (float)between(state, -20, 20);
}

/* total += x, in MPFR; the next function multiplies. */
static void many_sum(mpfr_t total, mpfr_t x) {
    mpfr_add(total, total, x, MPFR_RNDN);
}
static void many_product(mpfr_t total, mpfr_t x) {
    mpfr_mul(total, total, x, MPFR_RNDN);
}
static void many_sum_of_exp(mpfr_t total, mpfr_t x) {
    mpfr_exp(x, x, MPFR_RNDN);
    mpfr_add(total, total, x, MPFR_RNDN);
}

static const struct {
    const char *name;
    int kind;
    float (*draw)(uint64_t *state);
    double start;
    void (*join)(mpfr_t total, mpfr_t x);
    int of_magnitudes; /* the error is in ulp of the sum of magnitudes */
} totals[] = {
    {"sums", RO_RUNNING_SUM, draw_part, 0, many_sum, 0},
    {"signed sums", RO_RUNNING_SUM, draw_signed, 0, many_sum, 1},
    {"products", RO_RUNNING_PRODUCT, draw_factor, 1, many_product, 0},
    {"log sums", RO_RUNNING_LOG_SUM, draw_logarithm, 0, many_sum_of_exp, 0},
};
enum { KINDS = sizeof totals / sizeof totals[0] };
static const double total_bound = 0.5;

/* Returns the largest error in one line. */
static double error_of_line(int which, const float *x, const float *got) {
    double worst = 0, magnitudes = 0;
    mpfr_t total, next_one;
    mpfr_inits2(PRECISION, total, next_one, (mpfr_ptr)0);
    mpfr_set_d(total, totals[which].start, MPFR_RNDN);
    for (int i = 0; i < LENGTH; i++) {
        mpfr_set_flt(next_one, x[i], MPFR_RNDN);
        totals[which].join(total, next_one);
        magnitudes += fabs((double)x[i]);
        if (totals[which].kind == RO_RUNNING_LOG_SUM)
            mpfr_log(next_one, total, MPFR_RNDN);
        else
            mpfr_set(next_one, total, MPFR_RNDN);
        const double want = mpfr_get_d(next_one, MPFR_RNDN);
        const double error = totals[which].of_magnitudes
                                 ? distance(got[i], want) / ulp_of(magnitudes)
                                 : ulp_error(got[i], want);
        worst = fmax(worst, error);
    }
    mpfr_clears(total, next_one, (mpfr_ptr)0);
    return worst;
}

static int run_total(int which, ro_ctx *const *ctx) {
    static float x[TOTALS], got[TOTALS], other[TOTALS];
    const ro_shape shape = {RO_F32, 2, {LINES, LENGTH}};
    ro_call call = {RO_OP_RUNNING, 1, {0}, &shape, shape};
    uint64_t state = 1;
    double worst = 0;
    int64_t differing = 0;
    call.attr[RO_RUNNING_AXIS] = 1;
    call.attr[RO_RUNNING_KIND] = totals[which].kind;
    for (int i = 0; i < TOTALS; i++)
        x[i] = totals[which].draw(&state);
    for (int b = 0; b < BACKENDS && ctx[b]; b++) {
        if (ro_run(ctx[b], &call, (const void *[]){x}, b ? other : got) != RO_OK)
            exit(2);
        differing += b ? different(got, other, TOTALS) : 0;
    }
    for (int i = 0; i < TOTALS; i += LENGTH)
        worst = fmax(worst, error_of_line(which, x + i, got + i));
    printf("running        %s of up to %d: max %.4f ulp%s; %lld differ between paths\n",
           totals[which].name, LENGTH, worst,
           totals[which].of_magnitudes ? " of the sum of magnitudes" : "", (long long)differing);
    return judge("error in ulp", worst, total_bound) || differing > 0;
}

int run_running(ro_ctx *const *ctx) {
    int failed = 0;
    for (int i = 0; i < KINDS; i++)
        failed |= run_total(i, ctx);
    return failed;
}
