/* What the files of ro_chain share: its plan, and the runs of its steps. */
#ifndef REPOPS_CHAIN_PLAN_H
#define REPOPS_CHAIN_PLAN_H

#include <stdbool.h>

#include "repops/chain.h"
#include "repops/src/stages.h"

enum {
    RO_CHAIN_NONE = -1,
    RO_CHAIN_STRIP = 2048, /* elements; some strips of 8 KiB fit in a first-level cache */
    RO_CHAIN_STAGES = 2 * RO_CHAIN_STEPS,
};

/* A stage of a run. Its operand is read from memory: an input or the result of a step. */
typedef struct {
    ro_stage stage; /* at: NULL until it runs */
    int32_t operand;
} ro_chain_stage;

/* A run computes a strip up to step `last`: this step by its kernel, or several steps as stages, of
 * which the first one reads `x`. */
typedef struct {
    uint32_t last;
    uint32_t first_stage, stages; /* 0: by its kernel */
    int32_t x;
} ro_chain_run;

typedef struct {
    ro_ctx *ctx;
    int64_t count, block, strip, per_block; /* no strip crosses the end of a block */
    uint32_t inputs, steps;
    const ro_chain_input *input;
    ro_chain_step step[RO_CHAIN_STEPS];
    int32_t dtype[RO_CHAIN_STEPS];
    int32_t operands[RO_CHAIN_STEPS];
    uint32_t last[RO_CHAIN_STEPS]; /* step that reads each result */
    int32_t slot[RO_CHAIN_STEPS];  /* of a step's result in a worker's memory; NONE: the output */
    int32_t tile[RO_CHAIN_INPUTS]; /* of an input that stages read, repeated through a strip */
    int32_t slots;
    bool filled[RO_CHAIN_STEPS]; /* a number that a kernel reads */
    ro_chain_run run[RO_CHAIN_STEPS];
    uint32_t runs;
    ro_chain_stage stage[RO_CHAIN_STAGES];
    uint32_t stages;
    char *memory; /* `slots` strips for each thread */
    char *output;
} ro_chain_plan;

/* A step that fills a strip with a number, which later steps read. */
static inline bool ro_chain_is_number(const ro_chain_plan *p, uint32_t i) {
    return p->step[i].op == RO_OP_FILL && i + 1 < p->steps;
}

/* Cuts the steps, whose `last` is known, into runs. */
void ro_chain_find_runs(ro_chain_plan *p);
/* Runs a plan whose steps, types and inputs have been checked. */
ro_status ro_chain_run_plan(ro_chain_plan *p);

#endif
