/* The functions of one element over all 2^32 inputs: `make exhaustive`, or with names of functions,
 * `make exhaustive ARGS="erf gelu"`. The figures stand in SPEC.md sections 2 and 6.
 *
 * Every backend of this processor, and math.h as compiled here, must give the same bits: without
 * and with fma in hardware, in scalars and in vectors. Errors are measured against double
 * precision. The double is itself held against MPFR where it could mislead: within 2^-23 of the
 * middle between two floats, at all inputs whose error is within 0.1 % of the largest, and at every
 * 65,521st input. */
#include <math.h>
#include <mpfr.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "repops/src/math.h"

enum { CHUNK = 1 << 18, WORST = 4096, PRECISION = 160, STRIDE = 65521, BACKENDS = 4 };

/* ---- functions: as compiled here, in double, and in many bits ---- */

#define TWO_OVER_PI_ROOT 0.79788456080286535588

static double exact_rsqrt(double x) {
    return 1 / sqrt(x);
}
static double exact_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double exact_silu(double x) {
    return x / (1 + exp(-x));
}
static double exact_gelu(double x) {
    return x / (1 + exp(-2 * TWO_OVER_PI_ROOT * (x + 0.044715 * x * x * x)));
}
static double exact_gelu_erf(double x) {
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}
static double exact_gelu_erf_slope(double x) {
    if (fabs(x) > 40)
        return x > 0;
    return 0.5 * erfc(-x * 0.70710678118654752440) + x * exp(-0.5 * x * x) * 0.5 * TWO_OVER_PI_ROOT;
}

static void many_exp(mpfr_t y, mpfr_t x) {
    mpfr_exp(y, x, MPFR_RNDN);
}
static void many_log(mpfr_t y, mpfr_t x) {
    mpfr_log(y, x, MPFR_RNDN);
}
static void many_sqrt(mpfr_t y, mpfr_t x) {
    mpfr_sqrt(y, x, MPFR_RNDN);
}
static void many_rsqrt(mpfr_t y, mpfr_t x) {
    mpfr_rec_sqrt(y, x, MPFR_RNDN);
}
static void many_tanh(mpfr_t y, mpfr_t x) {
    mpfr_tanh(y, x, MPFR_RNDN);
}
static void many_erf(mpfr_t y, mpfr_t x) {
    mpfr_erf(y, x, MPFR_RNDN);
}
/* 1 + exp(-z) into y. */
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
/* 2 sqrt(2 / pi) (x + 0.044715 x^3), then as silu. */
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
    mpfr_erfc(y, z, MPFR_RNDN); /* twice what lies below x */
    mpfr_sqr(z, z, MPFR_RNDN);
    mpfr_neg(z, z, MPFR_RNDN);
    mpfr_exp(z, z, MPFR_RNDN);
    mpfr_mul(z, z, x, MPFR_RNDN);
    mpfr_mul(z, z, c, MPFR_RNDN);
    mpfr_const_pi(c, MPFR_RNDN);
    mpfr_sqrt(c, c, MPFR_RNDN);
    mpfr_div(z, z, c, MPFR_RNDN); /* twice x times the density */
    mpfr_add(y, y, z, MPFR_RNDN);
    mpfr_div_ui(y, y, 2, MPFR_RNDN);
    mpfr_clears(z, c, (mpfr_ptr)0);
}

typedef struct {
    const char *name;
    int op; /* of a slope: the gradient, which gets a dy of 1 */
    float (*f)(float);
    double (*exact)(double);
    void (*many)(mpfr_t y, mpfr_t x);
    int tail; /* 1: below 0 the error is absolute */
} function;

