/* Job files. */
#include "verde/job/job.h"
#include "tests/fuzz/fuzz.h"

/* The weights that such a job names are not loaded here, so its program may be refused. */
static void go_on(const vd_job *job) {
    int32_t token[] = {0, 1};
    vd_prompt prompt = {.key = 1, .count = 2, .max_tokens = job->generation.max_tokens};
    const vd_prompts prompts = {.list = &prompt, .count = 1, .token = token, .tokens = 2};
    vd_program program = {0};
    vd_err err = {0};
    if (vd_job_prompt_program(job, &prompts, 0, &program, &err) == VD_OK)
        fuzz_need(vd_program_validate(&program, &err) == VD_OK, err.text);
    else
        fuzz_need(err.text[0] != 0, "refused without a reason");
    vd_program_free(&program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static vd_job job;
    vd_program program = {0};
    vd_err err;
    if (vd_job_parse(data, size, "models/jobs/job.yaml", &job, &err) != VD_OK || job.pretrained)
        return 0;
    if (vd_job_has_prompts(&job)) {
        go_on(&job);
        return 0;
    }
    /* An accepted job gives a program, or an error that says why not. Large ones would take too
     * long. */
    job.training.data_dtype = job.data_kind == VD_DATA_TOKENS ? RO_U16 : RO_U8;
    job.training.data_count = INT64_C(1) << 40;
    if (job.training.model.layers <= 4 && !job.rounding.bits && job.training.micro_batches <= 4 &&
        vd_job_program(&job, &program, &err) == VD_OK)
        fuzz_need(vd_program_validate(&program, &err) == VD_OK, err.text);
    vd_program_free(&program);
    return 0;
}
