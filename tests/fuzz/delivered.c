/* proof.json of delivered weights. */
#include "tests/fuzz/fuzz.h"
#include "verde/exec/state_proof.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_state_proof proof = {.step = 0};
    vd_err err;
    if (vd_state_proof_read(fuzz_file(data, size), &proof, &err) == VD_OK)
        vd_state_proof_free(&proof);
    return 0;
}
