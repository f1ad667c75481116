/* Programs of a job with prompts, one for each. */
#include <stdio.h>
#include <string.h>

#include "verde/cli/cli.h"

vd_status vd_load_prompt(vd_loaded *out, uint32_t index, vd_err *err) {
    vd_exec_drop(&out->exec);
    vd_program_free(&out->program);
    vd_placed_data_free(&out->placed);
    out->exec.program = &out->program;
    vd_status status = vd_job_prompt_program(&out->job, &out->prompts, index, &out->program, err);
    return status == VD_OK ? vd_place_prompt(out, &out->prompts.list[index], err) : status;
}

uint32_t vd_prompt_own_data(const vd_loaded *loaded) {
    const vd_generation *how = &loaded->job.generation;
    return loaded->job.task == VD_JOB_GENERATES && !how->greedy ? 2 : 1;
}

vd_status vd_find_prompt(const vd_loaded *loaded, const char *key, uint32_t *index, vd_err *err) {
    const vd_prompts *p = &loaded->prompts;
    char text[24];
    for (*index = 0; *index < p->count; (*index)++) {
        snprintf(text, sizeof text, "%lld", (long long)p->list[*index].key);
        if (strcmp(text, key) == 0)
            return VD_OK;
    }
    return vd_fail(err, VD_ERR_USAGE, "%s: has no prompt with the key %.40s",
                   loaded->job.prompts.path, key);
}

vd_status vd_list_prompts(const vd_loaded *loaded, vd_items *out, vd_err *err) {
    const vd_prompts *prompts = &loaded->prompts;
    vd_status status = vd_items_create(prompts->count, out, err);
    for (uint32_t i = 0; status == VD_OK && i < prompts->count; i++) {
        vd_program program = {0};
        out->key[i] = prompts->list[i].key;
        status = vd_job_prompt_program(&loaded->job, prompts, i, &program, err);
        if (status == VD_OK)
            status = vd_program_hash(&program, &out->program[i], err);
        vd_program_free(&program);
    }
    if (status != VD_OK)
        vd_items_free(out);
    return status;
}
