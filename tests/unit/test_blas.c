/* The CBLAS front: every order, transposition, increment and triangle compared with SPEC.md section
 * 3.1 written out; wrong arguments, many threads, fork. */
#include "repops/blas/blas.h"
#include "repops/src/math.h"
#include "repops/tools/op_data.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CASES = 300, GAP = 3 /* columns beyond the minimal leading dimension */ };

static const caller here = {.name = "here"}, fortran = {.name = "fortran", .shift = -1};

/* ---- numbers ---- */

static int roll(uint64_t seed, int what, int from, int to) {
    return from + (int)(case_word(seed, 8, what) % (uint64_t)(to - from + 1));
}

static float *numbers(size_t count, uint64_t seed, int input) {
    float *x = malloc((count + 1) * sizeof *x);
    cr_assert(x);
    for (size_t i = 0; i < count; i++)
        x[i] = ro_from_bits(case_f32(case_word(seed, input, (int64_t)i), DATA_NORMAL));
    return x;
}

static float *copy_of(const float *x, size_t count) {
    float *y = malloc((count + 1) * sizeof *y);
    cr_assert(y);
    memcpy(y, x, count * sizeof *x);
    return y;
}

static void expect_same(const float *got, const float *want, size_t count, const char *what,
                        uint64_t seed) {
    for (size_t i = 0; i < count; i++)
        cr_assert(ro_to_bits(got[i]) == ro_to_bits(want[i]), "%s, case %llu, element %zu: %a, %a",
                  what, (unsigned long long)seed, i, (double)got[i], (double)want[i]);
}

/* SPEC 3.1 for K terms; elements are `da` and `db` apart. */
static float dot(int k, const float *a, int64_t da, const float *b, int64_t db) {
    float tot = 0;
    for (int from = 0; from < k; from += RO_DOT_CHUNK) {
        float acc = 0;
        for (int i = from; i < k && i < from + RO_DOT_CHUNK; i++)
            acc = ro_fma(a[i * da], b[i * db], acc);
        tot = tot + acc;
    }
    return tot;
}

static float finish(float dot_ab, float alpha, float beta, float c) {
    return ro_canon(beta == 0 ? dot_ab * alpha : ro_fma(beta, c, dot_ab * alpha));
}

static float pick(uint64_t seed, int what, float a, float b, float c) {
    const float of[] = {a, b, c};
    return of[roll(seed, what, 0, 2)];
}

/* ---- matrices: element (i, j) at i * row + j * col ---- */

typedef struct {
    int64_t row, col;
    int ld;
    size_t count;
} layout;

static bool is_plain(int trans) {
    return trans == NO_TRANS || trans == CONJ_NO_TRANS;
}

static layout layout_of(int order, int trans, int rows, int cols) {
    const bool by_rows = (order == ROW_MAJOR) == is_plain(trans);
    const int ld = (by_rows ? cols : rows) + GAP;
    const size_t lines = (size_t)(by_rows ? rows : cols);
    return (layout){by_rows ? ld : 1, by_rows ? 1 : ld, ld, lines * (size_t)ld};
}

static void check_sgemm(uint64_t seed) {
    const int order = roll(seed, 0, ROW_MAJOR, COL_MAJOR),
              ta = roll(seed, 1, NO_TRANS, CONJ_NO_TRANS);
    const int tb = roll(seed, 2, NO_TRANS, CONJ_NO_TRANS), m = roll(seed, 3, 0, 40);
    const int n = roll(seed, 4, 0, 40), k = roll(seed, 5, 0, seed % 4 ? 30 : 600);
    const float alpha = pick(seed, 6, 1, -0.75f, 0.3f), beta = pick(seed, 7, 0, 1, 0.7f);
    const layout la = layout_of(order, ta, m, k), lb = layout_of(order, tb, k, n);
    const layout lc = layout_of(order, NO_TRANS, m, n);
    float *a = numbers(la.count, seed, 0), *b = numbers(lb.count, seed, 1);
    float *c = numbers(lc.count, seed, 2), *want = copy_of(c, lc.count);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float *at = want + i * lc.row + j * lc.col;
            *at = finish(dot(k, a + i * la.row, la.col, b + j * lb.col, lb.row), alpha, beta, *at);
        }
    blas_sgemm(here, order, ta, tb, m, n, k, alpha, a, la.ld, b, lb.ld, beta, c, lc.ld);
    expect_same(c, want, lc.count, "sgemm", seed);
    free(a), free(b), free(c), free(want);
}

