/* Errors of floats against doubles, in units in the last place (ulp). */
#ifndef EXHAUSTIVE_ERRORS_H
#define EXHAUSTIVE_ERRORS_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <mpfr.h>

#include "repops/src/wide_functions.h"
#include "repops/repops.h"

enum { PRECISION = 160, BACKENDS = 4 };

static const double stated = 0.00005; /* SPEC.md states bounds with four decimals */

/* Returns one ulp of the correctly rounded result, also for subnormals. */
static inline double ulp_of(double want) {
    const int biased = (int)(ro_to_bits64(want) >> 52 & 0x7ff);
    return ro_from_bits64((uint64_t)(biased - 23 < 874 ? 874 : biased - 23) << 52); /* 2^-149 */
}

/* Returns |got - want|; infinite if only one of them is NaN. */
static inline double distance(float got, double want) {
    const double off = fabs((double)got - want);
    return isnan(want) && isnan(got) ? 0 : isnan(off) ? INFINITY : off;
}

static inline double ulp_error(float got, double want) {
    const float nearest = (float)want;
    if (isinf(nearest))
        return got == nearest ? 0 : isnan(got) ? INFINITY : 1;
    const double off = distance(got, want);
    return off > 0 ? off / ulp_of(want) : 0;
}

static inline int near_the_middle(double want) {
    if (isnan(want) || isinf((float)want))
        return 0;
    const double t = fabs(want) / ulp_of(want);
    return fabs(t - floor(t) - 0.5) < 0x1p-23;
}

/* Returns 1 with a message if the error exceeds the bound that SPEC.md states. */
static inline int judge(const char *what, double error, double bound) {
    if (error <= bound + stated)
        return 0;
    printf("               FAILED: %s: SPEC.md states %.4f\n", what, bound);
    return 1;
}

/* In pairs.c. ctx has BACKENDS contexts, or ends with NULL. Return 1 with a message if SPEC.md does
 * not hold. */
int run_atan2(ro_ctx *const *ctx);
int run_pow(ro_ctx *const *ctx);
int run_running(ro_ctx *const *ctx);

#endif
