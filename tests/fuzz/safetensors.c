/* Headers of safetensors files. */
#include "tests/fuzz/fuzz.h"
#include "verde/weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_weights weights = {.count = 0};
    vd_err err;
    if (vd_weights_header(data, size, "model.safetensors", &weights, &err) == VD_OK)
        for (uint32_t i = 0; i < weights.count; i++) {
            const vd_weight *w = &weights.tensor[i];
            fuzz_need(w->at <= size && w->size <= size - w->at, "a tensor lies beyond its file");
        }
    vd_weights_close(&weights);
    return 0;
}
