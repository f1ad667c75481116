/* Operators of elements one after another, in one pass over memory: their intermediate results
 * never leave the cache. The bytes are those of the operators, which SPEC.md defines. */
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

/* `count` elements, of 4 bytes, f32 or i32, which repeat. */
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
    int64_t attr[RO_MAX_ATTRS]; /* as those of ro_call */
} ro_chain_step;

/* Not 0: the operator computes each element of f32 or i32 from those at its place, so that a chain
 * may have it; or it is `fill`, for a number in place of a tensor. */
RO_API int ro_chain_takes(int op);
/* Not 0: operand i may repeat, and have fewer elements than the result. */
RO_API int ro_chain_repeats(int op, int i);

/* Runs steps 0 to steps - 1 on tensors of `count` elements, and stores what the last one gives. An
 * input that repeats has a count that divides `count`; of two such counts the smaller one divides
 * the larger one. `output` may be the memory of an input of `count` elements if the last step does
 * not read it, or may overwrite it (ro_op_in_place). RO_ERR_UNSUPPORTED on a device. Temporary
 * memory: some thousand elements for each step and thread. */
RO_API RO_MUST_USE ro_status ro_chain(ro_ctx *ctx, int64_t count, uint32_t inputs,
                                      const ro_chain_input *input, uint32_t steps,
                                      const ro_chain_step *step, void *output);

#ifdef __cplusplus
}
#endif
#endif
