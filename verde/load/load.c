/* This file loads what a job names, a run's program and log, and a backend. */
#include "verde/load/load.h"

#include <sys/stat.h>

void vd_loaded_free(vd_loaded *loaded) {
    vd_exec_drop(&loaded->exec);
    ro_ctx_destroy(loaded->ro);
    vd_program_free(&loaded->program);
    vd_dataset_free(&loaded->data);
    vd_prompts_free(&loaded->prompts);
    vd_job_weights_free(&loaded->weights);
    vd_start_free(&loaded->start);
    vd_placed_data_free(&loaded->placed);
    vd_given_free(&loaded->given);
}

/* Loads all that the job names, except its program. */
static vd_status load_parts(const char *path, vd_loaded *out, vd_err *err) {
    vd_ticker hashing = {.start = vd_seconds()};
    vd_data_reader reader = {.progress = vd_tell_hashing, .user = &hashing};
    const ro_options options = {.size = sizeof options, .backend = "cpu"};
    out->exec.program = &out->program;
    vd_status status = vd_is_folder(path) ? vd_folder_job(path, &out->job, err)
                                          : vd_job_read(path, &out->job, err);
    const bool starts = out->job.start.run[0] || out->job.start.dir[0];
    if (status != VD_OK || (out->job.program && !starts))
        return status;
    if (ro_ctx_create(&options, &reader.ro) != RO_OK)
        return vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(NULL));
    status = vd_job_load_weights(&out->job, &reader, &out->weights, err);
    if (status == VD_OK)
        status = vd_load_start(&out->job, &reader, &out->start, err);
    if (status == VD_OK && !out->job.program)
        status = vd_job_has_prompts(&out->job)
                     ? vd_job_load_prompts(&out->job, &out->prompts, err)
                     : vd_job_load_data(&out->job, &reader, &out->data, err);
    ro_ctx_destroy(reader.ro);
    return status;
}

vd_status vd_load_prompts(const char *path, vd_loaded *out, vd_err *err) {
    vd_status status = load_parts(path, out, err);
    if (status == VD_OK && out->job.program)
        return vd_load_program_job(out, err);
    if (status != VD_OK || vd_job_has_prompts(&out->job))
        return status;
    status = vd_job_program(&out->job, &out->program, err);
    return status == VD_OK ? vd_place_data(out, err) : status;
}

vd_status vd_load_job(const char *path, vd_loaded *out, vd_err *err) {
    uint32_t index;
    vd_status status = vd_load_prompts(path, out, err);
    if (status != VD_OK)
        return status;
    if (!vd_job_has_prompts(&out->job))
        return out->prompt ? vd_fail(err, VD_ERR_USAGE, "--prompt: %s has no prompts", path)
                           : VD_OK;
    if (!out->prompt)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: each of its %s is a program of its own, which `--prompt KEY` of "
                       "`verde graph` and `verde arbitrate` names",
                       path, vd_prompt_word(out, 2));
    status = vd_find_prompt(out, out->prompt, &index, err);
    return status == VD_OK ? vd_load_prompt(out, index, err) : status;
}

vd_status vd_need_weights(const vd_loaded *loaded, vd_err *err) {
    const vd_job *job = &loaded->job;
    char place[VD_JOB_PLACE_SIZE];
    if (job->start.dir[0] && !loaded->start.present)
        return vd_fail(err, VD_ERR_USAGE, "%s: `weights.dir` is %s, where no files of a model are",
                       vd_job_place(job, "weights.dir", place), job->start.dir);
    if (job->start.run[0] && !loaded->start.present)
        return vd_fail(err, VD_ERR_USAGE, "%s: `weights.run` is %s, where no run is",
                       vd_job_place(job, "weights.run", place), job->start.run);
    if (!job->pretrained || loaded->weights.present)
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE, "%s: `model.dir` is %s, where no files of a model are",
                   vd_job_place(job, "model.dir", place), job->model_dir);
}

/* Parses the run's fault; errors say that it is in a file, where vd_fault_parse means an option. */
static vd_status parse_fault(const char *dir, const vd_run_log *log, vd_loaded *out, vd_err *err) {
    vd_err why = {0};
    const vd_status status = vd_fault_parse(log->fault, &out->program, &out->exec.fault, &why);
    return status == VD_OK
               ? VD_OK
               : vd_fail(err, status == VD_ERR_USAGE ? VD_ERR_PEER : status,
                         "%s/run.json: `fault` is \"%.80s\": %s", dir, log->fault, why.text);
}

vd_status vd_load_run(const char *dir, vd_loaded *out, vd_run_log *log, vd_err *err) {
    vd_status status = vd_store_program(dir, &out->program, err);
    if (status != VD_OK && vd_items_are_in(dir))
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: holds a job with prompts, each of which has a run of its own in "
                       "%s/prompts/KEY",
                       dir, dir);
    out->exec.program = &out->program;
    if (status == VD_OK)
        status = vd_store_load_log(dir, log, err);
    if (status == VD_OK)
        status = vd_run_log_fits(log, &out->program, dir, err);
    if (status == VD_OK && log->fault[0])
        status = parse_fault(dir, log, out, err);
    return status;
}

vd_status vd_load_backend(vd_loaded *loaded, const vd_common *common, vd_err *err) {
    ro_options options = {
        .size = sizeof options, .threads = common->threads, .backend = common->backend};
    ro_status status = ro_ctx_create(&options, &loaded->ro);
    loaded->exec.ro = loaded->ro;
    if (status == RO_OK)
        return vd_exec_place(&loaded->exec, err);
    vd_status category = status == RO_ERR_ARG ? VD_ERR_USAGE : VD_ERR_LOCAL;
    return vd_fail(err, category, "%s", ro_ctx_error(NULL));
}

vd_status vd_load_device(const vd_loaded *loaded, const ro_profile *profile, vd_err *err) {
    if (ro_free_open(loaded->ro, profile) == RO_OK)
        return VD_OK;
    return vd_fail(err, VD_ERR_LOCAL, "profile %.31s: %s", profile->name, ro_ctx_error(loaded->ro));
}

vd_status vd_read_key(const char *option, const char *hex, vd_public_key *out, vd_err *err) {
    vd_err inner = {0};
    vd_status status = vd_public_key_read(hex, out, &inner);
    if (status == VD_OK)
        return VD_OK;
    return vd_fail(err, status == VD_ERR_PEER ? VD_ERR_USAGE : status, "%s: %s", option,
                   inner.text);
}

vd_status vd_load_key(const char *dir, vd_key **out, vd_err *err) {
    char path[1100];
    struct stat info;
    if (snprintf(path, sizeof path, "%s/key.pem", dir) >= (int)sizeof path)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: path too long", dir);
    if (stat(path, &info) == 0)
        return vd_key_load(path, out, err);
    vd_status status = vd_key_generate(out, err);
    if (status == VD_OK)
        status = vd_key_save(*out, dir, err);
    if (status == VD_OK)
        vd_say("verde: made a new key in %s", dir);
    return status;
}