Test(blas, sgemm_has_the_order_of_the_specification) {
    for (uint64_t seed = 0; seed < CASES; seed++)
        check_sgemm(seed);
}

/* Increments of either sign, never 0. */
static int roll_increment(uint64_t seed, int what) {
    const int inc = roll(seed, what, -3, 2);
    return inc >= 0 ? inc + 1 : inc;
}

static size_t span(int count, int inc) {
    return count ? (size_t)(1 + (count - 1) * abs(inc)) : 0;
}

/* Returns the index of logical element 0. */
static int64_t start(int count, int inc) {
    return inc < 0 ? (int64_t)(1 - count) * inc : 0;
}

static void check_sgemv(uint64_t seed) {
    const int order = roll(seed, 0, ROW_MAJOR, COL_MAJOR),
              t = roll(seed, 1, NO_TRANS, CONJ_NO_TRANS);
    const int m = roll(seed, 3, 1, 70), n = roll(seed, 4, 1, seed % 4 ? 30 : 600);
    const int incx = roll_increment(seed, 5), incy = roll_increment(seed, 6);
    const float alpha = pick(seed, 7, 1, -0.75f, 0.3f), beta = pick(seed, 8, 0, 1, 0.7f);
    const layout la = layout_of(order, NO_TRANS, m, n);
    const int rows = is_plain(t) ? m : n, depth = is_plain(t) ? n : m;
    float *a = numbers(la.count, seed, 0), *x = numbers(span(depth, incx), seed, 1);
    float *y = numbers(span(rows, incy), seed, 2), *want = copy_of(y, span(rows, incy));
    for (int i = 0; i < rows; i++) {
        float *at = want + start(rows, incy) + (int64_t)i * incy;
        const float *row = a + i * (is_plain(t) ? la.row : la.col);
        *at = finish(dot(depth, row, is_plain(t) ? la.col : la.row, x + start(depth, incx), incx),
                     alpha, beta, *at);
    }
    blas_sgemv(here, order, t, m, n, alpha, a, la.ld, x, incx, beta, y, incy);
    expect_same(y, want, span(rows, incy), "sgemv", seed);
    free(a), free(x), free(y), free(want);
}

Test(blas, sgemv_has_the_order_of_the_specification) {
    for (uint64_t seed = 0; seed < CASES; seed++)
        check_sgemv(seed);
}

Test(blas, sdot_has_the_order_of_the_specification) {
    for (uint64_t seed = 0; seed < CASES; seed++) {
        const int n = roll(seed, 0, 0, 1000), incx = roll(seed, 1, -3, 3);
        const int incy = roll(seed, 2, -3, 3);
        float *x = numbers(span(n, incx), seed, 0), *y = numbers(span(n, incy), seed, 1);
        const float want = n ? dot(n, x + start(n, incx), incx, y + start(n, incy), incy) : 0;
        const float got = blas_sdot(here, n, x, incx, y, incy);
        expect_same(&got, &want, 1, "sdot", seed);
        free(x), free(y);
    }
    cr_expect(blas_sdot(here, -1, NULL, 1, NULL, 1) == 0);
}

static void check_ssyrk(uint64_t seed) {
    const int order = roll(seed, 0, ROW_MAJOR, COL_MAJOR),
              t = roll(seed, 1, NO_TRANS, CONJ_NO_TRANS);
    const int uplo = roll(seed, 2, UPPER, LOWER), n = roll(seed, 3, 0, seed % 4 ? 40 : 300);
    const int k = roll(seed, 4, 0, seed % 5 ? 30 : 600);
    const float alpha = pick(seed, 6, 1, -0.75f, 0.3f), beta = pick(seed, 7, 0, 1, 0.7f);
    const layout la = layout_of(order, t, n, k), lc = layout_of(order, NO_TRANS, n, n);
    float *a = numbers(la.count, seed, 0), *c = numbers(lc.count, seed, 2);
    float *want = copy_of(c, lc.count);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float *at = want + i * lc.row + j * lc.col;
            if (uplo == UPPER ? j >= i : j <= i)
                *at = finish(dot(k, a + i * la.row, la.col, a + j * la.row, la.col), alpha, beta,
                             *at);
        }
    blas_ssyrk(here, order, uplo, t, n, k, alpha, a, la.ld, beta, c, lc.ld);
    expect_same(c, want, lc.count, "ssyrk", seed);
    free(a), free(c), free(want);
}

