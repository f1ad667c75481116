/* REPOPS_VERBOSE=1: when the process exits, a line on standard error counts the calls that this
 * library served. Nothing else shows whether a program calls a preloaded BLAS. */
#include "repops/blas/blas.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[BLAS_ROUTINES] = {
    [BLAS_SGEMM] = "sgemm", [BLAS_SGEMV] = "sgemv", [BLAS_SSYRK] = "ssyrk", [BLAS_SDOT] = "sdot"};
static _Atomic uint64_t calls[BLAS_ROUTINES];

void blas_count(blas_routine routine) {
    atomic_fetch_add_explicit(&calls[routine], 1, memory_order_relaxed);
}

void blas_forget_counts(void) {
    for (int i = 0; i < BLAS_ROUTINES; i++)
        atomic_store_explicit(&calls[i], 0, memory_order_relaxed);
}

/* Reports in one write, so that lines of several processes do not mix. */
__attribute__((destructor)) static void report(void) {
    const char *wanted = getenv("REPOPS_VERBOSE");
    char line[200];
    if (!wanted || strcmp(wanted, "1") != 0)
        return;
    int length =
        snprintf(line, sizeof line, "librepops_blas: calls of process %ld:", (long)getpid());
    for (int i = 0; i < BLAS_ROUTINES; i++)
        length +=
            snprintf(line + length, sizeof line - (size_t)length, "%s %s %" PRIu64, i ? "," : "",
                     names[i], atomic_load_explicit(&calls[i], memory_order_relaxed));
    fprintf(stderr, "%s\n", line);
}
