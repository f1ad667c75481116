/* Speed of elementary functions and row operators with one thread: nanoseconds per element beside
 * glibc's libmvec, and GB/s beside memcpy. Medians of the thread's CPU time, in turn. */
#include "bench/bench.h"
#include "repops/operators.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { ROUNDS = 15, SMALL = 1 << 14, LARGE = 1 << 24, COLS = 1024, INPUTS = 5 };

/* ---- peers ---- */

typedef enum { NO_PEER, EXP, LOG, TANH, ERF, SIGMOID, GELU, GELU_ERF } peer;

#if defined(__x86_64__) && defined(__GLIBC__)

#define AVX2   __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx2,fma")))

AVX2 __m256 _ZGVdN8v_expf(__m256);
AVX2 __m256 _ZGVdN8v_logf(__m256);
AVX2 __m256 _ZGVdN8v_tanhf(__m256);
AVX2 __m256 _ZGVdN8v_erff(__m256);
AVX512 __m512 _ZGVeN16v_expf(__m512);
AVX512 __m512 _ZGVeN16v_logf(__m512);
AVX512 __m512 _ZGVeN16v_tanhf(__m512);
AVX512 __m512 _ZGVeN16v_erff(__m512);

/* Computes a peer's function. Those that libmvec lacks are built from those it has, as a compiler
 * would vectorise them. */
AVX2 static __m256 apply8(peer p, __m256 x) {
    const __m256 one = _mm256_set1_ps(1), half = _mm256_set1_ps(0.5f);
    __m256 u;
    switch (p) {
    case EXP: return _ZGVdN8v_expf(x);
    case LOG: return _ZGVdN8v_logf(x);
    case TANH: return _ZGVdN8v_tanhf(x);
    case ERF: return _ZGVdN8v_erff(x);
    case SIGMOID:
        u = _ZGVdN8v_expf(_mm256_sub_ps(_mm256_setzero_ps(), x));
        return _mm256_div_ps(one, _mm256_add_ps(one, u));
    case GELU:
        u = _mm256_fmadd_ps(_mm256_set1_ps(0.044715f), _mm256_mul_ps(x, x), one);
        u = _ZGVdN8v_tanhf(_mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.79788456f), x), u));
        return _mm256_mul_ps(_mm256_mul_ps(half, x), _mm256_add_ps(one, u));
    default:
        u = _ZGVdN8v_erff(_mm256_mul_ps(_mm256_set1_ps(0.70710678f), x));
        return _mm256_mul_ps(_mm256_mul_ps(half, x), _mm256_add_ps(one, u));
    }
}

AVX512 static __m512 apply16(peer p, __m512 x) {
    const __m512 one = _mm512_set1_ps(1), half = _mm512_set1_ps(0.5f);
    __m512 u;
    switch (p) {
    case EXP: return _ZGVeN16v_expf(x);
    case LOG: return _ZGVeN16v_logf(x);
    case TANH: return _ZGVeN16v_tanhf(x);
    case ERF: return _ZGVeN16v_erff(x);
    case SIGMOID:
        u = _ZGVeN16v_expf(_mm512_sub_ps(_mm512_setzero_ps(), x));
        return _mm512_div_ps(one, _mm512_add_ps(one, u));
    case GELU:
        u = _mm512_fmadd_ps(_mm512_set1_ps(0.044715f), _mm512_mul_ps(x, x), one);
        u = _ZGVeN16v_tanhf(_mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(0.79788456f), x), u));
        return _mm512_mul_ps(_mm512_mul_ps(half, x), _mm512_add_ps(one, u));
    default:
        u = _ZGVeN16v_erff(_mm512_mul_ps(_mm512_set1_ps(0.70710678f), x));
        return _mm512_mul_ps(_mm512_mul_ps(half, x), _mm512_add_ps(one, u));
    }
}

AVX2 static void run8(peer p, const float *x, float *out, int64_t count) {
    for (int64_t i = 0; i < count; i += 8)
        _mm256_storeu_ps(out + i, apply8(p, _mm256_loadu_ps(x + i)));
}

AVX512 static void run16(peer p, const float *x, float *out, int64_t count) {
    for (int64_t i = 0; i < count; i += 16)
        _mm512_storeu_ps(out + i, apply16(p, _mm512_loadu_ps(x + i)));
}

static int run_peer(const char *backend, peer p, const float *x, float *out, int64_t count) {
    if (p == NO_PEER)
        return 0;
    if (strcmp(backend, "avx512") == 0)
        return run16(p, x, out, count), 1;
    if (strcmp(backend, "avx2") == 0)
        return run8(p, x, out, count), 1;
    return 0;
}

#else