Test(blas, ssyrk_has_the_order_of_the_specification_and_leaves_the_other_triangle) {
    for (uint64_t seed = 0; seed < CASES; seed++)
        check_ssyrk(seed);
}

/* ---- wrong arguments: one line, nothing written ---- */

static FILE *captured;

static void capture(void) {
    captured = tmpfile();
    cr_assert(captured && fflush(stderr) == 0 && dup2(fileno(captured), STDERR_FILENO) >= 0);
}

static void expect_line(const char *want) {
    char got[300] = "";
    rewind(captured);
    cr_assert(fgets(got, sizeof got, captured), "nothing printed, expected: %s", want);
    got[strcspn(got, "\n")] = '\0';
    cr_expect_str_eq(got, want);
    cr_expect(fgets(got, sizeof got, captured) == NULL, "a second line: %s", got);
    rewind(captured);
    cr_assert(ftruncate(fileno(captured), 0) == 0);
}

Test(blas, wrong_arguments_are_named_and_change_nothing) {
    const float a[16] = {1};
    float c[16] = {7};
    capture();
    blas_sgemm(here, 7, NO_TRANS, NO_TRANS, 2, 2, 2, 1, a, 2, a, 2, 0, c, 2);
    expect_line("here: parameter 1 (order) must be CblasRowMajor or CblasColMajor");
    blas_sgemm(here, ROW_MAJOR, 0, NO_TRANS, 2, 2, 2, 1, a, 2, a, 2, 0, c, 2);
    expect_line("here: parameter 2 (transa) must be CblasNoTrans, CblasTrans, CblasConjTrans or "
                "CblasConjNoTrans");
    blas_sgemm(fortran, COL_MAJOR, NO_TRANS, 0, 2, 2, 2, 1, a, 2, a, 2, 0, c, 2);
    expect_line("fortran: parameter 2 (transb) must be N, T or C");
    blas_sgemm(here, ROW_MAJOR, NO_TRANS, NO_TRANS, -1, 2, 2, 1, a, 2, a, 2, 0, c, 2);
    expect_line("here: parameter 4 (m) must be at least 0, got -1");
    blas_sgemm(here, ROW_MAJOR, NO_TRANS, NO_TRANS, 2, 2, 3, 1, a, 2, a, 2, 0, c, 2);
    expect_line("here: parameter 9 (lda) must be at least 3, got 2");
    blas_sgemm(fortran, COL_MAJOR, NO_TRANS, NO_TRANS, 2, 2, 3, 1, a, 2, a, 2, 0, c, 2);
    expect_line("fortran: parameter 10 (ldb) must be at least 3, got 2");
    blas_sgemm(here, COL_MAJOR, NO_TRANS, NO_TRANS, 2, 0, 0, 1, a, 2, a, 1, 0, c, 1);
    expect_line("here: parameter 14 (ldc) must be at least 2, got 1");
    blas_sgemv(here, ROW_MAJOR, NO_TRANS, 2, 3, 1, a, 2, a, 1, 0, c, 1);
    expect_line("here: parameter 7 (lda) must be at least 3, got 2");
    blas_sgemv(fortran, COL_MAJOR, NO_TRANS, 2, 2, 1, a, 2, a, 0, 0, c, 1);
    expect_line("fortran: parameter 8 (incx) must be an increment other than 0");
    blas_sgemv(here, ROW_MAJOR, NO_TRANS, 2, 2, 1, a, 2, a, 1, 0, c, 0);
    expect_line("here: parameter 12 (incy) must be an increment other than 0");
    blas_ssyrk(here, ROW_MAJOR, 0, NO_TRANS, 2, 2, 1, a, 2, 0, c, 2);
    expect_line("here: parameter 2 (uplo) must be CblasUpper or CblasLower");
    blas_ssyrk(fortran, COL_MAJOR, UPPER, NO_TRANS, 3, 2, 1, a, 2, 0, c, 3);
    expect_line("fortran: parameter 7 (lda) must be at least 3, got 2");
    blas_ssyrk(here, ROW_MAJOR, UPPER, NO_TRANS, 3, 2, 1, a, 2, 0, c, 2);
    expect_line("here: parameter 11 (ldc) must be at least 3, got 2");
    for (int i = 0; i < 16; i++)
        cr_expect(c[i] == (i == 0 ? 7.0f : 0.0f));
}

