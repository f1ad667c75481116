/* model.safetensors.index.json, without the shards that it names. */
#include "tests/fuzz/fuzz.h"
#include "verde/weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_weights weights = {.count = 0};
    vd_err err;
    if (vd_weights_open(fuzz_folder(VD_WEIGHTS_INDEX, data, size), &weights, &err) == VD_OK) {
        fuzz_need(weights.count == 0, "tensors of files that are not there");
        vd_weights_close(&weights);
    }
    return 0;
}
