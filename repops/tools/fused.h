/* The fused functions of repops/fused.h with generated data: the cases of tests/golden/fused.txt.
 */
#ifndef REPOPS_TOOLS_FUSED_H
#define REPOPS_TOOLS_FUSED_H

#include "repops/tools/op_data.h"

typedef struct {
    char function[24], name[40], class[12], scale[24], hash[65];
    /* attention: B, H, G, T, S, D; linear: rows, in, out; rows and cols; elements of parameters */
    long long size[6];
    int causal, dropout; /* causal: of sgd, Nesterov's; of linear, transposed and the activation */
} golden_fused;

/* 0 if the line is not a case. */
int golden_fused_parse(const char *line, golden_fused *out);

/* The name, without ro_, of function i; NULL from the last on. */
const char *golden_fused_function(int i);

/* Runs the function, forward and (attention: unless it decodes) backward; *out gets all results one
 * after the other, *count their number, the caller frees. NULL without memory. */
ro_status golden_fused_run(ro_ctx *ctx, const golden_fused *g, float **out, int64_t *count);

#endif
