/* Speed of librepops_blas against OpenBLAS, by the names that both define: what a program gains or
 * loses that is relinked. Usage: cpu_blas LIBREPOPS_BLAS [avx512|avx2 [THREADS]]
 *
 * Each round times both libraries in turn; a ratio is OpenBLAS's time over ours, the median of the
 * rounds. */
#include "bench/bench.h"

#include <dlfcn.h>

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

/* Bytes that have to be read. */
static double bytes(const work *w) {
    return 4.0 * (w->what == SDOT ? 2.0 * w->n : (double)w->m * w->n);
}

static double sample(const blas *b, const work *w, int threads, int64_t calls) {
    if (threads > 1)
        bench_pause(PAUSE_MS);
    run(b, w);
    const double start = bench_now(threads);
    for (int64_t i = 0; i < calls; i++)
        run(b, w);
    return (bench_now(threads) - start) / (double)calls;
}

static bench_csv csv;

static void measure(const blas *ours, const blas *peer, const work *w, int threads) {
    double time[ROUNDS], ratio[ROUNDS];
    const int64_t calls = (int64_t)fmax(1, sample_s / sample(ours, w, threads, 10));
    for (int r = 0; r < ROUNDS; r++) {
        time[r] = sample(ours, w, threads, calls);
        ratio[r] = sample(peer, w, threads, calls) / time[r];
    }
    const double median = bench_median(time, ROUNDS), middle = bench_median(ratio, ROUNDS);
    char row[80];
    printf("%-18s %6d x %-9d %12.2f us %8.1f GB/s %8.3f\n", names[w->what], w->m, w->n,
           1e6 * median, 1e-9 * bytes(w) / median, middle);
    fflush(stdout);
    snprintf(row, sizeof row, "%s %d x %d", names[w->what], w->m, w->n);
    bench_csv_row(&csv, row, median, median * middle);
}

/* ISO C has no conversion from object to function pointers; POSIX asks for it. */
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

int main(int argc, char **argv) {
    blas ours, peer;
    void (*set_threads)(int count);
    const char *table_file = NULL;
    if (argc > 3 && strcmp(argv[argc - 2], "--csv") == 0)
        table_file = argv[argc - 1], argc -= 2;
    const char *isa = argc > 2 ? argv[2] : bench_widest(), *threads = argc > 3 ? argv[3] : "1";
    if (argc < 2 || strcmp(argv[1], "--help") == 0)
        return fprintf(argc < 2 ? stderr : stdout,
                       "Usage: cpu_blas LIBREPOPS_BLAS [avx512|avx2 [THREADS]] [--csv FILE]\n"
                       "The CBLAS front beside OpenBLAS. Default: the widest that this processor "
                       "has, 1 thread. --csv: lines added to FILE.\n"
                       "Example: cpu_blas build/lib/librepops_blas.so.1 avx2 2\n"),
               argc < 2 ? 2 : 0;
    setenv("REPOPS_CPU", isa, 1);
    setenv("REPOPS_THREADS", threads, 1);
    setenv("OPENBLAS_CORETYPE", strcmp(isa, "avx2") == 0 ? "Haswell" : "SkylakeX", 1);
    unsetenv("OPENBLAS_L2_SIZE");
    load(argv[1], &ours);
    if (symbol(load("libopenblas.so.0", &peer), "openblas_set_num_threads", &set_threads))
        set_threads(atoi(threads));
    a = bench_uniform(1 << 24, 1), x = bench_uniform(1 << 24, UINT64_C(1) << 40);
    y = bench_uniform(1 << 24, UINT64_C(1) << 41);
    if (!a || !x || !y)
        return fprintf(stderr, "no memory\n"), 1;
    printf("%s, threads: %s; OpenBLAS's time / our time\n", isa, threads);
    csv = bench_csv_open(table_file, "cpu_blas", isa, atoi(threads));
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        measure(&ours, &peer, &table[i], atoi(threads));
    free(a), free(x), free(y);
    return bench_csv_close(&csv);
}