static int run_peer(const char *backend, peer p, const float *x, float *out, int64_t count) {
    (void)backend, (void)p, (void)x, (void)out, (void)count;
    return 0;
}

#endif

/* ---- operators: a letter per input, f like the output, r one per row, c one per column ---- */

typedef struct {
    int op;
    peer peer;
    const char *inputs;
    int axis_cols; /* 1: attributes cols and block, and one output per row */
} work;

static const work works[] = {
    {RO_OP_EXP, EXP, "f", 0},
    {RO_OP_LOG, LOG, "f", 0},
    {RO_OP_TANH, TANH, "f", 0},
    {RO_OP_ERF, ERF, "f", 0},
    {RO_OP_SIGMOID, SIGMOID, "f", 0},
    {RO_OP_GELU, GELU, "f", 0},
    {RO_OP_GELU_ERF, GELU_ERF, "f", 0},
    {RO_OP_SILU, NO_PEER, "f", 0},
    {RO_OP_SQRT, NO_PEER, "f", 0},
    {RO_OP_RSQRT, NO_PEER, "f", 0},
    {RO_OP_SILU_GRAD, NO_PEER, "ff", 0},
    {RO_OP_GELU_ERF_GRAD, NO_PEER, "ff", 0},
    {RO_OP_ADD, NO_PEER, "ff", 0},
    {RO_OP_ADD, NO_PEER, "fc", 0},
    {RO_OP_MUL, NO_PEER, "ff", 0},
    {RO_OP_DIV, NO_PEER, "ff", 0},
    {RO_OP_SCALE, NO_PEER, "f", 0},
    {RO_OP_RELU, NO_PEER, "f", 0},
    {RO_OP_REDUCE_SUM, NO_PEER, "f", 1},
    {RO_OP_REDUCE_MAX, NO_PEER, "f", 1},
    {RO_OP_REDUCE_EXPSUM, NO_PEER, "fr", 1},
    {RO_OP_SOFTMAX, NO_PEER, "frr", 0},
    {RO_OP_SOFTMAX_GRAD, NO_PEER, "ffr", 0},
    {RO_OP_LOG_SOFTMAX, NO_PEER, "frr", 0},
    {RO_OP_LAYERNORM, NO_PEER, "frrcc", 0},
    {RO_OP_RMSNORM, NO_PEER, "frc", 0},
    {RO_OP_RMS_DX, NO_PEER, "fcfrr", 0},
    {RO_OP_SUM_AXIS, NO_PEER, "f", 0},
    {RO_OP_ARGMAX, NO_PEER, "f", 0},
};
enum { WORKS = sizeof works / sizeof works[0] };

typedef struct {
    ro_call call;
    ro_shape in[INPUTS];
    const void *data[INPUTS];
    double bytes; /* bytes read and written */
} job;

static int describe(const work *w, int64_t count, float *const *data, job *j) {
    char why[160] = "";
    const ro_shape row = {RO_F32, 1, {count / COLS}};
    memset(j, 0, sizeof *j);
    j->call.op = w->op;
    j->call.input = j->in;
    for (const char *c = w->inputs; *c; c++) {
        const int i = j->call.input_count++;
        j->in[i] = *c == 'f'   ? (ro_shape){RO_F32, 2, {count / COLS, COLS}}
                   : *c == 'r' ? row
                               : (ro_shape){RO_F32, 1, {COLS}};
        j->data[i] = data[i];
        j->bytes += 4.0 * (double)ro_shape_numel(&j->in[i]);
    }
    if (w->axis_cols) {
        j->call.attr[RO_ROWS_COLS] = j->call.attr[RO_ROWS_BLOCK] = COLS;
        j->call.output = row;
    }
    if (w->op == RO_OP_SCALE)
        j->call.attr[0] = ro_attr_f32(0.5f);
    if (w->op == RO_OP_ARGMAX)
        j->call.attr[0] = 1;
    if (ro_infer(&j->call, why, sizeof why) != RO_OK)
        return fprintf(stderr, "%s\n", why), 0;
    j->bytes += 4.0 * (double)ro_shape_numel(&j->call.output);
    return 1;
}

/* ---- time ---- */

enum { OURS, PEER, COPY, SIDES };

static const double sample_s = 0.002; /* seconds of one side in a round; at least one call */

typedef struct {
    ro_ctx *ctx;
    const work *w;
    const job *j;
    int64_t count;
    float *out;
} measured;

static void run_ours(const measured *m) {
    if (ro_run(m->ctx, &m->j->call, m->j->data, m->out) != RO_OK) {
        fprintf(stderr, "functions: %s\n", ro_ctx_error(m->ctx));
        exit(1);
    }
}

