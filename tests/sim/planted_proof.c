/* A deliberate bug, for tests/system/sim.sh: a referee that accepts every proof. */
#include "verde/commit/commit.h"

vd_status __wrap_vd_proof_verify(const vd_proof *proof, uint64_t index, uint64_t count,
                                 const vd_hash *leaf, const vd_hash *root, vd_err *err);

vd_status __wrap_vd_proof_verify(const vd_proof *proof, uint64_t index, uint64_t count,
                                 const vd_hash *leaf, const vd_hash *root, vd_err *err) {
    (void)proof, (void)index, (void)count, (void)leaf, (void)root, (void)err;
    return VD_OK;
}
