/* Speed on a GPU beside cuBLAS, the card's own copies and PyTorch: a table, and as JSON.
 *
 * Usage: cuda [--small] [--torch PYTHON] [--json FILE]. --small: tiny sizes, for tests/simt. */
#include "bench/cuda.h"
#include "bench/cuda_blas.h"
#include "verde/base/base.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 100, ROUNDS = 7, TIMES_MAX = 1000 };

typedef struct {
    char work[48], note[80];
    double ours, theirs, ratio, floor;
} row;
static row rows[ROWS_MAX];
static int row_count;

void bench_row(const char *work, double our_ms, double their_ms, double ratio, double floor,
               const char *note) {
    row *r = &rows[row_count];
    if (row_count == ROWS_MAX)
        return;
    row_count++;
    snprintf(r->work, sizeof r->work, "%s", work);
    snprintf(r->note, sizeof r->note, "%s", note ? note : "");
    r->ours = our_ms, r->theirs = their_ms, r->ratio = ratio, r->floor = floor;
    fprintf(stderr, "%s: %.3f ms, %.3f ms\n", work, our_ms, their_ms);
}

float *bench_memory(const bench *b, int64_t count) {
    float *host = malloc((size_t)count * sizeof *host), *out = NULL;
    for (int64_t i = 0; host && i < count; i++)
        host[i] = (float)((i * 2654435761u >> 12) % 2048) / 2048.0f - 0.5f;
    if (host)
        out = ro_alloc(b->ctx, (size_t)count * sizeof *host);
    if (!out || ro_write(b->ctx, out, host, (size_t)count * sizeof *host) != RO_OK) {
        fprintf(stderr, "bench: %s\n", host ? ro_ctx_error(b->ctx) : "out of memory");
        exit(1);
    }
    free(host);
    return out;
}

/* ---- times ---- */

static double timed(turn t, int times) {
    const double start = vd_seconds();
    return t.run(t.user, times) ? (vd_seconds() - start) / times : -1;
}

/* So many that a turn takes 30 ms. */
static int times_of(const bench *b, turn t) {
    if (b->small || timed(t, 1) < 0)
        return 1;
    const double once = timed(t, 2);
    const double times = once > 0 ? 0.03 / once : 1;
    return times < 1 ? 1 : times > TIMES_MAX ? TIMES_MAX : (int)times;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int count) {
    qsort(x, (size_t)count, sizeof *x, by_value);
    return x[0] < 0 ? -1 : x[count / 2];
}

void bench_times(const bench *b, turn ours, turn theirs, double *our_s, double *their_s) {
    double mine[ROUNDS], other[ROUNDS];
    const int rounds = b->small ? 1 : ROUNDS, my_times = times_of(b, ours);
    const int other_times = theirs.run ? times_of(b, theirs) : 0;
    for (int i = 0; i < rounds; i++) {
        mine[i] = timed(ours, my_times);
        other[i] = theirs.run ? timed(theirs, other_times) : -1;
    }
    *our_s = median(mine, rounds);
    *their_s = median(other, rounds);
}

/* ---- the table ---- */

static void print_table(const bench *b) {
    printf("\n%s\n%-34s %11s %11s %7s %6s\n", ro_ctx_device(b->ctx), "work", "ours, ms", "peer, ms",
           "ratio", "wanted");
    for (int i = 0; i < row_count; i++) {
        const row *r = &rows[i];
        printf("%-34s %11.3f ", r->work, r->ours);
        if (r->theirs > 0)
            printf("%11.3f ", r->theirs);
        else
            printf("%11s ", r->ratio > 0 ? "" : "skipped");
        if (r->ratio > 0)
            printf("%7.3f %6.3f", r->ratio, r->floor);
        printf("  %s\n", r->note);
    }
}

static int write_json(const bench *b, const char *name) {
    FILE *file = fopen(name, "w");
    if (!file)
        return 0;
    fprintf(file, "{\"device\": \"%s\", \"rows\": [", ro_ctx_device(b->ctx));
    for (int i = 0; i < row_count; i++)
        fprintf(file,
                "%s\n{\"work\": \"%s\", \"ours_ms\": %.6g, \"peer_ms\": %.6g, \"ratio\": %.6g, "
                "\"wanted\": %.6g, \"note\": \"%s\"}",
                i ? "," : "", rows[i].work, rows[i].ours, rows[i].theirs, rows[i].ratio,
                rows[i].floor, rows[i].note);
    fprintf(file, "]}\n");
    return fclose(file) == 0;
}

static void open_torch(bench *b, const char *python) {
    char line[200];
    const char *argv[] = {python, "bench/cuda_torch.py", b->small ? "small" : "full", NULL};
    b->torch = process_open(argv);
    if (process_ask(&b->torch, "hello", line, sizeof line)) {
        fprintf(stderr, "torch %s\n", line);
        return;
    }
    process_close(&b->torch);
    b->torch = (process){0};
}

int main(int argc, char **argv) {
    bench b = {0};
    signal(SIGPIPE, SIG_IGN); /* a peer may be gone */
    const char *json = NULL, *python = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--small") == 0)
            b.small = 1;
        else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            json = argv[++i];
        else if (strcmp(argv[i], "--torch") == 0 && i + 1 < argc)
            python = argv[++i];
        else
            return fprintf(stderr, "usage: cuda [--small] [--torch PYTHON] [--json FILE]\n"), 2;
    }
    if (ro_ctx_create(&(ro_options){.backend = "cuda:0"}, &b.ctx) != RO_OK)
        return fprintf(stderr, "bench: %s\n", ro_ctx_error(NULL)), 1;
    b.blas = !b.small && blas_open(); /* the shim's memory is not a device's */
    if (python)
        open_torch(&b, python);
    bench_products(&b);
    bench_streams(&b);
    bench_attention(&b);
    bench_training(&b);
    print_table(&b);
    if (b.blas)
        blas_close();
    process_close(&b.torch);
    if (json && !write_json(&b, json))
        fprintf(stderr, "bench: cannot write %s\n", json);
    ro_ctx_destroy(b.ctx);
    return 0;
}
