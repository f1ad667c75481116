/* Shared by the benchmarks: clocks, ways (alternatives that are timed in turn), medians, data,
 * options, and tables written as CSV. */
#ifndef BENCH_H
#define BENCH_H

#include "repops/repops.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- clocks and medians ---- */

static inline double clock_s(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Returns CPU time for one thread, so that other processes do not count; else wall-clock time. */
static inline double bench_now(int threads) {
    return clock_s(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC);
}

static inline void bench_pause(int milliseconds) {
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
}

static inline int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Returns the median; sorts x. */
static inline double bench_median(double *x, int count) {
    qsort(x, (size_t)count, sizeof *x, compare_doubles);
    return count % 2 ? x[count / 2] : (x[count / 2 - 1] + x[count / 2]) / 2;
}

/* ---- ways that are timed in turn ---- */

enum { BENCH_WAYS = 16, BENCH_ROUNDS = 128 };

/* Returns a way's mean seconds per call over `calls` calls; 0 if the way is not available. */
typedef double (*bench_sample)(void *user, int way, int64_t calls);

typedef struct {
    int ways, rounds;
    int64_t calls[BENCH_WAYS]; /* calls per sample; 0: the way is not available */
    double seconds[BENCH_WAYS][BENCH_ROUNDS];
} bench_turns;

/* Returns how many calls take sample_s, at least one; 0 if the way is not available. Finding this
 * out also warms up. */
static inline int64_t bench_calls(bench_sample sample, void *user, int way, double sample_s) {
    for (int64_t calls = 1;;) {
        const double time = sample(user, way, calls) * (double)calls;
        if (time <= 0)
            return 0;
        if (time >= sample_s / 2)
            return (int64_t)fmax(1, sample_s / time * (double)calls);
        calls *= time < sample_s / 20 ? 8 : 2;
    }
}

/* Takes a sample of every way in every round, so that a slow moment of the machine affects all
 * ways. Each round begins with another way. sample_s: seconds of a sample; 0: one call. */
static inline void bench_in_turn(bench_turns *t, int ways, int rounds, double sample_s,
                                 bench_sample sample, void *user) {
    *t = (bench_turns){.ways = ways, .rounds = rounds};
    for (int w = 0; w < ways; w++)
        t->calls[w] = bench_calls(sample, user, w, sample_s);
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < ways; i++) {
            const int w = (i + r) % ways;
            t->seconds[w][r] = t->calls[w] ? sample(user, w, t->calls[w]) : 0;
        }
}

/* Returns the median seconds of a way; 0 if it is not available. */
static inline double bench_seconds(const bench_turns *t, int way) {
    double x[BENCH_ROUNDS];
    memcpy(x, t->seconds[way], sizeof x);
    return bench_median(x, t->rounds);
}

static inline double bench_least(const bench_turns *t, int way) {
    double least = t->seconds[way][0];
    for (int r = 1; r < t->rounds; r++)
        least = fmin(least, t->seconds[way][r]);
    return least;
}

/* Returns the median over the rounds of a way's time over that of `base`; 0 if one is missing. */
static inline double bench_ratio(const bench_turns *t, int way, int base) {
    double x[BENCH_ROUNDS];
    for (int r = 0; r < t->rounds; r++)
        x[r] = t->seconds[way][r] / t->seconds[base][r];
    return t->calls[way] && t->calls[base] ? bench_median(x, t->rounds) : 0;
}

/* ---- data ---- */

