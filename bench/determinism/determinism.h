/* Determinism by rounding logs beside determinism by a fixed order: the parts of the benchmark. */
#ifndef BENCH_DETERMINISM_H
#define BENCH_DETERMINISM_H

#include <stdio.h>
#include <sys/types.h>

#include "bench/workload.h"
#include "verde/exec/calibrate.h"
#include "verde/exec/rounded.h"

enum { VARIANTS_MAX = 64, PROFILES_MAX = 8, STEPS_MAX = WORKLOAD_STEPS_MAX };

typedef enum {
    FREE_F32,    /* (1) free kernels in binary32, nothing logged */
    FREE_F64,    /* (2) in binary64 */
    LOG_TRAINER, /* (3) */
    LOG_AUDITOR, /* (4) */
    ORDER_FIXED, /* (5) */
} variant_kind;

typedef struct {
    int64_t step;
    double seconds; /* the mean of its turn */
    float loss;
    uint64_t log_bytes;
    vd_rounded_count count; /* of this step */
    uint64_t peak_bytes;    /* of the process, so far */
    uint64_t resting_bytes; /* of the process, between steps */
    vd_hash state;          /* after a checkpoint; else zeros */
    char error[512];        /* empty: none */
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
    int group;              /* whose processes live at the same time */
    uint64_t resting, most; /* bytes expected between steps, and in one */
    /* results */
    step_result *result;  /* of each step; [0] is initialisation */
    double *distance;     /* at checkpoints, from the first way's weights; free f32 only; or NAN */
    vd_rounded_count *of; /* of all steps, of each operator; shared with the process */
    double ratio[2];      /* of times, to what ran in turn with it: free f32, free f64 */
    const char *error;    /* NULL: none */
} variant;

typedef struct {
    const char *model, *size, *out, *ways;
    long steps, interval, threads, batch, sequence, calibration, minutes;
    bool pairs, cpu, symbols; /* cpu: times of the processor; symbols: some way has them */
    bool trims; /* processes give memory back after a turn: what they take in steps does not fit */
    int32_t bits;
    double memory; /* bytes that processes may take together */
    workload work;
    vd_thresholds thresholds;
    vd_calibration_count calibrated[RO_OP_END];
    const ro_profile *profile[PROFILES_MAX];
    int profiles;
    variant variant[VARIANTS_MAX];
    int variants, groups;
    int base[2];      /* free f32 and free f64: in every group, for ratios */
    int64_t weights;  /* elements of the parameters */
    int weights_file; /* where a process leaves them after a step */
    uint64_t peak;    /* bytes that were taken together */
    char dir[64];     /* of logs */
} benchmark;

extern benchmark bench;

_Noreturn void die(const char *what);

extern const char not_run[]; /* the error of a way that had no time */

/* ---- options.c, ways.c ---- */

void parse_options(int argc, char **argv);
void open_job(void);
void add_ways(void);

/* ---- memory.c ---- */

/* Sets what each way is expected to take, and makes groups that fit into bench.memory; says so, or
 * dies. */
void plan_groups(void);
/* The baselines are in every group, where clocks are compared. */
bool in_group(int way, int group);
uint64_t memory_free(void);

/* ---- child.c ---- */

typedef struct {
    pid_t pid;
    int to, from;
} child;

/* Forks the process of a variant; it waits. */
bool child_open(child *c, const benchmark *b, int variant);
/* The steps up to the next checkpoint; initialisation at the first call. False: the process is
 * gone. */
bool child_turn(child *c, step_result *out, long steps);
/* How many steps there are from this one on, up to the next checkpoint. */
long turn_of(const benchmark *b, long step);
void child_close(child *c);
/* Memory that processes share; dies. */
void *shared(size_t size);

/* ---- report.c, counts.c, page.c ---- */

void print_table(const benchmark *b, FILE *to);
void print_words(const benchmark *b, FILE *to); /* what the numbers say */
void print_operators(const benchmark *b, FILE *to);
bool write_csv(const benchmark *b, const char *path);
bool write_json(const benchmark *b, const char *path);
bool write_page(const benchmark *b, const char *path);

typedef struct {
    double seconds, ratio[2];                      /* median; over free f32 and free f64 */
    double log_bytes, decided, corrected, escapes; /* a step */
    uint64_t peak_bytes, symbols;
} summary;
summary summary_of(const benchmark *b, int variant);
bool same_state(const variant *a, const variant *b, long step);
/* The first way of a kind that ran to its end, -1: there is none. */
int first_of(const benchmark *b, variant_kind kind, vd_log_encoding encoding);

#endif
