/* A job of 8 steps, 8 nodes and 8 elements, and runs of it in memory: thousands a second, so that
 * disputes about it can be tried by the hundred thousand. */
#ifndef SIM_TOY_H
#define SIM_TOY_H

#include "verde/exec/exec.h"
#include "verde/exec/source.h"

enum { TOY_STEPS = 8, TOY_EVERY = 2, TOY_NODES = 8, TOY_ELEMENTS = 8, TOY_LEAVES = 2 };
enum { TOY_INIT_NODES = 2, TOY_RUN_LEAVES = TOY_STEPS / TOY_EVERY + 1 };

typedef struct {
    vd_program program;
    vd_hash hash;
    float data[TOY_ELEMENTS];
    const void *datum[1]; /* it, as vd_exec wants it */
    ro_ctx *ro;
} toy_job;

/* Ends the program with a sentence if there is no memory. */
void toy_job_open(toy_job *job);
void toy_job_close(toy_job *job);

/* All that a run computed. Stays where it is: its source points into it. */
typedef struct {
    const toy_job *job;
    vd_exec exec;
    vd_hash state[TOY_STEPS + 1];
    vd_hash tensor[TOY_STEPS + 1][TOY_LEAVES];
    float leaf[TOY_STEPS + 1][TOY_LEAVES][TOY_ELEMENTS];
    /* Of initialisation, which is number 0, and of step s, which is s + 1: */
    vd_records trace[TOY_STEPS + 1];
    uint32_t value[TOY_STEPS + 1][TOY_NODES][TOY_ELEMENTS];
    int32_t word;    /* the step's number, while it is asked for */
    vd_hash root;    /* of the run */
    uint64_t serial; /* unlike that of any other run of this process */
} toy_run;

/* Runs the job, with this fault unless it is NULL. */
void toy_run_open(toy_run *run, const toy_job *job, const vd_fault *fault);
void toy_run_close(toy_run *run);
vd_source toy_source(toy_run *run);

/* Aborts the program: what failed is the simulator, and nothing under test. */
void sim_need(bool holds, const char *what);

#endif
