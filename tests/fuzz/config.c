/* config.json of a model. */
#include "verde/job/config.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const vd_config_choice choice = {.dropout = -1, .pad = -1};
    static vd_model model;
    vd_err err;
    if (vd_config_read(data, size, "config.json", &choice, &model, &err) == VD_OK)
        fuzz_need(model.kind != 0, "a model of no kind");
    return 0;
}
