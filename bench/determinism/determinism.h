/* The benchmark that compares determinism by rounding logs with that by a fixed order. */
#ifndef BENCH_DETERMINISM_H
#define BENCH_DETERMINISM_H

#include <stdio.h>
#include <sys/types.h>

#include "bench/workload.h"
#include "verde/log/calibrate.h"
#include "verde/log/rounded.h"

enum { VARIANTS_MAX = 64, PROFILES_MAX = 8, STEPS_MAX = WORKLOAD_STEPS_MAX };

typedef enum {
    FREE_F32,    /* (1) free kernels in binary32, without a log */
    FREE_F64,    /* (2) free kernels in binary64, without a log */
    LOG_TRAINER, /* (3) binary64, and writes a log of roundings */
    LOG_AUDITOR, /* (4) binary64, and follows a trainer's log */
    ORDER_FIXED, /* (5) order-fixed kernels */
} variant_kind;

typedef struct {
    int64_t step;
    double seconds; /* mean of the steps of its turn */
    float loss;
    uint64_t log_bytes;
    vd_rounded_count count; /* of this step */
    uint64_t peak_bytes;    /* peak of the process so far */
    uint64_t resting_bytes; /* of the process between steps */
    vd_hash state;          /* set after a checkpoint; else zeros */
    char error[512];        /* empty: none */
} step_result;

/* The costs of a way, per step unless stated otherwise. */
typedef struct {
    double seconds, ratio[2]; /* median; its ratios to free f32 and free f64, run in turn */
    double log_bytes, decided, corrected, escapes, elements;
    uint64_t peak_bytes;
} summary;

/* One way to train, in a process of its own. */
typedef struct {
    variant_kind kind;
    char name[80];
    const ro_profile *profile; /* of free kernels */
    vd_log_encoding encoding;  /* of a trainer or auditor */
    int trainer;               /* of an auditor: index of the trainer whose log it follows */
    const char *isa;           /* NULL: the best */
    int threads;
    int group;              /* ways of one group have processes at the same time */
    uint64_t resting, most; /* expected bytes between steps, and during one */
    /* results */
    step_result *result; /* one per step; [0] is initialisation */
    double *distance; /* of a free way's weights from its base's at checkpoints, rounded to float;
                         NAN: not measured */
    int same;         /* index of the first way with the same state at every checkpoint */
    vd_rounded_count *of; /* totals of all steps, by operator; in memory shared with the process */
    summary sum;
    const char *error; /* NULL: none */
} variant;

static inline bool is_free(const variant *v) {
    return v->kind == FREE_F32 || v->kind == FREE_F64;
}

/* A trainer's roundings per step by one operator; `corrected` is the mean of its auditors. */
typedef struct {
    double elements, decided, escapes, corrected;
} operator_count;

/* The operators of one trainer. */
typedef struct {
    int trainer; /* index of its way; -1: none ran */
    operator_count of[RO_OP_END];
} operator_table;

typedef struct {
    const char *model, *size, *out, *ways;
    long steps, interval, batch, sequence, calibration, minutes;
    long threads;             /* of each way that sets no other number */
    bool pairs, cpu, symbols; /* cpu: measure CPU time; symbols: some way uses them */
    bool all;                 /* print every way, not only one of each kind */
    bool trims; /* processes free memory after a turn, since all of them in a step would not fit */
    int32_t bits;
    double memory;       /* bytes that all processes together may take */
    const char *machine; /* the processor and number of cores that ran it */
    workload work;
    vd_thresholds thresholds;
    vd_calibration_count calibrated[RO_OP_END];
    const ro_profile *profile[PROFILES_MAX];
    int profiles;
    variant variant[VARIANTS_MAX];
    int variants, groups;
    operator_table operators[2]; /* first trainers with close calls and with symbols */
    int base[2];                 /* free f32 and free f64, in every group, for ratios */
    int64_t weights;             /* elements of the parameters */
    int weights_file;            /* where a process writes its weights after a step */
    uint64_t peak;               /* the most bytes of all processes together */
    char dir[64];                /* of logs */
} benchmark;

