/* The functions of one element over all 2^32 inputs: `make exhaustive`, or with names of functions,
 * `make exhaustive ARGS="erf gelu turn"`. `--every N` only takes every Nth input, for a quick look.
 * `atan2`, `pow` and `running` are in pairs.c, over random operands.
 *
 * Every backend of this processor, and math.h as compiled here, must give the same bits: without
 * and with fma in hardware, in scalars and in vectors. Errors are measured against double
 * precision, and must not exceed the bounds of SPEC.md sections 2 and 6. The double is itself
 * compared with MPFR where it could mislead: within 2^-23 of the middle between two floats, at all
 * inputs whose error is within 0.1 % of the largest, and at every 65,521st input. Which float is
 * the nearest one is decided by MPFR within 2^-23 of a middle, and by the double elsewhere. Where a
 * function rises or falls, no result may go the other way from one input to the next.
 *
 * Exit codes: 0 all of this holds; 1 it does not; 2 trouble. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/exhaustive/errors.h"
#include "repops/tools/functions.h"
#include "repops/operators.h"

enum { CHUNK = 1 << 18, WORST = 4096, STRIDE = 65521, TURNS = 1 << 24 };

/* ---- functions: as compiled here, in double, and in MPFR ---- */

#define TWO_OVER_PI_ROOT 0.79788456080286535588

static double exact_rsqrt(double x) {
    return 1 / sqrt(x);
}
static double exact_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
/* x times a factor that goes to 0 faster: the limit is 0. */
static int is_minus_infinity(double x) {
    return isinf(x) && x < 0;
}
static double exact_silu(double x) {
    return is_minus_infinity(x) ? 0 : x / (1 + exp(-x));
}
static double exact_gelu(double x) {
    return is_minus_infinity(x) ? 0
                                : x / (1 + exp(-2 * TWO_OVER_PI_ROOT * (x + 0.044715 * x * x * x)));
}
static double exact_gelu_erf(double x) {
    return is_minus_infinity(x) ? 0 : 0.5 * x * erfc(-x * 0.70710678118654752440);
}
static double exact_gelu_erf_slope(double x) {
    if (fabs(x) > 40)
        return x > 0;
    return 0.5 * erfc(-x * 0.70710678118654752440) + x * exp(-0.5 * x * x) * 0.5 * TWO_OVER_PI_ROOT;
}

#define MANY(name, function)                                                                       \
    static void many_##name(mpfr_t y, mpfr_t x) {                                                  \
        mpfr_##function(y, x, MPFR_RNDN);                                                          \
    }
MANY(exp, exp)
MANY(log, log)
MANY(sqrt, sqrt)
MANY(rsqrt, rec_sqrt)
MANY(tanh, tanh)
MANY(erf, erf)
MANY(sin, sin)
MANY(cos, cos)
MANY(tan, tan)
MANY(asin, asin)
MANY(acos, acos)
MANY(atan, atan)
MANY(sinh, sinh)
MANY(cosh, cosh)
MANY(asinh, asinh)
MANY(acosh, acosh)
MANY(atanh, atanh)
MANY(log1p, log1p)
MANY(expm1, expm1)
MANY(log2, log2)
MANY(exp2, exp2)
MANY(floor, rint_floor)
MANY(ceil, rint_ceil)
MANY(rint, rint_roundeven)
MANY(trunc, rint_trunc)

