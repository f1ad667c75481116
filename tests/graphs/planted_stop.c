/* A bug on purpose, for tests/system/graphs.sh: whatever a step does after a stop, programs run
 * beside each other as if it did nothing. */
#include "verde/exec/batch_internal.h"

vd_status __wrap_vd_batch_check_stop(const vd_program *program, uint32_t stopped, vd_err *err);

vd_status __wrap_vd_batch_check_stop(const vd_program *program, uint32_t stopped, vd_err *err) {
    (void)program, (void)stopped, (void)err;
    return VD_OK;
}
