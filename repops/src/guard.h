/* Collects what the threads of a product find while they check it (repops/guard.h). */
#ifndef RO_GUARD_H
#define RO_GUARD_H

#include "repops/guard.h"

/* Format of the message for a product that did not match twice; takes product, chunk, row and
 * column as `long long`. */
#define RO_GUARD_TWICE                                                                             \
    "integer sums of a fixed product were computed twice and do not fit: product %lld, chunk "     \
    "%lld, row %lld, column %lld"

/* The rest is for CPUs: on a device a single thread collects the findings. */
#if !defined(__cplusplus)
#include <stdatomic.h>

enum { RO_GUARD_FOUND_MOST = 16 };

/* The findings of one product. */
typedef struct {
    const ro_guard *guard; /* NULL: nothing is checked */
    atomic_int count;
    ro_guard_finding found[RO_GUARD_FOUND_MOST];
    atomic_bool failed;     /* a second mismatch found no place there */
    ro_guard_finding twice; /* the first such mismatch, which takes the last place in the end */
} ro_guard_log;

/* Returns the guard that was set by ro_ctx_guard; NULL if the context does not check. */
const ro_guard *ro_ctx_guarding(const ro_ctx *ctx);

void ro_guard_note(ro_guard_log *log, const ro_guard_finding *finding);

/* Reports the findings to the guard. Returns RO_ERR_DEVICE if a repeated computation failed. */
ro_status ro_guard_end(ro_ctx *ctx, ro_guard_log *log);

#endif
#endif
