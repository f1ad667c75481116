/* Thresholds of the symbols of a rounding log (SPEC 14.4), measured between two profiles: algorithm
 * 3 of Srivastava et al., with the exponent of the value, and with a margin for runs that are
 * longer than what was measured. */
#ifndef VD_CALIBRATE_H
#define VD_CALIBRATE_H

#include "verde/exec/exec.h"
#include "verde/log/log.h"

/* Elements apart from which on their largest distance is relied on; with fewer the margin decides.
 */
enum { VD_CALIBRATION_APART = 16 };

typedef struct {
    uint64_t elements; /* compared */
    uint64_t apart;    /* that the profiles round differently, from opposite sides */
    double largest;    /* distance of an element's two values, over its power of two */
} vd_calibration_count;

typedef struct {
    vd_thresholds thresholds; /* of every free operator */
    vd_calibration_count count[RO_OP_END];
} vd_calibration;

/* Runs initialisation and `steps` steps with exec->ro under profile `a`, and every free node under
 * `b` too, on the same inputs. exec->kernels are not read. `progress` (may be NULL) hears of each
 * step.
 */
VD_MUST_USE vd_status vd_calibrate(const vd_exec *exec, const ro_profile *a, const ro_profile *b,
                                   int32_t bits, int64_t steps,
                                   void (*progress)(void *user, int64_t done), void *user,
                                   vd_calibration *out, vd_err *err);

#endif