Test(blas, environment_that_makes_no_sense_is_named_and_passed_over) {
    const float one = 1;
    capture();
    setenv("REPOPS_THREADS", "many", 1);
    cr_expect(blas_sdot(here, 1, &one, 1, &one, 1) == 1);
    expect_line("librepops_blas: REPOPS_THREADS must be 0..1024; using one thread per core");
}

static void expect_passed_over(const char *backend, const char *words) {
    const float one = 1;
    char got[300] = "";
    capture();
    setenv("REPOPS_CPU", backend, 1);
    cr_expect(blas_sdot(here, 1, &one, 1, &one, 1) == 1);
    rewind(captured);
    cr_expect(fgets(got, sizeof got, captured) && strstr(got, words), "%s", got);
}

Test(blas, backend_that_is_not_here_is_named_and_passed_over) {
    expect_passed_over("abacus", "abacus");
}

Test(blas, device_that_is_not_here_is_named_and_passed_over) {
    setenv("REPOPS_CUDA_LIBRARY", "/nowhere/librepops_cuda.so.1", 1);
    expect_passed_over("cuda:0", "/nowhere/librepops_cuda.so.1");
}

/* ---- threads and processes ---- */

enum { SIDE = 150, CALLERS = 6, CALLS = 40 };

static float *shared_a, *shared_want;

static void multiply(float *c) {
    blas_sgemm(here, ROW_MAJOR, NO_TRANS, TRANS, SIDE, SIDE, SIDE, 1, shared_a, SIDE, shared_a,
               SIDE, 0, c, SIDE);
}

static void *call_often(void *wrong) {
    float *c = malloc(SIDE * SIDE * sizeof *c);
    for (int i = 0; i < CALLS; i++) {
        multiply(c);
        if (memcmp(c, shared_want, SIDE * SIDE * sizeof *c) != 0)
            *(int *)wrong = 1;
    }
    free(c);
    return NULL;
}

static void prepare(void) {
    shared_a = numbers(SIDE * SIDE, 1, 0);
    shared_want = malloc(SIDE * SIDE * sizeof(float));
    setenv("REPOPS_THREADS", "3", 1);
    multiply(shared_want);
}

static void finish_shared(void) {
    free(shared_a);
    free(shared_want);
}

static int threads_agree(void) {
    pthread_t thread[CALLERS];
    int wrong[CALLERS] = {0}, all = 0;
    for (int i = 0; i < CALLERS; i++)
        cr_assert(pthread_create(&thread[i], NULL, call_often, &wrong[i]) == 0);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(thread[i], NULL);
        all |= wrong[i];
    }
    return !all;
}

Test(blas, many_threads_call_at_once) {
    prepare();
    cr_expect(threads_agree());
    finish_shared();
}

typedef struct {
    atomic_bool *stop;
    atomic_int calls;
    int wrong;
} busy_thread;

static void *call_until_stopped(void *user) {
    busy_thread *self = user;
    float *c = malloc(SIDE * SIDE * sizeof *c);
    while (!atomic_load(self->stop)) {
        multiply(c);
        self->wrong |= memcmp(c, shared_want, SIDE * SIDE * sizeof *c) != 0;
        atomic_fetch_add(&self->calls, 1);
    }
    free(c);
    return NULL;
}

/* Does a child forked now get correct results? */
static bool child_calls(void) {
    const pid_t child = fork();
    if (child == 0) {
        int wrong = 0;
        call_often(&wrong);
        _exit(wrong);
    }
    int status = -1;
    cr_assert(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Forks during calls, but not while a thread starts or ends (fork_at_rest.h). */
Test(blas, child_of_fork_calls_while_other_threads_do) {
    prepare();
    atomic_bool stop = false;
    busy_thread busy[2] = {{.stop = &stop}, {.stop = &stop}};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        cr_assert(pthread_create(&thread[i], NULL, call_until_stopped, &busy[i]) == 0);
        while (atomic_load(&busy[i].calls) == 0)
            sched_yield();
    }
    for (int i = 0; i < 5; i++)
        cr_expect(child_calls());
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        cr_expect(!busy[i].wrong);
    }
    finish_shared();
}
