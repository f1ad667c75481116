/* Thresholds for the symbols of a rounding log (SPEC 14.4), measured between two profiles:
 * algorithm 3 of Srivastava et al., with the value's exponent, and a margin for runs longer than
 * the measurement. */
#ifndef VD_CALIBRATE_H
#define VD_CALIBRATE_H

#include "verde/exec/exec.h"
#include "verde/log/log.h"

/* Elements rounded apart that suffice for a threshold; with fewer, the margin decides it. */
enum { VD_CALIBRATION_APART = 16 };

typedef struct {
    uint64_t elements; /* compared */
    uint64_t apart;    /* rounded differently by the two profiles, from opposite sides */
    double largest;    /* largest distance of an element's two values, over its power of two */
} vd_calibration_count;

typedef struct {
    vd_thresholds thresholds; /* of every free operator */
    vd_calibration_count count[RO_OP_END];
} vd_calibration;

/* Runs initialisation and `steps` steps with exec->ro under profile `a`, and each free node under
 * `b` too, on the same inputs. exec->kernels is not used. `progress` (or NULL) is called per
 * step. */
VD_MUST_USE vd_status vd_calibrate(const vd_exec *exec, const ro_profile *a, const ro_profile *b,
                                   int32_t bits, int64_t steps,
                                   void (*progress)(void *user, int64_t done), void *user,
                                   vd_calibration *out, vd_err *err);

#endif
