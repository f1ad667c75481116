/* One step of a program, executed in all ways that must give the same bits. */
#ifndef TESTS_GRAPHS_WAYS_H
#define TESTS_GRAPHS_WAYS_H

#include "verde/exec/exec.h"

typedef struct {
    ro_ctx *reference; /* scalar kernels, one thread: runs node by node, with an observer */
    ro_ctx *one, *two; /* the backend under test, with one thread and with two */
} machines;

typedef struct {
    char text[1024];
} ways_why;

/* Opens contexts of this backend (NULL: the best). Returns false with *why if it is not
 * available. */
bool ways_open(const char *backend, machines *out, ways_why *why);
void ways_close(machines *m);
/* Runs initialisation and a step on values from this seed, fused and node by node, and compares all
 * bytes; also some elements with the reference that decides disputes. Returns false with *why if
 * anything differs. */
bool ways_agree(const machines *m, const vd_program *p, uint64_t seed, ways_why *why);

#endif