static const function functions[] = {
    {"exp", RO_OP_EXP, ro_exp, exp, many_exp, 0},
    {"log", RO_OP_LOG, ro_log, log, many_log, 0},
    {"sqrt", RO_OP_SQRT, ro_sqrt, sqrt, many_sqrt, 0},
    {"rsqrt", RO_OP_RSQRT, ro_rsqrt, exact_rsqrt, many_rsqrt, 0},
    {"tanh", RO_OP_TANH, ro_tanh, tanh, many_tanh, 0},
    {"erf", RO_OP_ERF, ro_erf, erf, many_erf, 0},
    {"sigmoid", RO_OP_SIGMOID, ro_sigmoid, exact_sigmoid, many_sigmoid, 0},
    {"silu", RO_OP_SILU, ro_silu, exact_silu, many_silu, 1},
    {"gelu", RO_OP_GELU, ro_gelu, exact_gelu, many_gelu, 1},
    {"gelu_erf", RO_OP_GELU_ERF, ro_gelu_erf, exact_gelu_erf, many_gelu_erf, 1},
    {"gelu_erf_slope", RO_OP_GELU_ERF_GRAD, ro_gelu_erf_slope, exact_gelu_erf_slope,
     many_gelu_erf_slope, 1},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* ---- errors ---- */

/* Of the correctly rounded result, subnormals included. */
static double ulp_of(double want) {
    int exponent;
    frexp(want, &exponent);
    return ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

static double ulp_error(float got, double want) {
    const float nearest = (float)want;
    if (isnan(want) || isinf(nearest))
        return got == nearest || (isnan(want) && isnan(got)) ? 0 : isinf(nearest) ? 1 : INFINITY;
    return fabs((double)got - want) / ulp_of(want);
}

static int near_the_middle(double want) {
    if (isnan(want) || isinf((float)want))
        return 0;
    const double t = fabs(want) / ulp_of(want);
    return fabs(t - floor(t) - 0.5) < 0x1p-23;
}

typedef struct {
    double error, tail; /* in ulp; absolute */
    uint32_t at, tail_at;
    uint32_t worst[WORST]; /* the last inputs that came close to the largest error of their time */
    int64_t worst_count;
    int64_t middles, sampled, differing; /* inputs */
    double doubt;                        /* largest error of a double in its own ulp */
} findings;

/* ---- the double against many bits ---- */

static void doubt(const function *f, uint32_t bits, findings *out) {
    const double x = (double)ro_from_bits(bits), want = f->exact(x);
    if (isnan(want) || isinf(want) || fabs(want) < 0x1p-149)
        return;
    mpfr_t y, z;
    mpfr_inits2(PRECISION, y, z, (mpfr_ptr)0);
    mpfr_set_d(z, x, MPFR_RNDN);
    f->many(y, z);
    mpfr_sub_d(y, y, want, MPFR_RNDN);
    const double off = fabs(mpfr_get_d(y, MPFR_RNDN)) / ldexp(ulp_of(want), -29);
    mpfr_clears(y, z, (mpfr_ptr)0);
    out->doubt = off > out->doubt ? off : out->doubt;
}

static void measure(const function *f, uint32_t bits, float got, findings *out) {
    const float x = ro_from_bits(bits);
    const double want = f->exact((double)x);
    if (f->tail && x < 0) {
        const double off = fabs((double)got - want);
        if (off > out->tail)
            out->tail = off, out->tail_at = bits;
        return;
    }
    const double error = ulp_error(got, want);
    if (error > out->error)
        out->error = error, out->at = bits;
    if (error > 0.999 * out->error && error > 0)
        out->worst[out->worst_count++ % WORST] = bits;
    if (near_the_middle(want))
        out->middles++, doubt(f, bits, out);
    else if (bits % STRIDE == 0)
        out->sampled++, doubt(f, bits, out);
}

/* ---- all inputs, a share per thread ---- */

typedef struct {
    pthread_t thread;
    const function *f;
    uint32_t first;
    uint64_t count;
    ro_ctx *ctx[BACKENDS];
    findings out;
    float x[CHUNK], dy[CHUNK], got[CHUNK], other[CHUNK];
} worker;

static void compare(worker *w, const float *other) {
    for (int i = 0; i < CHUNK && memcmp(w->got, other, sizeof w->got) != 0; i++)
        w->out.differing += ro_to_bits(w->got[i]) != ro_to_bits(other[i]);
}

static void run_chunk(worker *w, uint32_t first) {
    const ro_shape shape[] = {{RO_F32, 1, {CHUNK}}, {RO_F32, 1, {CHUNK}}};
    const ro_call call = {w->f->op, ro_op_describe(w->f->op)->min_inputs, {0}, shape, shape[0]};
    for (uint32_t i = 0; i < CHUNK; i++) {
        w->dy[i] = 1.0f;
        w->x[i] = ro_from_bits(first + i);
        w->got[i] = ro_canon(w->f->f(w->x[i]));
    }
    for (int b = 0; b < BACKENDS && w->ctx[b]; b++) {
        if (ro_run(w->ctx[b], &call, (const void *[]){w->x, w->dy}, w->other) != RO_OK)
            exit(2);
        compare(w, w->other);
    }
    for (uint32_t i = 0; i < CHUNK; i++)
        measure(w->f, first + i, w->got[i], &w->out);
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
    if (b->error > a->error)
        a->error = b->error, a->at = b->at;
    if (b->tail > a->tail)
        a->tail = b->tail, a->tail_at = b->tail_at;
    a->middles += b->middles;
    a->sampled += b->sampled;
    a->differing += b->differing;
    a->doubt = fmax(a->doubt, b->doubt);
}

/* Those of all threads that stayed close to the largest error. */
static int64_t doubt_worst(const function *f, const worker *w, int threads, findings *all) {
    int64_t count = 0;
    for (int t = 0; t < threads; t++)
        for (int64_t i = 0; i < w[t].out.worst_count && i < WORST; i++) {
            const uint32_t bits = w[t].out.worst[i];
            const double x = (double)ro_from_bits(bits);
            if (ulp_error(f->f((float)x), f->exact(x)) <= 0.999 * all->error)
                continue;
            count++;
            doubt(f, bits, all);
        }
    return count;
}

static int run_function(const function *f, worker *w, int threads) {
    const uint64_t share = (UINT64_C(1) << 32) / (uint64_t)threads / CHUNK * CHUNK;
    findings all = {0};
    for (int t = 0; t < threads; t++) {
        w[t].f = f;
        w[t].first = (uint32_t)(share * (uint64_t)t);
        w[t].count = t + 1 < threads ? share : (UINT64_C(1) << 32) - share * (uint64_t)t;
        memset(&w[t].out, 0, sizeof w[t].out);
        if (pthread_create(&w[t].thread, NULL, run_share, &w[t]) != 0)
            exit(2);
    }
    for (int t = 0; t < threads; t++) {
        pthread_join(w[t].thread, NULL);
        merge(&all, &w[t].out);
    }
    const int64_t worst = doubt_worst(f, w, threads, &all);
    printf("%-14s max %.4f ulp at %a", f->name, all.error, (double)ro_from_bits(all.at));
    if (f->tail)
        printf(" from 0 on; below 0 %.4f * 2^-24 at %a", ldexp(all.tail, 24),
               (double)ro_from_bits(all.tail_at));
    printf("; %lld inputs differ between paths\n", (long long)all.differing);
    printf("               the double is within %.2f of its ulp at %lld middles, %lld near the "
           "maximum, "
           "%lld others\n",
           all.doubt, (long long)all.middles, (long long)worst, (long long)all.sampled);
    fflush(stdout);
    return all.differing > 0;
}

static void measure_turn(const char *name, float (*f)(uint32_t), double (*reference)(double)) {
    double worst = 0;
    for (uint32_t k = 0; k < 1u << 24; k++) {
        double error = fabs((double)f(k) - reference(ldexp(k, -23) * 3.14159265358979323846));
        worst = error > worst ? error : worst;
    }
    printf("%-14s max error %.4f * 2^-24 (absolute)\n", name, ldexp(worst, 24));
}

static void open_backends(worker *w) {
    static const char *const names[BACKENDS] = {"scalar", "avx2", "avx512", "neon"};
    int count = 0;
    for (int i = 0; i < BACKENDS; i++) {
        const ro_options options = {.threads = 1, .backend = names[i]};
        if (ro_ctx_create(&options, &w->ctx[count]) == RO_OK)
            count++;
    }
}

static int wanted(const char *name, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc < 2;
}

int main(int argc, char **argv) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = cores < 1 ? 1 : cores > 64 ? 64 : (int)cores;
    worker *w = calloc((size_t)threads, sizeof *w);
    int failed = 0;
    if (!w)
        return 2;
    for (int t = 0; t < threads; t++)
        open_backends(&w[t]);
    printf("paths: math.h as compiled here");
    for (int b = 0; b < BACKENDS && w[0].ctx[b]; b++)
        printf(", %s", ro_ctx_backend(w[0].ctx[b]));
    printf("\n");
    for (int i = 0; i < FUNCTIONS; i++)
        if (wanted(functions[i].name, argc, argv))
            failed |= run_function(&functions[i], w, threads);
    if (wanted("turn", argc, argv)) {
        measure_turn("sin_turn", ro_sin_turn, sin);
        measure_turn("cos_turn", ro_cos_turn, cos);
    }
    for (int t = 0; t < threads; t++)
        for (int b = 0; b < BACKENDS; b++)
            ro_ctx_destroy(w[t].ctx[b]);
    free(w);
    return failed;
}
