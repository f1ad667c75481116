/* This file builds the programs of a job with prompts, one for each. */
#include <stdio.h>
#include <string.h>

#include "verde/load/load.h"

vd_status vd_load_prompt(vd_loaded *out, uint32_t index, vd_err *err) {
    vd_exec_drop(&out->exec);
    vd_program_free(&out->program);
    vd_placed_data_free(&out->placed);
    out->exec.program = &out->program;
    if (out->job.packed)
        return vd_load_packed(out, index, err);
    vd_status status = vd_job_prompt_program(&out->job, &out->prompts, index, &out->program, err);
    return status == VD_OK ? vd_place_prompt(out, &out->prompts.list[index], err) : status;
}

uint32_t vd_prompt_count(const vd_loaded *loaded) {
    return loaded->job.packed ? loaded->given.pack.count : loaded->prompts.count;
}

int64_t vd_prompt_key(const vd_loaded *loaded, uint32_t index) {
    return loaded->job.packed ? loaded->given.pack.item[index].key
                              : loaded->prompts.list[index].key;
}

const char *vd_prompt_word(const vd_loaded *loaded, uint64_t count) {
    if (loaded->job.packed)
        return count == 1 ? "batch" : "batches";
    return count == 1 ? "prompt" : "prompts";
}

uint32_t vd_prompt_own_data(const vd_loaded *loaded) {
    if (loaded->job.packed)
        return loaded->given.pack.own;
    const vd_generation *how = &loaded->job.generation;
    return loaded->job.task == VD_JOB_GENERATES && !how->greedy ? 2 : 1;
}

vd_status vd_find_prompt(const vd_loaded *loaded, const char *key, uint32_t *index, vd_err *err) {
    const bool packed = loaded->job.packed;
    char text[24];
    for (*index = 0; *index < vd_prompt_count(loaded); (*index)++) {
        snprintf(text, sizeof text, "%lld", (long long)vd_prompt_key(loaded, *index));
        if (strcmp(text, key) == 0)
            return VD_OK;
    }
    return vd_fail(err, VD_ERR_USAGE, "%s: has no %s with the key %.40s",
                   packed ? loaded->given.file.path : loaded->job.prompts.path,
                   vd_prompt_word(loaded, 1), key);
}

vd_status vd_list_prompts(const vd_loaded *loaded, vd_items *out, vd_err *err) {
    const vd_prompts *prompts = &loaded->prompts;
    if (loaded->job.packed)
        return vd_list_packed(loaded, out, err);
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
