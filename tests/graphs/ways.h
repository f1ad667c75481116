/* One step of a program, executed in every way that must give the same bits. */
#ifndef TESTS_GRAPHS_WAYS_H
#define TESTS_GRAPHS_WAYS_H

#include "verde/exec/exec.h"

typedef struct {
    ro_ctx *reference; /* scalar kernels, one thread: it runs node by node, watched */
    ro_ctx *one, *two; /* what is tested, with one thread and with two */
} machines;

typedef struct {
    char text[1024];
} ways_why;

/* Opens contexts of this backend (NULL: the best). False: there is none; *why says it. */
bool ways_open(const char *backend, machines *out, ways_why *why);
void ways_close(machines *m);
/* Runs initialisation and a step from values of this seed, fused and node by node, and compares all
 * bytes; single elements with the reference, which decides disputes. False: *why says what differs.
 */
bool ways_agree(const machines *m, const vd_program *p, uint64_t seed, ways_why *why);

#endif
