/* Cases of tests/golden/ops.txt: the text of a line, and the call with data that it describes. */
#ifndef REPOPS_TOOLS_GOLDEN_H
#define REPOPS_TOOLS_GOLDEN_H

#include "repops/tools/op_data.h"

enum { GOLDEN_HASH_TEXT = 65 };

typedef struct {
    char op[32], name[40], inputs[160], output[40], attrs[120], class[12];
    long long ids;
    char hash[GOLDEN_HASH_TEXT]; /* "-" where the line has none yet */
} golden_case;

/* Returns 0 if the line is not a case. */
int golden_parse(const char *line, golden_case *out);

/* Infers the call and generates its data; case_free() frees it, whatever this returns. Returns 0,
 * with a sentence, if the line describes no valid call or there is no memory. */
int golden_build(const golden_case *g, op_case *c, char *why, size_t why_size);

data_class golden_class(const char *name); /* DATA_END if no class has this name */
uint64_t golden_seed(const char *name);    /* FNV-1a */

#endif
