/* Data and a state for a program: any bits that it admits. */
#ifndef TESTS_GRAPHS_VALUES_H
#define TESTS_GRAPHS_VALUES_H

#include "verde/exec/exec.h"

typedef struct {
    void **data; /* one for each data tensor, in host memory */
    vd_state state;
} values;

/* The same for the same seed. The state is of some step of the program's. */
void values_make(const vd_program *p, uint64_t seed, values *out);
void values_free(const vd_program *p, values *v);
/* The same bits in memory of their own, which is freed as a state's. */
vd_state values_copy(const vd_program *p, const vd_state *state);

#endif
