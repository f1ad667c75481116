/* Speed of librepops_blas against OpenBLAS through the routines that both define: what a relinked
 * program gains or loses. A ratio is OpenBLAS's time over ours, the median of the rounds. */
#include "bench/bench.h"

#include <dlfcn.h>

enum { OURS, PEER, SIDES };
enum { ROUNDS = 9, PAUSE_MS = 40, ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112, UPPER = 121 };

static const double sample_s = 0.005;

typedef struct {
    float (*sdot)(int n, const float *x, int incx, const float *y, int incy);
    void (*sgemv)(int order, int trans, int m, int n, float alpha, const float *a, int lda,
                  const float *x, int incx, float beta, float *y, int incy);
    void (*ssyrk)(int order, int uplo, int trans, int n, int k, float alpha, const float *a,
                  int lda, float beta, float *c, int ldc);
} blas;

typedef enum { SDOT, SGEMV, SGEMV_TRANS, SSYRK } routine;
static const char *const names[] = {"sdot", "sgemv", "sgemv, transposed", "ssyrk"};

typedef struct {
    routine what;
    int m, n; /* sdot: n elements; sgemv: a is m x n; ssyrk: c is m x m, k = n */
} work;

static const work table[] = {
    {SDOT, 1, 256},           {SDOT, 1, 1024},          {SDOT, 1, 4096},
    {SDOT, 1, 16384},         {SDOT, 1, 65536},         {SDOT, 1, 1 << 20},
    {SDOT, 1, 1 << 24},       {SGEMV, 256, 256},        {SGEMV, 2304, 768},
    {SGEMV, 768, 3072},       {SGEMV, 4096, 4096},      {SGEMV_TRANS, 256, 256},
    {SGEMV_TRANS, 2304, 768}, {SGEMV_TRANS, 768, 3072}, {SGEMV_TRANS, 4096, 4096},
    {SSYRK, 256, 256},        {SSYRK, 768, 512},        {SSYRK, 2048, 512},
};

static float *a, *x, *y;

static void run(const blas *b, const work *w) {
    switch (w->what) {
    case SDOT: y[0] = b->sdot(w->n, a, 1, x, 1); break;
    case SGEMV: b->sgemv(ROW_MAJOR, NO_TRANS, w->m, w->n, 1, a, w->n, x, 1, 0, y, 1); break;
    case SGEMV_TRANS: b->sgemv(ROW_MAJOR, TRANS, w->m, w->n, 1, a, w->n, x, 1, 0, y, 1); break;
    case SSYRK: b->ssyrk(ROW_MAJOR, UPPER, NO_TRANS, w->m, w->n, 1, a, w->n, 0, y, w->m); break;
    }
}

/* Returns the bytes that have to be read. */
static double bytes(const work *w) {
    return 4.0 * (w->what == SDOT ? 2.0 * w->n : (double)w->m * w->n);
}

typedef struct {
    const blas *side[SIDES];
    const work *work;
    int threads;
} pair;

static double sample(void *user, int way, int64_t calls) {
    const pair *p = user;
    if (p->threads > 1)
        bench_pause(PAUSE_MS);
    run(p->side[way], p->work);
    const double start = bench_now(p->threads);
    for (int64_t i = 0; i < calls; i++)
        run(p->side[way], p->work);
    return (bench_now(p->threads) - start) / (double)calls;
}

static bench_csv csv;

static void measure(pair *p, const work *w) {
    bench_turns t;
    char row[80];
    p->work = w;
    bench_in_turn(&t, SIDES, ROUNDS, sample_s, sample, p);
    const double ours = bench_seconds(&t, OURS), ratio = bench_ratio(&t, PEER, OURS);
    printf("%-18s %6d x %-9d %12.2f us %8.1f GB/s %8.3f\n", names[w->what], w->m, w->n, 1e6 * ours,
           1e-9 * bytes(w) / ours, ratio);
    fflush(stdout);
    snprintf(row, sizeof row, "%s %d x %d", names[w->what], w->m, w->n);
    bench_csv_row(&csv, row, ours, ours * ratio);
}

/* ISO C cannot convert object pointers to function pointers, but POSIX requires that it works. */
static int symbol(void *library, const char *name, void *function) {
    void *found = library ? dlsym(library, name) : NULL;
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static void *load(const char *path, blas *b) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (symbol(library, "cblas_sdot", &b->sdot) && symbol(library, "cblas_sgemv", &b->sgemv) &&
        symbol(library, "cblas_ssyrk", &b->ssyrk))
        return library;
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
}

static const char usage[] =
    "Usage: cpu_blas LIBREPOPS_BLAS [--isa avx512|avx2] [--threads N] [--csv FILE]\n"
    "The CBLAS front beside OpenBLAS. Default: the widest that this processor has, 1 thread.\n"
    "--csv: lines added to FILE.\n"
    "Example: cpu_blas build/lib/librepops_blas.so.1 --isa avx2 --threads 2";

int main(int argc, char **argv) {
    blas ours, peer;
    pair p = {{&ours, &peer}, NULL, 1};
    void (*set_threads)(int count);
    const char *isa = NULL, *table_file = NULL;
    char count[12];
    const bool named = argc > 1 && strncmp(argv[1], "--", 2) != 0;
    const bench_option known[] = {{"--isa", &isa, NULL, 0, 0},
                                  {"--threads", NULL, &p.threads, 1, 1024},
                                  {"--csv", &table_file, NULL, 0, 0}};
    bench_options(argc - named, argv + named, usage, known, sizeof known / sizeof known[0]);
    if (!named)
        return fprintf(stderr, "cpu_blas: expected the library's path; --help says more\n"), 2;
    isa = isa ? isa : bench_widest();
    snprintf(count, sizeof count, "%d", p.threads);
    setenv("REPOPS_CPU", isa, 1);
    setenv("REPOPS_THREADS", count, 1);
    setenv("OPENBLAS_CORETYPE", strcmp(isa, "avx2") == 0 ? "Haswell" : "SkylakeX", 1);
    unsetenv("OPENBLAS_L2_SIZE");
    load(argv[1], &ours);
    if (symbol(load("libopenblas.so.0", &peer), "openblas_set_num_threads", &set_threads))
        set_threads(p.threads);
    a = bench_uniform(1 << 24, 1), x = bench_uniform(1 << 24, UINT64_C(1) << 40);
    y = bench_uniform(1 << 24, UINT64_C(1) << 41);
    if (!a || !x || !y)
        return fprintf(stderr, "no memory\n"), 1;
    printf("%s, threads: %d; OpenBLAS's time / our time\n", isa, p.threads);
    csv = bench_csv_open(table_file, "cpu_blas", isa, p.threads);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        measure(&p, &table[i]);
    free(a), free(x), free(y);
    return bench_csv_close(&csv);
}
