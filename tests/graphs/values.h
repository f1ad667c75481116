/* Data and a state for a program: any content that the program allows. */
#ifndef TESTS_GRAPHS_VALUES_H
#define TESTS_GRAPHS_VALUES_H

#include "verde/exec/exec.h"

typedef struct {
    void **data; /* for each data tensor, in host memory */
    vd_state state;
} values;

/* Makes values, equal for equal seeds. The state is that of some step. */
void values_make(const vd_program *p, uint64_t seed, values *out);
void values_free(const vd_program *p, values *v);
/* Copies a state to new memory, which is freed like any state's. */
vd_state values_copy(const vd_program *p, const vd_state *state);

#endif
