/* The plan of a chain, shared by the files of ro_chain: its steps, and the runs they form. */
#ifndef REPOPS_CHAIN_PLAN_H
#define REPOPS_CHAIN_PLAN_H

#include <stdbool.h>

#include "repops/chain.h"
#include "repops/src/stages.h"

enum {
    RO_CHAIN_NONE = -1,
    RO_CHAIN_STRIP = 2048, /* elements; several strips of 8 KiB fit in the L1 cache */
    RO_CHAIN_STAGES = 2 * RO_CHAIN_STEPS,
};

/* A stage of a run, and the input or result of a step that it reads from memory, or NONE. */
typedef struct {
    ro_stage stage; /* stage.at stays NULL until the stage runs */
    int32_t operand;
} ro_chain_stage;

/* A run computes a strip from its first step up to step `last`: either one step by its kernel, or
 * several steps as stages, of which the first one reads operand `x`. */
typedef struct {
    uint32_t last;
    uint32_t first_stage, stages; /* stages is 0 where the kernel runs */
    int32_t x;
} ro_chain_run;

typedef struct {
    ro_ctx *ctx;
    int64_t count, block, strip, per_block; /* strips never cross the end of a block */
    uint32_t inputs, steps;
    const ro_chain_input *input;
    ro_chain_step step[RO_CHAIN_STEPS];
    int32_t dtype[RO_CHAIN_STEPS];
    int32_t operands[RO_CHAIN_STEPS];
    uint32_t last[RO_CHAIN_STEPS]; /* the last step that reads each result */
    int32_t slot[RO_CHAIN_STEPS];  /* place of a step's result in a worker's memory; NONE: output */
    int32_t tile[RO_CHAIN_INPUTS]; /* slot of an input that stages read, repeated to fill a strip */
    int32_t slots;
    bool filled[RO_CHAIN_STEPS]; /* the step is a number that a kernel reads as a strip */
    ro_chain_run run[RO_CHAIN_STEPS];
    uint32_t runs;
    ro_chain_stage stage[RO_CHAIN_STAGES];
    uint32_t stages;
    char *memory; /* `slots` strips for each thread */
    char *output;
} ro_chain_plan;

/* Returns whether step i is `fill` in place of a tensor: a number that later steps read. */
static inline bool ro_chain_is_number(const ro_chain_plan *p, uint32_t i) {
    return p->step[i].op == RO_OP_FILL && i + 1 < p->steps;
}

/* Cuts the steps into runs; p->last must be known. */
void ro_chain_find_runs(ro_chain_plan *p);
/* Runs a plan whose steps, types and inputs have been checked. */
ro_status ro_chain_run_plan(ro_chain_plan *p);

#endif
