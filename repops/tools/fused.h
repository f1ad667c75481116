/* The fused functions of repops/fused.h with generated data: the cases of
 * tests/golden/fused.txt. */
#ifndef REPOPS_TOOLS_FUSED_H
#define REPOPS_TOOLS_FUSED_H

#include "repops/tools/op_data.h"

typedef struct {
    char function[24], name[40], class[12], scale[24], hash[65];
    /* attention: B, H, G, T, S, D; linear: rows, in, out; row functions: rows, cols; optimizers:
     * elements of a parameter */
    long long size[6];
    int causal, dropout; /* sgd: Nesterov, unused; linear: transposed, activation */
} golden_fused;

/* Returns 0 if the line is not a case. */
int golden_fused_parse(const char *line, golden_fused *out);

/* Returns the name of function i without ro_; NULL after the last. */
const char *golden_fused_function(int i);

/* Runs the function forward and backward (attention: only forward if it decodes). *out gets all
 * results one after the other, and *count their number; the caller frees *out, which is NULL if
 * there is no memory. */
ro_status golden_fused_run(ro_ctx *ctx, const golden_fused *g, float **out, int64_t *count);

#endif
