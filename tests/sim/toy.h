/* A job of 8 steps, 8 nodes and 8 elements, and runs of it in memory: they take so little time that
 * hundreds of thousands of disputes about it can be played. */
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
    const void *datum[1]; /* the same as vd_exec takes it */
    ro_ctx *ro;
} toy_job;

/* Ends the program with a message if memory runs out. */
void toy_job_open(toy_job *job);
void toy_job_close(toy_job *job);

/* All results of a run. It must not move: its source points into it. */
typedef struct {
    const toy_job *job;
    vd_exec exec;
    vd_hash state[TOY_STEPS + 1];
    vd_hash tensor[TOY_STEPS + 1][TOY_LEAVES];
    float leaf[TOY_STEPS + 1][TOY_LEAVES][TOY_ELEMENTS];
    /* Of initialisation (index 0) and of step s (index s + 1): */
    vd_records trace[TOY_STEPS + 1];
    uint32_t value[TOY_STEPS + 1][TOY_NODES][TOY_ELEMENTS];
    int32_t word;    /* the step's number, while it is being asked for */
    vd_hash root;    /* the run root */
    uint64_t serial; /* unique among all runs of this process */
} toy_run;

/* Runs the job, with this fault if it is not NULL. */
void toy_run_open(toy_run *run, const toy_job *job, const vd_fault *fault);
void toy_run_close(toy_run *run);
vd_source toy_source(toy_run *run);

/* Aborts unless `holds`: the simulator itself has failed, not the code under test. */
void sim_need(bool holds, const char *what);

#endif
