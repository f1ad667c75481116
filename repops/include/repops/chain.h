/* A chain runs elementwise operators one after another in one pass over memory, so that their
 * intermediate results stay in the cache. The bytes are those of the single operators, which
 * SPEC.md defines. */
#ifndef REPOPS_CHAIN_H
#define REPOPS_CHAIN_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RO_CHAIN_STEPS = 32,
    RO_CHAIN_INPUTS = 16,
    RO_CHAIN_OPERANDS = 3,
    RO_CHAIN_RESULT = 1 << 16 /* operand RO_CHAIN_RESULT + i is the result of step i */
};

/* An input of `count` elements of 4 bytes (f32 or i32). One that is shorter than the chain's
 * tensors is repeated from its start. */
typedef struct {
    int64_t count;
    int32_t dtype; /* ro_dtype */
    int32_t reserved;
    const void *data;
} ro_chain_input;

typedef struct {
    uint32_t size; /* sizeof(ro_chain_step) */
    int32_t op;    /* ro_chain_takes says yes */
    int32_t operand[RO_CHAIN_OPERANDS];
    int32_t reserved;
    int64_t attr[RO_MAX_ATTRS]; /* as in ro_call */
} ro_chain_step;

/* Returns nonzero if a chain may contain this operator: one that computes each f32 or i32 element
 * from the operands' elements at the same place, or `fill`, which stands for a number. */
RO_API int ro_chain_takes(int op);
/* Returns nonzero if operand i of `op` may have fewer elements than the result, and so repeat. */
RO_API int ro_chain_repeats(int op, int i);

/* Runs all steps on tensors of `count` elements, and stores the last step's result in `output`. The
 * count of an input that repeats must divide `count`; of two such counts the smaller must divide
 * the larger. `output` may be the memory of an input of `count` elements if the last step either
 * does not read that input or may overwrite it (ro_op_in_place). Returns RO_ERR_UNSUPPORTED on a
 * device. Temporary memory: a few thousand elements per step and thread. */
RO_API RO_MUST_USE ro_status ro_chain(ro_ctx *ctx, int64_t count, uint32_t inputs,
                                      const ro_chain_input *input, uint32_t steps,
                                      const ro_chain_step *step, void *output);

#ifdef __cplusplus
}
#endif
#endif
