/* Determinism by rounding logs beside determinism by a fixed order: the parts of the benchmark. */
#ifndef BENCH_DETERMINISM_H
#define BENCH_DETERMINISM_H

#include <stdio.h>
#include <sys/types.h>

#include "bench/workload.h"
#include "verde/log/calibrate.h"
#include "verde/log/rounded.h"

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

/* The cost and the log of a way, per step unless said otherwise. */
typedef struct {
    double seconds, ratio[2]; /* median; over free f32 and free f64, which ran in turn with it */
    double log_bytes, decided, corrected, escapes, elements;
    uint64_t peak_bytes;
} summary;

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
    double *distance;     /* of a free way's weights at checkpoints, from its base's, in float's
                             precision; NAN: not measured */
    int same;             /* the first way with the same state at every checkpoint */
    vd_rounded_count *of; /* of all steps, of each operator; shared with the process */
    summary sum;
    const char *error; /* NULL: none */
} variant;

static inline bool is_free(const variant *v) {
    return v->kind == FREE_F32 || v->kind == FREE_F64;
}

/* A trainer's roundings of a step by one operator; corrected: the mean of its auditors. */
typedef struct {
    double elements, decided, escapes, corrected;
} operator_count;

/* The operators of one trainer. */
typedef struct {
    int trainer; /* its way; -1: none ran */
    operator_count of[RO_OP_END];
} operator_table;

typedef struct {
    const char *model, *size, *out, *ways;
    long steps, interval, batch, sequence, calibration, minutes;
    long threads;             /* of each way that names no other number */
    bool pairs, cpu, symbols; /* cpu: times of the processor; symbols: some way has them */
    bool all;                 /* every way is printed, not only one of each kind */
    bool trims; /* processes give memory back after a turn, as what they take in steps does not fit
                 */
    int32_t bits;
    double memory;       /* bytes that processes may take together */
    const char *machine; /* what ran it: its processor, and cores */
    workload work;
    vd_thresholds thresholds;
    vd_calibration_count calibrated[RO_OP_END];
    const ro_profile *profile[PROFILES_MAX];
    int profiles;
    variant variant[VARIANTS_MAX];
    int variants, groups;
    operator_table operators[2]; /* of the first trainers with close calls and with symbols */
    int base[2];                 /* free f32 and free f64: in every group, for ratios */
    int64_t weights;             /* elements of the parameters */
    int weights_file;            /* where a process leaves them after a step */
    uint64_t peak;               /* bytes that were taken together */
    char dir[64];                /* of logs */
} benchmark;

extern benchmark bench;

_Noreturn void die(const char *what);

extern const char not_run[]; /* the error of a way that had no time */

/* ---- options.c, ways.c ---- */

/* Returns a directory whose page is to be written again (--render), or NULL. */
const char *parse_options(int argc, char **argv);
void open_job(void);
void add_ways(void);

/* ---- memory.c ---- */

/* Sets what each way is expected to take, and makes groups that fit into bench.memory; says so, or
 * dies. */
void plan_groups(void);
/* The baselines are in every group, where clocks are compared. */
bool in_group(int way, int group);
uint64_t memory_free(void);
uint64_t weights_bytes(void);

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

/* ---- report.c: tables and sentences as text ---- */

void print_rows(const benchmark *b, FILE *to); /* five rows: one of each kind */
void print_ways(const benchmark *b, FILE *to); /* every way */
void print_operators(const benchmark *b, FILE *to);
void print_words(const benchmark *b, FILE *to); /* what the numbers say */

/* ---- rows.c, counts.c: what is computed from results ---- */

/* Sets sum of every way and the operators, once all steps have run. */
void summarise(benchmark *b);
void count_operators(benchmark *b);

bool same_state(const variant *a, const variant *b, long step);
/* The same, at every checkpoint. */
bool same_states(const variant *a, const variant *b);
bool is_checkpoint(const benchmark *b, long step);
/* The next step that plots and result.json show: from 0 to the last one, at most 50 checkpoints
 * at equal distances. */
long next_shown(const benchmark *b, long step);
/* The first way of a kind that ran to its end, -1: there is none. */
int first_of(const benchmark *b, variant_kind kind, vd_log_encoding encoding);
/* The way that stands for its kind: the first, or the median auditor of the first trainer. */
int shown_of(const benchmark *b, variant_kind kind, vd_log_encoding encoding);
/* How many ways of this kind ran to their end, in how many different final states. */
void count_states(const benchmark *b, variant_kind kind, int *ways, int *states);
/* "GPT-2 124M" and "sim-wide": what names a job, and a way within its kind. */
const char *title_of(const benchmark *b);
const char *detail_of(const variant *v);

typedef enum { SAME_UNKNOWN, SAME_NO, SAME_YES } verdict;

/* A row of the short table. */
typedef struct {
    variant_kind kind;
    const char *name;
    int shown;        /* the way whose figures these are; -1: none ran */
    double corrected; /* auditors: the mean of all; else NAN */
    verdict same;     /* do all of this kind have the same states, auditors as their trainer? */
    char words[64];   /* the same in words */
} way_row;

enum { WAY_KINDS = ORDER_FIXED + 1 };

way_row row_of(const benchmark *b, variant_kind kind);

/* ---- files.c, read.c, page.c, bars.c, lines.c ---- */

/* Writes the files of bench.out, or dies. */
void write_files(const benchmark *b);
/* page.html alone. */
void write_rendered(const benchmark *b, const char *dir);
bool write_page(const benchmark *b, const char *path);
/* Reads result.json of a directory, or dies. */
void read_results(benchmark *b, const char *dir);

void plot_time(const benchmark *b, FILE *to);
void plot_logs(const benchmark *b, FILE *to);
void plot_distance(const benchmark *b, FILE *to);
void plot_loss(const benchmark *b, FILE *to);

#endif
