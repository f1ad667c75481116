/* Shared by the parts of bench/cuda.c: contexts, times taken in turn, and rows of the table. */
#ifndef BENCH_CUDA_H
#define BENCH_CUDA_H

#include "bench/process.h"
#include "repops/device.h"

#include <stdio.h>

typedef struct {
    ro_ctx *ctx;
    process torch;    /* pid 0: none */
    const char *only; /* names of parts, or NULL for all */
    const char *json; /* rewritten with every row; NULL: none */
    FILE *table;      /* takes every row, NULL: none */
    int blas, small, quick, once;
} bench;

/* One turn: asks for the work `times` times and waits for it. 0: it cannot be done. */
typedef struct {
    int (*run)(void *user, int times);
    void *user;
} turn;

/* Medians of several turns each, ours and theirs one after the other; theirs.run NULL: alone. -1:
 * failed. */
void bench_times(const bench *b, turn ours, turn theirs, double *our_s, double *their_s);

/* A row, which is printed and in the file at once: ratio is their time / our time, or a share of a
 * limit; 0: there is none. `floor` is what is wanted of it, 0: nothing. our_ms < 0: it failed, the
 * context knows why. */
void bench_row(const bench *b, const char *work, double our_ms, double their_ms, double ratio,
               double floor, const char *note);
/* A row of what could not be measured; the program's exit code tells, too. */
void bench_failed(const bench *b, const char *work, const char *why);

/* Device memory; ends the program if there is none. Small values, no NaN. */
float *bench_memory(const bench *b, int64_t count);

/* Half a second of products, so that clocks have risen when something is measured. */
void bench_warm(const bench *b);

void bench_products(const bench *b);
void bench_fixed(const bench *b);
void bench_layers(const bench *b);
void bench_convolutions(const bench *b);
void bench_packing(const bench *b);
void bench_streams(const bench *b);
void bench_attention(const bench *b);
void bench_training(const bench *b);
void bench_compiled(const bench *b);

#endif
