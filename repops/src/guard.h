/* What threads of a product find while they check it (repops/guard.h). */
#ifndef RO_GUARD_H
#define RO_GUARD_H

#include "repops/guard.h"

/* Says that a product did not fit twice: product, chunk, row, column, as `long long`. */
#define RO_GUARD_TWICE                                                                             \
    "integer sums of a fixed product were computed twice and do not fit: product %lld, chunk "     \
    "%lld, row %lld, column %lld"

/* The rest is for CPUs: on a device one thread finds all. */
#if !defined(__cplusplus)
#include <stdatomic.h>

enum { RO_GUARD_FOUND_MOST = 16 };

/* Of one product. */
typedef struct {
    const ro_guard *guard; /* NULL: nothing is checked */
    atomic_int count;
    ro_guard_finding found[RO_GUARD_FOUND_MOST];
} ro_guard_log;

/* NULL: the context was not told to check. */
const ro_guard *ro_ctx_guarding(const ro_ctx *ctx);

void ro_guard_note(ro_guard_log *log, const ro_guard_finding *finding);

/* Tells what was found. RO_ERR_DEVICE: something did not fit the second time. */
ro_status ro_guard_end(ro_ctx *ctx, ro_guard_log *log);

#endif
#endif
