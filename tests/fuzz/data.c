/* Files of tokens and images; the first byte chooses which. */
#include "verde/job/data.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static vd_job job;
    vd_data_tensor tensor = {.path = NULL};
    vd_map file = {0};
    vd_err err;
    if (size < 1)
        return 0;
    job.data_kind = (vd_data_kind)(1 + data[0] % 3);
    job.training.model.kind = job.data_kind == VD_DATA_CIFAR10 ? VD_MODEL_RESNET : VD_MODEL_GPT2;
    job.training.model.vocab = 300, job.training.model.classes = 10;
    job.training.batch = 1, job.training.sequence = 4;
    if (vd_map_file(fuzz_file(data + 1, size - 1), &file, &err) == VD_OK &&
        vd_data_form(&job, &file, &tensor, &err) == VD_OK)
        fuzz_need(ro_shape_numel(&tensor.tensor.shape) > 0, "data without elements");
    vd_map_free(&file);
    return 0;
}
