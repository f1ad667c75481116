#ifndef BENCH_TREES_H
#define BENCH_TREES_H

#include "verde/commit/commit.h"

/* Both end the program with a line; check only if `status` is a failure. */
void die(const char *what);
void check(vd_status status, const vd_err *err);

/* Prints how long a provider takes to answer two questions about 1,024 leaves of one tensor of
 * `size` bytes, from a signed request to a signed answer. The tree is built for the first one. */
void print_questions(ro_ctx *ro, const uint8_t *bytes, int64_t size);

#endif
