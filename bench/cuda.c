/* Speed on a GPU beside cuBLAS, the card's own copies and PyTorch: prints a table, and writes JSON.
 * Each row is printed, and the file rewritten, as soon as it is measured, so that a run that is cut
 * off keeps its rows.
 *
 * Usage: cuda [--small] [--quick] [--once] [--only PART,PART] [--torch PYTHON] [--json FILE]
 *            [--table FILE]; cuda --list: the parts' names
 * --small: tiny sizes, for tests/simt. --quick: three rounds instead of seven, and no part that
 * takes long to prepare. --once: one step after another one, for a profiler. --table: appends rows
 * to the file instead of printing the table at the end; for bench/cuda.sh, which runs each part as
 * a process of its own. */
#include "bench/bench.h"
#include "bench/cuda.h"
#include "bench/cuda_blas.h"
#include "verde/base/base.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 120, ROUNDS = 7, ROUNDS_QUICK = 3 };

typedef struct {
    char work[48], note[200];
    double ours, theirs, ratio, floor; /* ours < 0: failed, for the reason in the note */
} row;
static row rows[ROWS_MAX];
static int row_count, failures;
static char reason[200]; /* why our last turn failed: later calls may replace the error */

static void print_row(FILE *to, const row *r) {
    if (r->ours < 0) {
        fprintf(to, "%-34s %11s  %s\n", r->work, "FAILED", r->note);
        return;
    }
    fprintf(to, "%-34s %11.3f ", r->work, r->ours);
    if (r->theirs > 0)
        fprintf(to, "%11.3f ", r->theirs);
    else
        fprintf(to, "%11s ", r->ratio > 0 ? "" : "skipped");
    if (r->ratio > 0)
        fprintf(to, "%7.3f ", r->ratio);
    else
        fprintf(to, "%8s", "");
    if (r->ratio > 0 && r->floor > 0)
        fprintf(to, "%6.3f", r->floor);
    else
        fprintf(to, "%6s", "");
    fprintf(to, "  %s\n", r->note);
}

static void print_titles(FILE *to, const bench *b) {
    fprintf(to, "\n%s\n%-34s %11s %11s %7s %6s\n", ro_ctx_device(b->ctx), "work", "ours, ms",
            "peer, ms", "ratio", "wanted");
}

/* Writes a text as JSON: a note may quote a driver, with quotes and newlines. */
static void write_text(FILE *to, const char *text) {
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', to);
        putc(*text >= ' ' && *text <= '~' ? *text : ' ', to);
    }
    putc('"', to);
}

static void write_number(FILE *to, const char *name, double value, int known) {
    if (known)
        fprintf(to, ", \"%s\": %.6g", name, value);
    else
        fprintf(to, ", \"%s\": null", name);
}

/* Writes a row as one line: bench/cuda.sh joins the lines of several files. */
static void write_row(FILE *to, const row *r) {
    fprintf(to, "{\"work\": ");
    write_text(to, r->work);
    fprintf(to, ", \"result\": \"%s\"", r->ours < 0 ? "FAILED" : "measured");
    write_number(to, "ours_ms", r->ours, r->ours >= 0);
    write_number(to, "peer_ms", r->theirs, r->theirs > 0);
    write_number(to, "ratio", r->ratio, r->ours >= 0 && r->ratio > 0);
    write_number(to, "wanted", r->floor, r->ours >= 0 && r->ratio > 0 && r->floor > 0);
    fprintf(to, ", \"note\": ");
    write_text(to, r->note);
    putc('}', to);
}

static int write_rows(const bench *b, const char *name) {
    FILE *file = fopen(name, "w");
    if (!file)
        return 0;
    fprintf(file, "{\"device\": ");
    write_text(file, ro_ctx_device(b->ctx));
    fprintf(file, ", \"rows\": [");
    for (int i = 0; i < row_count; i++) {
        fprintf(file, i ? ",\n" : "\n");
        write_row(file, &rows[i]);
    }
    fprintf(file, "\n]}\n");
    return fclose(file) == 0;
}

