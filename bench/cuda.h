/* Shared by the parts of bench/cuda.c: the context, times taken in turn, and rows of the table. */
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

/* A turn: runs the work `times` times and waits for it. Returns 0 if that fails. */
typedef struct {
    int (*run)(void *user, int times);
    void *user;
} turn;

/* Gives the median seconds of both sides, measured in turn; theirs.run NULL: ours alone. -1: a turn
 * failed. */
void bench_times(const bench *b, turn ours, turn theirs, double *our_s, double *their_s);

/* Prints a row and writes it to the file at once. ratio is their time / our time, or a share of a
 * limit; 0: none. `floor` is the least acceptable ratio, 0: none. our_ms < 0: the work failed, for
 * the reason in the context. */
void bench_row(const bench *b, const char *work, double our_ms, double their_ms, double ratio,
               double floor, const char *note);
/* Prints a row of work that could not be measured; the program's exit code tells that, too. */
void bench_failed(const bench *b, const char *work, const char *why);

/* Allocates device memory with small values and no NaN; ends the program if there is none. */
float *bench_memory(const bench *b, int64_t count);

/* Runs products for half a second, so that the clocks have risen before anything is measured. */
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