/* y = 1 + exp(-z). */
static void many_one_plus_exp(mpfr_t y, mpfr_t z) {
    mpfr_neg(y, z, MPFR_RNDN);
    mpfr_exp(y, y, MPFR_RNDN);
    mpfr_add_ui(y, y, 1, MPFR_RNDN);
}
static void many_sigmoid(mpfr_t y, mpfr_t x) {
    many_one_plus_exp(y, x);
    mpfr_ui_div(y, 1, y, MPFR_RNDN);
}
static void many_silu(mpfr_t y, mpfr_t x) {
    many_one_plus_exp(y, x);
    mpfr_div(y, x, y, MPFR_RNDN);
}
/* Computes 2 sqrt(2 / pi) (x + 0.044715 x^3), then silu of it. */
static void many_gelu(mpfr_t y, mpfr_t x) {
    mpfr_t z, c;
    mpfr_inits2(PRECISION, z, c, (mpfr_ptr)0);
    mpfr_sqr(z, x, MPFR_RNDN);
    mpfr_set_str(c, "0.044715", 10, MPFR_RNDN);
    mpfr_mul(z, z, c, MPFR_RNDN);
    mpfr_add_ui(z, z, 1, MPFR_RNDN);
    mpfr_mul(z, z, x, MPFR_RNDN);
    mpfr_const_pi(c, MPFR_RNDN);
    mpfr_ui_div(c, 8, c, MPFR_RNDN);
    mpfr_sqrt(c, c, MPFR_RNDN);
    mpfr_mul(z, z, c, MPFR_RNDN);
    many_one_plus_exp(y, z);
    mpfr_div(y, x, y, MPFR_RNDN);
    mpfr_clears(z, c, (mpfr_ptr)0);
}
static void many_gelu_erf(mpfr_t y, mpfr_t x) {
    mpfr_t z;
    mpfr_init2(z, PRECISION);
    mpfr_sqrt_ui(z, 2, MPFR_RNDN);
    mpfr_div(z, x, z, MPFR_RNDN);
    mpfr_neg(z, z, MPFR_RNDN);
    mpfr_erfc(y, z, MPFR_RNDN);
    mpfr_mul(y, y, x, MPFR_RNDN);
    mpfr_div_ui(y, y, 2, MPFR_RNDN);
    mpfr_clear(z);
}

static void many_gelu_erf_slope(mpfr_t y, mpfr_t x) {
    mpfr_t z, c;
    mpfr_inits2(PRECISION, z, c, (mpfr_ptr)0);
    mpfr_sqrt_ui(c, 2, MPFR_RNDN);
    mpfr_div(z, x, c, MPFR_RNDN);
    mpfr_neg(z, z, MPFR_RNDN);
    mpfr_erfc(y, z, MPFR_RNDN); /* 2 P(X < x) */
    mpfr_sqr(z, z, MPFR_RNDN);
    mpfr_neg(z, z, MPFR_RNDN);
    mpfr_exp(z, z, MPFR_RNDN);
    mpfr_mul(z, z, x, MPFR_RNDN);
    mpfr_mul(z, z, c, MPFR_RNDN);
    mpfr_const_pi(c, MPFR_RNDN);
    mpfr_sqrt(c, c, MPFR_RNDN);
    mpfr_div(z, z, c, MPFR_RNDN); /* 2 x times the density */
    mpfr_add(y, y, z, MPFR_RNDN);
    mpfr_div_ui(y, y, 2, MPFR_RNDN);
    mpfr_clears(z, c, (mpfr_ptr)0);
}

typedef struct {
    const char *name;
    int op; /* for a derivative: the gradient operator, called with dy = 1 */
    float (*f)(float);
    double (*exact)(double);
    void (*many)(mpfr_t y, mpfr_t x);
    double bound;      /* of the error in ulp, as in SPEC.md */
    double tail_bound; /* if not 0: bound of the absolute error below 0, in 2^-24 */
    float within;      /* monotony is checked where |x| is at most this */
    int slope[2];      /* 1 rising, -1 falling: from 0 on, and below 0 */
    int64_t missed;    /* inputs whose result is not the nearest float, as in SPEC.md */
    int kind;          /* attribute of round */
} function;