/* Replaces the file by renaming, so that a process that is killed meanwhile leaves the old one. */
static void keep_rows(const bench *b) {
    char name[4096];
    if (!b->json || snprintf(name, sizeof name, "%s.next", b->json) >= (int)sizeof name)
        return;
    if (!write_rows(b, name) || rename(name, b->json) != 0)
        fprintf(stderr, "bench: cannot write %s\n", b->json);
}

static void keep_row(const bench *b, const row *r) {
    if (row_count == ROWS_MAX)
        return;
    rows[row_count++] = *r;
    print_row(stderr, r);
    if (b->table) {
        print_row(b->table, r);
        fflush(b->table);
    }
    keep_rows(b);
}

void bench_row(const bench *b, const char *work, double our_ms, double their_ms, double ratio,
               double floor, const char *note) {
    row r = {.ours = our_ms, .theirs = their_ms, .ratio = ratio, .floor = floor};
    if (our_ms < 0) {
        bench_failed(b, work, reason);
        return;
    }
    snprintf(r.work, sizeof r.work, "%s", work);
    snprintf(r.note, sizeof r.note, "%s", note ? note : "");
    keep_row(b, &r);
}

void bench_failed(const bench *b, const char *work, const char *why) {
    row r = {.ours = -1};
    failures++;
    snprintf(r.work, sizeof r.work, "%s", work);
    snprintf(r.note, sizeof r.note, "%s", why);
    keep_row(b, &r);
}

/* ---- memory ---- */

enum { PATTERN = 1 << 20 }; /* floats that are written, and then copied on within the device */

/* Fills device memory with 24-bit values: TF32, with its 11 bits, gives other products. */
static float *fill_memory(const bench *b, float *host, int64_t count) {
    const int64_t first = count < PATTERN ? count : PATTERN;
    float *out = ro_alloc(b->ctx, (size_t)count * sizeof *out);
    for (int64_t i = 0; i < first; i++)
        host[i] = (float)(i * 2654435761u >> 8 & 0xffffff) * 0x1p-24f - 0.5f;
    ro_status status =
        out ? ro_write(b->ctx, out, host, (size_t)first * sizeof *out) : RO_ERR_MEMORY;
    for (int64_t done = first, more; status == RO_OK && done < count; done += more) {
        more = done < count - done ? done : count - done;
        status = ro_copy(b->ctx, out + done, out, (size_t)more * sizeof *out);
    }
    return status == RO_OK ? out : NULL;
}

float *bench_memory(const bench *b, int64_t count) {
    float *host = malloc(PATTERN * sizeof *host);
    float *out = host ? fill_memory(b, host, count) : NULL;
    free(host);
    if (!out) {
        bench_failed(b, "memory", host ? ro_ctx_error(b->ctx) : "out of memory");
        exit(1);
    }
    return out;
}

/* ---- times ---- */

static double timed(turn t, int times) {
    const double start = vd_seconds();
    return t.run(t.user, times) ? (vd_seconds() - start) / times : -1;
}

static void keep_reason(const bench *b) {
    snprintf(reason, sizeof reason, "%s", ro_ctx_error(b->ctx));
}

enum { OURS, PEER, SIDES };

typedef struct {
    const bench *b;
    turn side[SIDES];
} pair;

static double sample(void *user, int way, int64_t times) {
    const pair *p = user;
    const double seconds = p->side[way].run ? timed(p->side[way], (int)times) : 0;
    if (seconds < 0 && way == OURS)
        keep_reason(p->b);
    return fmax(seconds, 0);
}

/* Returns -1 if a turn failed. */
static double median(const bench_turns *t, int way) {
    return bench_least(t, way) > 0 ? bench_seconds(t, way) : -1;
}