extern benchmark bench;

_Noreturn void die(const char *what);

extern const char not_run[]; /* the error of a way for which there was no time */

/* ---- options.c, ways.c ---- */

/* Reads the command line. Returns a directory whose page is to be rendered (--render), or NULL. */
const char *parse_options(int argc, char **argv);
void open_job(void);
void add_ways(void);

/* ---- memory.c ---- */

/* Sets the memory that each way is expected to take, and forms groups that fit into bench.memory.
 * Prints the plan, or ends the program if nothing fits. */
void plan_groups(void);
/* Returns whether a way runs in a group: if clocks are compared, baselines run in all. */
bool in_group(int way, int group);
uint64_t memory_free(void);
uint64_t weights_bytes(void);

/* ---- child.c ---- */

typedef struct {
    pid_t pid;
    int to, from;
} child;

/* Forks the process of a variant, which waits for turns. */
bool child_open(child *c, const benchmark *b, int variant);
/* Runs initialisation, later the steps up to a checkpoint. Returns false if the child is gone. */
bool child_turn(child *c, step_result *out, long steps);
/* Returns how many steps the turn that starts at `step` has, up to the next checkpoint. */
long turn_of(const benchmark *b, long step);
void child_close(child *c);
/* Returns memory that processes share, or ends the program. */
void *shared(size_t size);

/* ---- report.c: tables and sentences as text ---- */

void print_rows(const benchmark *b, FILE *to); /* five rows: one of each kind */
void print_ways(const benchmark *b, FILE *to); /* every way */
void print_operators(const benchmark *b, FILE *to);
void print_words(const benchmark *b, FILE *to); /* what the numbers mean, in sentences */

/* ---- rows.c, counts.c: values derived from the results ---- */

/* These set `sum` of every way, and the operators' counts, after all steps have run. */
void summarise(benchmark *b);
void count_operators(benchmark *b);

bool same_state(const variant *a, const variant *b, long step);
/* Returns whether the states are the same at every checkpoint. */
bool same_states(const variant *a, const variant *b);
bool is_checkpoint(const benchmark *b, long step);
/* Returns the next step that plots and result.json show: from 0 to the last step, at most 50
 * checkpoints at equal distances. */
long next_shown(const benchmark *b, long step);
/* Returns the first way of a kind that ran to its end; -1 if there is none. */
int first_of(const benchmark *b, variant_kind kind, vd_log_encoding encoding);
/* Returns the way that stands for its kind: the first, or the first trainer's median auditor. */
int shown_of(const benchmark *b, variant_kind kind, vd_log_encoding encoding);
/* Counts the ways of this kind that ran to their end, and their different final states. */
void count_states(const benchmark *b, variant_kind kind, int *ways, int *states);
/* Return the name of the job, "GPT-2 124M", and of a way within its kind, "sim-wide". */
const char *title_of(const benchmark *b);
const char *detail_of(const variant *v);

typedef enum { SAME_UNKNOWN, SAME_NO, SAME_YES } verdict;

/* A row of the short table. */
typedef struct {
    variant_kind kind;
    const char *name;
    int shown;        /* index of the way whose figures are shown; -1: none ran */
    double corrected; /* of auditors: the mean of all; else NAN */
    verdict same;     /* have all of this kind the same states, auditors as their trainer? */
    char words[64];   /* the same as text */
} way_row;

enum { WAY_KINDS = ORDER_FIXED + 1 };

way_row row_of(const benchmark *b, variant_kind kind);

/* ---- files.c, read.c, page.c, bars.c, lines.c ---- */

/* Writes the files of bench.out, or ends the program. */
void write_files(const benchmark *b);
/* Writes page.html only. */
void write_rendered(const benchmark *b, const char *dir);
bool write_page(const benchmark *b, const char *path);
/* Reads result.json of a directory, or ends the program. */
void read_results(benchmark *b, const char *dir);

void plot_time(const benchmark *b, FILE *to);
void plot_logs(const benchmark *b, FILE *to);
void plot_distance(const benchmark *b, FILE *to);
void plot_loss(const benchmark *b, FILE *to);

#endif