#define WIDE(name, op, within, above, below, missed)                                               \
    { #name, op, ro_##name, name, many_##name, 0.5, 0, within, {above, below }, missed }
#define ROUND(kind, name)                                                                          \
    { #name, RO_OP_ROUND, __builtin_##name##f, name, many_##name, 0, 0, INFINITY, {1, 1 }, 0, kind }
#define EIGHTH 0x1.921fb4p-1f /* an eighth of a turn, rounded down */

static const function functions[] = {
    {"exp", RO_OP_EXP, ro_exp, exp, many_exp, 0.9814, 0},
    {"log", RO_OP_LOG, ro_log, log, many_log, 0.9521, 0},
    {"sqrt", RO_OP_SQRT, ro_sqrt, sqrt, many_sqrt, 0.5, 0},
    {"rsqrt", RO_OP_RSQRT, ro_rsqrt, exact_rsqrt, many_rsqrt, 1.4903, 0},
    {"tanh", RO_OP_TANH, ro_tanh, tanh, many_tanh, 1.3487, 0},
    {"erf", RO_OP_ERF, ro_erf, erf, many_erf, 1.1269, 0},
    {"sigmoid", RO_OP_SIGMOID, ro_sigmoid, exact_sigmoid, many_sigmoid, 2.4019, 0},
    {"silu", RO_OP_SILU, ro_silu, exact_silu, many_silu, 2.2056, 0.9159},
    {"gelu", RO_OP_GELU, ro_gelu, exact_gelu, many_gelu, 2.0256, 1.3166},
    {"gelu_erf", RO_OP_GELU_ERF, ro_gelu_erf, exact_gelu_erf, many_gelu_erf, 2.4139, 11.8508},
    {"gelu_erf_slope", RO_OP_GELU_ERF_GRAD, ro_gelu_erf_slope, exact_gelu_erf_slope,
     many_gelu_erf_slope, 2.1690, 3.4204},
    WIDE(sin, RO_OP_SIN, EIGHTH, 1, 1, 2),
    WIDE(cos, RO_OP_COS, EIGHTH, -1, 1, 6),
    WIDE(tan, RO_OP_TAN, EIGHTH, 1, 1, 0),
    WIDE(asin, RO_OP_ASIN, 1, 1, 1, 0),
    WIDE(acos, RO_OP_ACOS, 1, -1, -1, 2),
    WIDE(atan, RO_OP_ATAN, INFINITY, 1, 1, 2),
    WIDE(sinh, RO_OP_SINH, INFINITY, 1, 1, 2),
    WIDE(cosh, RO_OP_COSH, INFINITY, 1, -1, 0),
    WIDE(asinh, RO_OP_ASINH, INFINITY, 1, 1, 6),
    WIDE(acosh, RO_OP_ACOSH, INFINITY, 1, 1, 2),
    WIDE(atanh, RO_OP_ATANH, 1, 1, 1, 2),
    WIDE(log1p, RO_OP_LOG1P, INFINITY, 1, 1, 8),
    WIDE(expm1, RO_OP_EXPM1, INFINITY, 1, 1, 0),
    WIDE(log2, RO_OP_LOG2, INFINITY, 1, 1, 0),
    WIDE(exp2, RO_OP_EXP2, INFINITY, 1, 1, 2),
    ROUND(RO_DOWN, floor),
    ROUND(RO_UP, ceil),
    ROUND(RO_NEAREST, rint),
    ROUND(RO_TOWARD_ZERO, trunc),
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static const struct {
    const char *name;
    float (*f)(uint32_t);
    double (*exact)(double);
} turns[] = {{"sin_turn", ro_sin_turn, sin}, {"cos_turn", ro_cos_turn, cos}};
static const double turn_bound = 1.4187; /* absolute, in 2^-24 */

/* With a larger error, in its own ulp, a double would change an error's fourth decimal. */
static const double doubt_bound = 0x1p14;

/* ---- findings ---- */

typedef struct {
    double error; /* in ulp; for a tail in 2^-24 */
    uint32_t at;
    uint32_t worst[WORST]; /* the last inputs whose error was close to the largest so far */
    int64_t worst_count;
    double doubt; /* largest error of a double in its own ulp; for a tail in 2^-53 */
} largest;

typedef struct {
    largest part[2];                     /* [1]: the tail */
    int64_t middles, sampled, differing; /* numbers of inputs */
    int64_t missed, back;                /* results not nearest; in the wrong direction */
    uint32_t missed_at, back_at;
} findings;

static int in_tail(const function *f, float x) {
    return f->tail_bound > 0 && x < 0;
}

static double error_of(const function *f, float x, float got, double want) {
    return in_tail(f, x) ? ldexp(distance(got, want), 24) : ulp_error(got, want);
}

/* ---- the double compared with MPFR ---- */

static void doubt(const function *f, uint32_t bits, findings *out) {
    const float x = ro_from_bits(bits);
    const int tail = in_tail(f, x);
    const double want = f->exact((double)x);
    if (isnan(want) || isinf(want) || (!tail && fabs(want) < 0x1p-149))
        return;
    mpfr_t y, z;
    mpfr_inits2(PRECISION, y, z, (mpfr_ptr)0);
    mpfr_set_flt(z, x, MPFR_RNDN);
    f->many(y, z);
    mpfr_sub_d(y, y, want, MPFR_RNDN);
    const double unit = tail ? 0x1p-53 : ldexp(ulp_of(want), -29);
    const double off = fabs(mpfr_get_d(y, MPFR_RNDN)) / unit;
    mpfr_clears(y, z, (mpfr_ptr)0);
    double *most = &out->part[tail].doubt;
    *most = isnan(off) ? INFINITY : off > *most ? off : *most;
}

/* Returns the float nearest to the exact result. */
static float nearest(const function *f, float x, double want, int middle) {
    if (!middle)
        return (float)want;
    mpfr_t y, z;
    mpfr_inits2(PRECISION, y, z, (mpfr_ptr)0);
    mpfr_set_flt(z, x, MPFR_RNDN);
    f->many(y, z);
    const float result = mpfr_get_flt(y, MPFR_RNDN);
    mpfr_clears(y, z, (mpfr_ptr)0);
    return result;
}

static void measure(const function *f, uint32_t bits, float got, findings *out) {
    const float x = ro_from_bits(bits);
    const double want = f->exact((double)x), error = error_of(f, x, got, want);
    largest *part = &out->part[in_tail(f, x)];
    if (error > part->error)
        part->error = error, part->at = bits;
    if (error > 0.999 * part->error && error > 0)
        part->worst[part->worst_count++ % WORST] = bits;
    const int middle = near_the_middle(want);
    if (ro_to_bits(got) != ro_to_bits(ro_canon(nearest(f, x, want, middle))))
        out->missed++, out->missed_at = bits;
    if (!in_tail(f, x) && middle)
        out->middles++, doubt(f, bits, out);
    else if (bits % STRIDE == 0)
        out->sampled++, doubt(f, bits, out);
}

/* ---- all inputs, divided among threads ---- */

typedef struct {
    pthread_t thread;
    const function *f;
    uint32_t first, every; /* input i has the bits i * every */
    uint64_t count;
    ro_ctx *ctx[BACKENDS];
    findings out;
    float x[CHUNK], dy[CHUNK], got[CHUNK], other[CHUNK];
} worker;

/* Bits count up from 0 to infinity, and from -0 to -infinity, with NaNs in between. */
static void follow(worker *w, uint32_t first) {
    const function *f = w->f;
    if (f->within == 0)
        return;
    float before = first ? f->f(ro_from_bits((first - 1) * w->every)) : NAN;
    for (uint32_t i = 0; i < CHUNK; i++) {
        const float y = w->got[i];
        const int up = signbit(w->x[i]) ? -f->slope[1] : f->slope[0];
        if (fabsf(w->x[i]) <= f->within && (up > 0 ? y < before : y > before))
            w->out.back++, w->out.back_at = (first + i) * w->every;
        before = y;
    }
}

static void compare(worker *w, const float *other) {
    for (int i = 0; i < CHUNK && memcmp(w->got, other, sizeof w->got) != 0; i++)
        w->out.differing += ro_to_bits(w->got[i]) != ro_to_bits(other[i]);
}

static void run_chunk(worker *w, uint32_t first) {
    const ro_shape shape[] = {{RO_F32, 1, {CHUNK}}, {RO_F32, 1, {CHUNK}}};
    const ro_call call = {w->f->op,
                          ro_op_describe(w->f->op)->min_inputs,
                          {w->f->kind}, /* the only attribute, which round has */
                          shape,
                          shape[0]};
    for (uint32_t i = 0; i < CHUNK; i++) {
        w->dy[i] = 1.0f;
        w->x[i] = ro_from_bits((first + i) * w->every);
        w->got[i] = ro_canon(w->f->f(w->x[i]));
    }
    for (int b = 0; b < BACKENDS && w->ctx[b]; b++) {
        if (ro_run(w->ctx[b], &call, (const void *[]){w->x, w->dy}, w->other) != RO_OK)
            exit(2);
        compare(w, w->other);
    }
    for (uint32_t i = 0; i < CHUNK; i++)
        measure(w->f, (first + i) * w->every, w->got[i], &w->out);
    follow(w, first);
}

static void *run_share(void *user) {
    worker *w = user;
    for (uint64_t done = 0; done < w->count; done += CHUNK)
        run_chunk(w, w->first + (uint32_t)done);
    mpfr_free_cache();
    return NULL;
}

/* ---- reports ---- */

static void merge(findings *a, const findings *b) {
    for (int tail = 0; tail < 2; tail++) {
        largest *p = &a->part[tail];
        const largest *q = &b->part[tail];
        if (q->error > p->error)
            p->error = q->error, p->at = q->at;
        p->doubt = fmax(p->doubt, q->doubt);
    }
    a->middles += b->middles;
    a->sampled += b->sampled;
    a->differing += b->differing;
    a->missed_at = b->missed ? b->missed_at : a->missed_at;
    a->back_at = b->back ? b->back_at : a->back_at;
    a->missed += b->missed;
    a->back += b->back;
}

/* Compares with MPFR those inputs of a thread whose errors are close to the largest of all. */
static int64_t doubt_worst(const function *f, const findings *of_thread, findings *all) {
    int64_t count = 0;
    for (int tail = 0; tail < 2; tail++) {
        const largest *p = &of_thread->part[tail];
        for (int64_t i = 0; i < p->worst_count && i < WORST; i++) {
            const float x = ro_from_bits(p->worst[i]);
            if (error_of(f, x, f->f(x), f->exact((double)x)) <= 0.999 * all->part[tail].error)
                continue;
            count++;
            doubt(f, p->worst[i], all);
        }
    }
    return count;
}

/* SPEC.md states how often these functions miss the nearest float. */
static int report_nearest(const function *f, const findings *all) {
    if (f->within == 0)
        return 0;
    printf("               %lld inputs do not get the nearest float", (long long)all->missed);
    if (all->missed)
        printf(", as %a", (double)ro_from_bits(all->missed_at));
    printf("; %lld results go the other way\n", (long long)all->back);
    const int too_many = all->missed > f->missed;
    if (too_many)
        printf("               FAILED: SPEC.md states %lld\n", (long long)f->missed);
    if (all->back)
        printf("               FAILED: as at %a\n", (double)ro_from_bits(all->back_at));
    return too_many || all->back > 0;
}

static int report(const function *f, const findings *all, int64_t worst) {
    const largest *p = &all->part[0], *tail = &all->part[1];
    printf("%-14s max %.4f ulp at %a", f->name, p->error, (double)ro_from_bits(p->at));
    if (f->tail_bound > 0)
        printf(" from 0 on; below 0 %.4f * 2^-24 at %a", tail->error,
               (double)ro_from_bits(tail->at));
    printf("; %lld inputs differ between paths\n", (long long)all->differing);
    printf("               the double is within %.2f of its ulp", p->doubt);
    if (f->tail_bound > 0)
        printf(" (below 0 %.2f * 2^-53)", tail->doubt);
    printf(" at %lld middles, %lld near the maximum, %lld others\n", (long long)all->middles,
           (long long)worst, (long long)all->sampled);
    int failed = judge("error in ulp", p->error, f->bound);
    failed |= judge("error below 0", tail->error, f->tail_bound);
    if (fmax(p->doubt, tail->doubt) > doubt_bound)
        failed = 1, printf("               FAILED: the double is too far from MPFR\n");
    failed |= report_nearest(f, all);
    fflush(stdout);
    return failed || all->differing > 0;
}

static int run_function(const function *f, worker *w, int threads, uint32_t every) {
    const uint64_t inputs = (UINT64_C(1) << 32) / every / CHUNK * CHUNK;
    const uint64_t share = inputs / (uint64_t)threads / CHUNK * CHUNK;
    static findings all;
    int64_t worst = 0;
    memset(&all, 0, sizeof all);
    for (int t = 0; t < threads; t++) {
        w[t].f = f;
        w[t].every = every;
        w[t].first = (uint32_t)(share * (uint64_t)t);
        w[t].count = t + 1 < threads ? share : inputs - share * (uint64_t)t;
        memset(&w[t].out, 0, sizeof w[t].out);
        if (pthread_create(&w[t].thread, NULL, run_share, &w[t]) != 0)
            exit(2);
    }
    for (int t = 0; t < threads; t++) {
        pthread_join(w[t].thread, NULL);
        merge(&all, &w[t].out);
    }
    for (int t = 0; t < threads; t++)
        worst += doubt_worst(f, &w[t].out, &all);
    return report(f, &all, worst);
}

/* ---- functions of turns ---- */

/* Returns the loop compiled for a backend's instruction set. */
static void (*turn_loop(const char *backend, const char *name))(float *x, int64_t count) {
    for (int i = 0; i < ELEMENTARY_SETS; i++) {
        const elementary *e = elementary_sets[i].list;
        for (; strcmp(backend, elementary_sets[i].backend) == 0 && e->name; e++)
            if (strcmp(e->name, name) == 0)
                return e->apply;
    }
    return NULL;
}

static int64_t turns_that_differ(const float *got, const char *backend, const char *name) {
    void (*const apply)(float *, int64_t) = turn_loop(backend, name);
    float *other = malloc(TURNS * sizeof *other);
    int64_t count = 0;
    if (!other || !apply)
        exit(2);
    for (uint32_t k = 0; k < TURNS; k++)
        other[k] = ro_from_bits(k); /* the bits are the argument */
    apply(other, TURNS);
    for (uint32_t k = 0; k < TURNS; k++)
        count += ro_to_bits(got[k]) != ro_to_bits(other[k]);
    free(other);
    return count;
}

static int run_turn(int i, ro_ctx *const *ctx) {
    float *got = malloc(TURNS * sizeof *got);
    double worst = 0;
    int64_t differing = 0;
    if (!got)
        exit(2);
    for (uint32_t k = 0; k < TURNS; k++) {
        got[k] = turns[i].f(k);
        const double want = turns[i].exact(ldexp(k, -23) * 3.14159265358979323846);
        worst = fmax(worst, ldexp(distance(got[k], want), 24));
    }
    for (int b = 0; b < BACKENDS && ctx[b]; b++)
        differing += turns_that_differ(got, ro_ctx_backend(ctx[b]), turns[i].name);
    free(got);
    printf("%-14s max error %.4f * 2^-24 (absolute); %lld inputs differ between paths\n",
           turns[i].name, worst, (long long)differing);
    return judge("absolute error", worst, turn_bound) || differing > 0;
}

static int run_turns(ro_ctx *const *ctx) {
    return run_turn(0, ctx) | run_turn(1, ctx);
}

/* ---- the command line ---- */

static const struct {
    const char *name;
    int (*run)(ro_ctx *const *ctx);
} others[] = {
    {"turn", run_turns}, {"atan2", run_atan2}, {"pow", run_pow}, {"running", run_running}};
enum { OTHERS = sizeof others / sizeof others[0] };

static void open_backends(ro_ctx **ctx) {
    static const char *const names[BACKENDS] = {"scalar", "avx2", "avx512", "neon"};
    int count = 0;
    for (int i = 0; i < BACKENDS; i++) {
        const ro_options options = {.size = sizeof options, .threads = 1, .backend = names[i]};
        if (ro_ctx_create(&options, &ctx[count]) == RO_OK)
            count++;
    }
}

typedef struct {
    uint32_t every;
    int count;
    char **name; /* none: all */
} choice;

static int wanted(const choice *c, const char *name) {
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->name[i], name) == 0)
            return 1;
    return c->count == 0;
}

static int is_known(const char *name) {
    for (int i = 0; i < FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0)
            return 1;
    for (int i = 0; i < OTHERS; i++)
        if (strcmp(others[i].name, name) == 0)
            return 1;
    return 0;
}

/* Parses [--every N] [NAME]...; refuses unknown names, which would test nothing. */
static choice choose(int argc, char **argv) {
    choice c = {1, argc - 1, argv + 1};
    if (argc > 2 && strcmp(argv[1], "--every") == 0)
        c = (choice){(uint32_t)strtoul(argv[2], NULL, 10), argc - 3, argv + 3};
    int usage = c.every < 1 || c.every > (UINT64_C(1) << 32) / CHUNK;
    for (int i = 0; i < c.count; i++)
        usage |= !is_known(c.name[i]);
    if (usage) {
        fprintf(stderr, "usage: exhaustive_math [--every 1..%d] [FUNCTION | turn | running]...\n",
                (int)((UINT64_C(1) << 32) / CHUNK));
        exit(2);
    }
    return c;
}

int main(int argc, char **argv) {
    const choice c = choose(argc, argv);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = cores < 1 ? 1 : cores > 64 ? 64 : (int)cores;
    worker *w = calloc((size_t)threads, sizeof *w);
    int failed = 0;
    if (!w)
        return 2;
    for (int t = 0; t < threads; t++)
        open_backends(w[t].ctx);
    printf("paths: math.h as compiled here");
    for (int b = 0; b < BACKENDS && w[0].ctx[b]; b++)
        printf(", %s", ro_ctx_backend(w[0].ctx[b]));
    printf("\n");
    for (int i = 0; i < FUNCTIONS; i++)
        if (wanted(&c, functions[i].name))
            failed |= run_function(&functions[i], w, threads, c.every);
    for (int i = 0; i < OTHERS; i++)
        if (wanted(&c, others[i].name))
            failed |= others[i].run(w[0].ctx);
    for (int t = 0; t < threads; t++)
        for (int b = 0; b < BACKENDS; b++)
            ro_ctx_destroy(w[t].ctx[b]);
    free(w);
    return failed;
}