void bench_times(const bench *b, turn ours, turn theirs, double *our_s, double *their_s) {
    pair p = {b, {ours, theirs}};
    bench_turns t;
    const int rounds = b->small ? 1 : b->quick ? ROUNDS_QUICK : ROUNDS;
    bench_in_turn(&t, SIDES, rounds, b->small ? 0 : 0.03, sample, &p);
    *our_s = median(&t, OURS);
    *their_s = median(&t, PEER);
}

/* ---- the table ---- */

static void print_table(const bench *b) {
    print_titles(stdout, b);
    for (int i = 0; i < row_count; i++)
        print_row(stdout, &rows[i]);
}

/* ---- the program ---- */

enum { PEER_BLAS = 1, PEER_TORCH = 2 };

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

static const struct {
    const char *name;
    void (*run)(const bench *b);
    int peers; /* the peers that the part asks */
} parts[] = {
    {"products", bench_products, PEER_BLAS},
    {"fixed", bench_fixed, PEER_BLAS},
    {"layers", bench_layers, 0},
    {"convolutions", bench_convolutions, 0},
    {"packing", bench_packing, 0},
    {"streams", bench_streams, 0},
    {"attention", bench_attention, PEER_TORCH},
    {"training", bench_training, PEER_TORCH},
    {"compiled", bench_compiled, PEER_TORCH},
};
enum { PARTS = sizeof parts / sizeof parts[0] };

/* `only` is a list of names, separated by commas. */
static bool is_wanted(const char *only, const char *name) {
    const size_t size = strlen(name);
    for (const char *at = only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, size) == 0 && (at[size] == ',' || at[size] == 0))
            return true;
    return !only;
}

static bool parse(int argc, char **argv, bench *b, const char **python) {
    for (int i = 1; i < argc; i++) {
        const char *key = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(key, "--small") == 0)
            b->small = 1;
        else if (strcmp(key, "--quick") == 0)
            b->quick = 1;
        else if (strcmp(key, "--once") == 0)
            b->once = 1;
        else if (strcmp(key, "--only") == 0 && value)
            b->only = value, i++;
        else if (strcmp(key, "--json") == 0 && value)
            b->json = value, i++;
        else if (strcmp(key, "--torch") == 0 && value)
            *python = value, i++;
        else if (strcmp(key, "--table") == 0 && value && (b->table = fopen(value, "a")))
            i++;
        else
            return false;
    }
    return true;
}

static int list(void) {
    for (int i = 0; i < PARTS; i++)
        puts(parts[i].name);
    return 0;
}

static void run_parts(bench *b, const char *python) {
    int peers = 0;
    for (int i = 0; i < PARTS; i++)
        peers |= is_wanted(b->only, parts[i].name) ? parts[i].peers : 0;
    /* cuBLAS cannot read the shim's memory, which is host memory */
    b->blas = peers & PEER_BLAS && !b->small && blas_open();
    if (b->blas)
        fprintf(stderr, "cuBLAS %d\n", blas_version());
    if (python && peers & PEER_TORCH)
        open_torch(b, python);
    if (!b->small && !b->once)
        bench_warm(b);
    print_titles(stderr, b);
    for (int i = 0; i < PARTS; i++)
        if (is_wanted(b->only, parts[i].name))
            parts[i].run(b);
    if (!b->table)
        print_table(b);
}

int main(int argc, char **argv) {
    bench b = {0};
    const char *python = NULL;
    signal(SIGPIPE, SIG_IGN); /* a peer may be gone */
    setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (!parse(argc, argv, &b, &python)) {
        fprintf(stderr, "usage: cuda [--small] [--quick] [--once] [--only PART,PART] "
                        "[--torch PYTHON] [--json FILE] [--table FILE]\n");
        return 2;
    }
    if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = "cuda:0"}, &b.ctx) !=
        RO_OK)
        return fprintf(stderr, "bench: %s\n", ro_ctx_error(NULL)), 1;
    run_parts(&b, python);
    if (b.blas)
        blas_close();
    process_close(&b.torch);
    ro_ctx_destroy(b.ctx);
    return failures || (b.table && fclose(b.table) != 0) ? 1 : 0;
}
