/* How fused.c runs each function of repops/fused.h, and those of repops/layers.h that are fused:
 * its tensors, its data and its call. */
#ifndef REPOPS_TOOLS_FUSED_FUNCTIONS_H
#define REPOPS_TOOLS_FUSED_FUNCTIONS_H

#include "repops/tools/fused.h"

enum {
    PARTS = 11, /* most tensors of a case */
    SIZES = 6,  /* of golden_fused.size */
};

/* All tensors of a case in one block. */
typedef struct {
    int64_t count[PARTS], at[PARTS], words;
    int parts, inputs; /* inputs come first */
    uint32_t *host;
} golden_block;

/* A function: how to lay out its tensors, and to run it on them (at x). */
typedef struct {
    const char *name;
    void (*plan)(const golden_fused *g, golden_block *b);
    /* fills in data that the case's class does not make; may be NULL */
    void (*fill)(const golden_fused *g, const golden_block *b);
    ro_status (*run)(ro_ctx *ctx, const golden_fused *g, const golden_block *b, float *x);
} golden_function;

/* Function i; NULL from the last on. */
const golden_function *golden_function_at(int i);

/* fused_optimizers.c: optimizers, then those of fused_layers.c, likewise. */
const golden_function *golden_optimizer_at(int i);

/* fused_layers.c: those of repops/layers.h, likewise. */
const golden_function *golden_layer_function_at(int i);

/* Adds a tensor of `count` words. */
void golden_add(golden_block *b, int64_t count);

#endif
