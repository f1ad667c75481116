/* Manifests of weights: an accepted one has only one encoding. */
#include "tests/fuzz/fuzz.h"
#include "verde/weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vd_manifest manifest = {.count = 0};
    vd_buf again = {0};
    vd_err err;
    if (vd_manifest_parse(data, size, "manifest", &manifest, &err) == VD_OK) {
        vd_manifest_put(&manifest, &again);
        fuzz_need(fuzz_equal(&again, data, size), "a manifest has two spellings");
        vd_manifest_free(&manifest);
    }
    vd_buf_free(&again);
    return 0;
}
