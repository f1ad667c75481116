/* Files of prompts: each line of an accepted file has a key, and tokens within the vocabulary. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "verde/job/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const vd_job job = {.task = size % 2 ? VD_JOB_SCORES : VD_JOB_GENERATES,
                        .training = {.model = {.vocab = 1000}},
                        .generation = {.max_tokens = 9}};
    vd_prompts prompts;
    vd_err err = {0};
    if (vd_prompts_parse(&job, "prompts", data, size, &prompts, &err) != VD_OK) {
        fuzz_need(err.text[0] != 0, "refused without a reason");
        fuzz_need(!prompts.list && !prompts.token, "a refused file leaves something");
        return 0;
    }
    fuzz_need(prompts.count > 0, "no prompts");
    for (uint32_t i = 0; i < prompts.count; i++) {
        const vd_prompt *p = &prompts.list[i];
        fuzz_need(p->key >= 0 && p->count > 0 && p->first + (uint64_t)p->count <= prompts.tokens,
                  "a prompt of no tokens");
        fuzz_need(p->max_tokens >= 1 && p->max_tokens <= 9, "a limit past the job's");
        for (int64_t k = 0; k < p->count; k++)
            fuzz_need(prompts.token[p->first + (uint64_t)k] < 1000, "a token past the vocabulary");
    }
    vd_prompts_free(&prompts);
    return 0;
}
