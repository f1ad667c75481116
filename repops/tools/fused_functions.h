/* How fused.c runs each function of repops/fused.h, and the fused ones of repops/layers.h: its
 * tensors, its data and its call. */
#ifndef REPOPS_TOOLS_FUSED_FUNCTIONS_H
#define REPOPS_TOOLS_FUSED_FUNCTIONS_H

#include "repops/tools/fused.h"

enum {
    PARTS = 11, /* the most tensors of a case */
    SIZES = 6,  /* elements of golden_fused.size */
};

/* All tensors of a case in one block. */
typedef struct {
    int64_t count[PARTS], at[PARTS], words;
    int parts, inputs; /* inputs come first */
    uint32_t *host;
} golden_block;

/* A function: how to lay out its tensors, and how to run it on them, where they begin at x. */
typedef struct {
    const char *name;
    void (*plan)(const golden_fused *g, golden_block *b);
    /* fills data that the case's class does not generate; may be NULL */
    void (*fill)(const golden_fused *g, const golden_block *b);
    ro_status (*run)(ro_ctx *ctx, const golden_fused *g, const golden_block *b, float *x);
} golden_function;

/* Returns function i; NULL after the last. */
const golden_function *golden_function_at(int i);

/* fused_optimizers.c: returns the optimizers, then the functions of fused_layers.c, likewise. */
const golden_function *golden_optimizer_at(int i);

/* fused_layers.c: returns the functions of repops/layers.h, likewise. */
const golden_function *golden_layer_function_at(int i);

/* Adds a tensor of `count` words. */
void golden_add(golden_block *b, int64_t count);

#endif
