/* The works that bench/elementwise.c measures, and the calls that they consist of. */
#ifndef BENCH_ELEMENTWISE_H
#define BENCH_ELEMENTWISE_H

#include <stdbool.h>

#include "bench/bench.h"

enum { INPUTS = 7, STEPS = 6, LEVELS = 4 };

typedef struct {
    const char *name;
    int64_t rows, cols;
} size;

/* One operator of a work. A letter stands for the shape of each input and of the output: f [rows,
 * cols], r [rows], c [cols], s [1]; i and u are r and f as i32 and u8; x is [rows / 64, 64, cols];
 * h and t are split into heads of 64: [rows / 64, cols / 64, 64, 64] and [rows / 64, 64, cols / 64,
 * 64]; R and C are [rows, 1] and [1, cols]. */
typedef struct {
    int op;
    const char *inputs;
    char output; /* 0: ro_infer infers it */
    int64_t attr[RO_MAX_ATTRS];
} step;

/* A row of the table, with the operators or the function that it measures. */
typedef struct {
    const char *name;
    step step[STEPS];
    bool wide;     /* the columns are GPT-2's logits */
    double passes; /* tensors of shape f that pass through memory; 0: they are counted */
} work;

/* Functions of the library in place of operators. */
enum {
    CROSS_ENTROPY = RO_OP_END,
    CROSS_ENTROPY_BACK,
    ADAMW,
    SGD,
    LAYER_NORM,
    LAYER_NORM_BACK,
    SOFTMAX,
    LOG_SOFTMAX,
    SOFTMAX_BACK,
    LOG_SOFTMAX_BACK,
    RMS_NORM,
    RMS_NORM_BACK,
    ROTARY,
    ROTARY_BACK,
};

/* elementwise_works.c: the works; an entry without a name ends the list. */
extern const work works[];

typedef struct {
    ro_call call;
    ro_shape in[INPUTS];
    const void *data[INPUTS];
} call;

typedef struct {
    int calls;
    call call[STEPS * LEVELS];
    int64_t rows, cols, passes;
    double bytes;
} job;

typedef struct {
    float *f[INPUTS], *out;
    int32_t *ids, *zero;
    uint8_t *u8;
} memory;

/* elementwise_calls.c: builds the calls of one work on tensors of one size. */
void describe(const work *w, const size *s, const memory *m, job *j);

#endif