static inline uint64_t bench_word(uint64_t i) {
    uint64_t z = i * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns uniform numbers in (-1, 1), aligned to 64 bytes. */
static inline float *bench_uniform(int64_t count, uint64_t seed) {
    float *x = aligned_alloc(64, ((size_t)count * sizeof *x + 127) / 64 * 64);
    for (int64_t i = 0; x && i < count; i++)
        x[i] = (float)(int32_t)(bench_word(seed + (uint64_t)i) >> 32) * 0x1p-31f;
    return x;
}

/* Returns standard normal numbers, aligned to 64 bytes. */
static inline float *bench_normal(int64_t count, uint64_t seed) {
    float *x = bench_uniform(count, 0);
    for (int64_t i = 0; x && i < count; i++) {
        const uint64_t h = bench_word(seed + (uint64_t)i);
        const double u = (double)((h >> 40) + 1) * 0x1p-24, v = (double)(h & 0xffffff) * 0x1p-24;
        x[i] = (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
    }
    return x;
}

/* ---- options ---- */

/* An option with its value: a text, or a number from `least` to `most`. An option with neither
 * takes no value and sets *flag. */
typedef struct {
    const char *name;
    const char **text;
    int *number, least, most;
    bool *flag;
} bench_option;

/* Sets an option from its value. Returns 0, after printing why, if the value is invalid. */
static inline int bench_set(const bench_option *o, const char *value) {
    char *end;
    if (o->text) {
        *o->text = value;
        return 1;
    }
    const long x = strtol(value, &end, 10);
    if (*value == '\0' || *end != '\0' || x < o->least || x > o->most) {
        fprintf(stderr, "%s %s: expected a number from %d to %d\n", o->name, value, o->least,
                o->most);
        return 0;
    }
    *o->number = (int)x;
    return 1;
}

/* Reads the command line. --help prints `usage` and exits with 0; an unknown option or an invalid
 * value exits with 2. */
static inline void bench_options(int argc, char **argv, const char *usage,
                                 const bench_option *known, int count) {
    for (int i = 1; i < argc; i++) {
        int k = 0;
        if (strcmp(argv[i], "--help") == 0) {
            puts(usage);
            exit(0);
        }
        while (k < count && strcmp(argv[i], known[k].name) != 0)
            k++;
        if (k == count)
            fprintf(stderr, "%s: no such option; --help lists them\n", argv[i]);
        else if (known[k].flag)
            *known[k].flag = true;
        else if (i + 1 == argc)
            fprintf(stderr, "%s: expected a value after it\n", argv[i]);
        if (k == count || (!known[k].flag && (i + 1 == argc || !bench_set(&known[k], argv[++i]))))
            exit(2);
    }
}

/* Returns the name of the widest instruction set here, which the library uses by default. */
static inline const char *bench_widest(void) {
    ro_ctx *ctx;
    if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &ctx) != RO_OK) {
        fprintf(stderr, "%s\n", ro_ctx_error(NULL));
        exit(1);
    }
    const char *name = ro_ctx_backend(ctx);
    ro_ctx_destroy(ctx);
    return name;
}

/* ---- tables as CSV: --csv FILE appends lines ---- */

/* Opens a file to append lines; `columns` is the first line of a new file. Returns NULL for no
 * path; ends the process where it cannot be written. */
static inline FILE *bench_csv_file(const char *path, const char *columns) {
    FILE *file = path ? fopen(path, "a") : NULL;
    if (path && (!file || fseek(file, 0, SEEK_END) != 0)) {
        perror(path);
        exit(1);
    }
    if (file && ftell(file) == 0)
        fprintf(file, "%s\n", columns);
    return file;
}

typedef struct {
    FILE *file; /* NULL: none */
    const char *benchmark, *isa;
    int threads;
} bench_csv;

static inline bench_csv bench_csv_open(const char *path, const char *benchmark, const char *isa,
                                       int threads) {
    return (bench_csv){bench_csv_file(path, "benchmark,isa,threads,row,seconds,peer_seconds"),
                       benchmark, isa, threads};
}

/* peer: the peer's seconds, 0 if there is no peer. */
static inline void bench_csv_row(const bench_csv *csv, const char *row, double seconds,
                                 double peer) {
    if (!csv->file)
        return;
    fprintf(csv->file, "%s,%s,%d,\"%s\",%.9g,", csv->benchmark, csv->isa, csv->threads, row,
            seconds);
    if (peer > 0)
        fprintf(csv->file, "%.9g", peer);
    fputc('\n', csv->file);
    fflush(csv->file);
}

/* Returns 1 if the file could not be written, as an exit code. */
static inline int bench_csv_close(bench_csv *csv) {
    return csv->file && fclose(csv->file) != 0;
}

/* ---- geometric means ---- */

/* Accumulates a geometric mean. */
typedef struct {
    double log_sum;
    int count;
} bench_mean;

static inline void bench_add(bench_mean *mean, double x) {
    if (x > 0)
        mean->log_sum += log(x), mean->count++;
}

static inline double bench_value(const bench_mean *mean) {
    return mean->count ? exp(mean->log_sum / mean->count) : 0;
}

#endif
