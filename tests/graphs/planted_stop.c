/* A deliberate bug, for tests/system/graphs.sh: programs may run together whatever a step does
 * after a stop. */
#include "verde/exec/batch_internal.h"

vd_status __wrap_vd_batch_check_stop(const vd_program *program, uint32_t stopped, vd_err *err);

vd_status __wrap_vd_batch_check_stop(const vd_program *program, uint32_t stopped, vd_err *err) {
    (void)program, (void)stopped, (void)err;
    return VD_OK;
}
