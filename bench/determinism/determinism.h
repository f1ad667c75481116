/* Determinism by rounding logs beside determinism by a fixed order: the parts of the benchmark. */
#ifndef BENCH_DETERMINISM_H
#define BENCH_DETERMINISM_H

#include <stdio.h>

#include "bench/workload.h"
#include "verde/exec/rounded.h"

enum { VARIANTS_MAX = 64, STEPS_MAX = WORKLOAD_STEPS_MAX };

typedef enum {
    FREE_F32,    /* (1) free kernels in binary32, nothing logged */
    FREE_F64,    /* (2) in binary64 */
    LOG_TRAINER, /* (3) */
    LOG_AUDITOR, /* (4) */
    ORDER_FIXED, /* (5) */
} variant_kind;

typedef struct {
    int64_t step;
    double seconds;
    float loss;
    uint64_t log_bytes;
    vd_rounded_count count; /* of this step */
    uint64_t peak_bytes;    /* of the process, so far */
    vd_hash state;
    char error[512]; /* empty: none */
} step_result;

/* One way to train, in a process of its own. */
typedef struct {
    variant_kind kind;
    char name[80];
    const ro_profile *profile; /* free kernels */
    vd_log_encoding encoding;  /* trainer, auditor */
    int trainer;               /* auditor: whose log it follows */
    const char *isa;           /* NULL: the best */
    int threads;
    float *weights; /* shared with the process, or NULL: filled after each step */
    /* results */
    step_result *result; /* of each step; [0] is initialisation */
    double *distance;    /* of each step, from the first variant with weights */
    const char *error;   /* NULL: none */
} variant;

typedef struct {
    const char *model, *size, *out;
    long steps, threads, batch, sequence;
    bool pairs;
    int32_t bits;
    workload work;
    vd_thresholds thresholds;
    variant variant[VARIANTS_MAX];
    int variants;
    int64_t weights; /* elements of the parameters */
    char dir[64];    /* of logs */
} benchmark;

/* ---- child.c ---- */

typedef struct {
    pid_t pid;
    int to, from;
} child;

/* Forks the process of a variant; it waits. */
bool child_open(child *c, const benchmark *b, int variant);
/* One step, or initialisation at the first call. False: the process is gone. */
bool child_step(child *c, step_result *out);
void child_close(child *c);

/* ---- report.c, page.c ---- */

void print_table(const benchmark *b, FILE *to);
void print_words(const benchmark *b, FILE *to); /* what the numbers say */
bool write_csv(const benchmark *b, const char *path);
bool write_json(const benchmark *b, const char *path);
bool write_page(const benchmark *b, const char *path);

typedef struct {
    double seconds, ratio;                         /* median; over the first variant's */
    double log_bytes, decided, corrected, escapes; /* a step */
    uint64_t peak_bytes, symbols;
} summary;
summary summary_of(const benchmark *b, int variant);
bool same_state(const variant *a, const variant *b, long step);

#endif
