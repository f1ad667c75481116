/* The fused functions of repops/fused.h with generated data: the cases of tests/golden/fused.txt.
 */
#ifndef REPOPS_TOOLS_FUSED_H
#define REPOPS_TOOLS_FUSED_H

#include "repops/tools/op_data.h"

typedef struct {
    char function[16], name[40], class[12], scale[24], hash[65];
    long long size[6]; /* attention: B, H, G, T, S, D; cross_entropy: rows, cols */
    int causal, dropout;
} golden_fused;

/* 0 if the line is not a case. */
int golden_fused_parse(const char *line, golden_fused *out);

/* Runs the function, forward and (attention: unless it decodes) backward; *out gets all results one
 * after the other, *count their number, the caller frees. NULL without memory. */
ro_status golden_fused_run(ro_ctx *ctx, const golden_fused *g, float **out, int64_t *count);

#endif