static double sample(void *user, int way, int64_t calls) {
    const measured *m = user;
    int has_peer = 1;
    const double from = bench_now(1);
    for (int64_t i = 0; i < calls && has_peer; i++)
        if (way == OURS) {
            run_ours(m);
        } else if (way == PEER) {
            has_peer =
                run_peer(ro_ctx_backend(m->ctx), m->w->peer, m->j->data[0], m->out, m->count);
        } else {
            memcpy(m->out, m->j->data[0], (size_t)m->count * 4);
            __asm__ volatile("" : : "r"(m->out) : "memory");
        }
    return has_peer ? (bench_now(1) - from) / (double)calls : 0;
}

static bench_csv csv;

static void report(const measured *m, const bench_turns *t) {
    const double ours = bench_seconds(t, OURS), theirs = bench_seconds(t, PEER);
    const double scale = 1e9 / (double)m->count, rate = 1e-9 * m->j->bytes / ours;
    const double copied = 8e-9 * (double)m->count / bench_seconds(t, COPY);
    char peer_ns[24] = "", ratio[24] = "", row[80];
    if (theirs > 0) {
        snprintf(peer_ns, sizeof peer_ns, "%.3f", theirs * scale);
        snprintf(ratio, sizeof ratio, "%.2f", theirs / ours);
    }
    snprintf(row, sizeof row, "%s of %s, %lld", ro_op_describe(m->w->op)->name, m->w->inputs,
             (long long)m->count);
    bench_csv_row(&csv, row, ours, theirs);
    printf("%-7s %-14s %-6s %9lld %9.3f %9s %7s %9.1f %9.1f %7.2f\n", ro_ctx_backend(m->ctx),
           ro_op_describe(m->w->op)->name, m->w->inputs, (long long)m->count, ours * scale, peer_ns,
           ratio, rate, copied, rate / copied);
    fflush(stdout);
}

/* Returns false if this processor cannot run these kernels. */
static bool run_isa(const char *isa, const char *table, float **data, float *out) {
    const ro_options options = {.size = sizeof options, .backend = isa, .threads = 1};
    ro_ctx *ctx;
    if (ro_ctx_create(&options, &ctx) != RO_OK)
        return false;
    csv = bench_csv_open(table, "functions", isa, 1);
    for (int64_t count = SMALL; count <= LARGE; count *= LARGE / SMALL)
        for (int i = 0; i < WORKS; i++) {
            job j;
            bench_turns t;
            measured m = {ctx, &works[i], &j, count, out};
            if (!describe(&works[i], count, data, &j))
                exit(1);
            bench_in_turn(&t, SIDES, ROUNDS, sample_s, sample, &m);
            report(&m, &t);
        }
    ro_ctx_destroy(ctx);
    if (bench_csv_close(&csv) != 0)
        exit(1);
    return true;
}

/* Returns positive numbers, for which every function has a result, over the usual range. */
static float *numbers(uint32_t seed) {
    float *x = aligned_alloc(64, (size_t)LARGE * sizeof *x);
    for (int64_t i = 0; x && i < LARGE; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * 0x1p-22f + 0x1p-20f; /* (0, 4) */
    }
    return x;
}

static const char usage[] =
    "Usage: functions [--isa scalar|avx2|avx512] [--csv FILE]\n"
    "Functions of one element beside glibc's libmvec, and as bytes a second beside memcpy.\n"
    "Default: avx512 and avx2, if this processor has them. --csv: lines added to FILE.\n"
    "Example: functions --isa avx2";

int main(int argc, char **argv) {
    float *data[INPUTS], *out = numbers(99);
    const char *isa = NULL, *table = NULL;
    const bench_option known[] = {{"--isa", &isa, NULL, 0, 0}, {"--csv", &table, NULL, 0, 0}};
    bench_options(argc, argv, usage, known, sizeof known / sizeof known[0]);
    bool ok = out != NULL;
    for (uint32_t i = 0; i < INPUTS; i++)
        ok = (data[i] = numbers(i)) != NULL && ok;
    if (!ok)
        return fprintf(stderr, "functions: out of memory\n"), 1;
    printf("%-7s %-14s %-6s %9s %9s %9s %7s %9s %9s %7s\n", "backend", "operator", "inputs",
           "elements", "ns", "libmvec", "ratio", "GB/s", "memcpy", "ratio");
    if (isa && !run_isa(isa, table, data, out))
        return fprintf(stderr, "functions: %s\n", ro_ctx_error(NULL)), 1;
    if (!isa) {
        run_isa("avx512", table, data, out);
        run_isa("avx2", table, data, out);
    }
    for (int i = 0; i < INPUTS; i++)
        free(data[i]);
    free(out);
    return 0;
}
