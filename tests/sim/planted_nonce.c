/* A deliberate bug, for tests/system/sim.sh: a restarted referee forgets its questions, and asks
 * with a new nonce. */
#include "verde/protocol/minutes.h"

vd_status __wrap_vd_minutes_read(const void *bytes, size_t size, vd_minutes *out, vd_err *err);

vd_status __wrap_vd_minutes_read(const void *bytes, size_t size, vd_minutes *out, vd_err *err) {
    (void)bytes, (void)size, (void)err;
    *out = (vd_minutes){0};
    return VD_OK;
}
