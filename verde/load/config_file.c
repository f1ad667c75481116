/* This file writes and compares config.json beside runs and exported models. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verde/job/config.h"
#include "verde/job/config_write.h"
#include "verde/load/export.h"

vd_status vd_config_load(const char *dir, const char *name, vd_buf *out, bool *there, vd_err *err) {
    char path[1100];
    struct stat info;
    *there = snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path &&
             stat(path, &info) == 0;
    return *there ? vd_read_file(path, VD_WEIGHTS_CONFIG_MAX, out, err) : VD_OK;
}

/* Adapts config.json to a new head's classes, which the model's files do not know. */
static vd_status config_of(const vd_loaded *loaded, vd_buf *out, vd_err *err) {
    const vd_training *t = &loaded->job.training;
    const vd_buf *pinned = &loaded->weights.manifest.config;
    const int64_t classes = t->model.kind == VD_MODEL_BERT ? t->model.classes : t->model.vocab;
    const vd_config_change change = {.classes = t->model.new_head ? classes : 0,
                                     .model = &t->model};
    if (loaded->job.pretrained)
        return vd_config_changed(pinned->data, pinned->size, &change, out, err);
    return vd_config_can_write(&t->model) ? vd_config_write(&t->model, t->sequence, out, err)
                                          : VD_OK;
}

/* Gives PEFT the model's absolute path, if there is one, since PEFT may run in any directory. */
static vd_status adapter_config_of(const vd_job *job, vd_buf *out, vd_err *err) {
    char *base = realpath(job->model_dir, NULL);
    vd_file_name *names = NULL;
    uint32_t count = 0;
    vd_status status = vd_training_names(&job->training, &names, &count, err);
    if (status == VD_OK)
        status = vd_adapter_config_write(&job->training.model, base ? base : job->model_dir, names,
                                         count, out, err);
    free(names);
    free(base);
    return status;
}

static vd_status save_text(const char *dir, const char *name, vd_buf *text, vd_err *err) {
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    vd_status status =
        text->size > 0 ? vd_write_file(path, text->data, text->size, 0644, err) : VD_OK;
    vd_buf_free(text);
    return status;
}

vd_status vd_config_save(const char *dir, const vd_loaded *loaded, vd_err *err) {
    vd_buf text = {0};
    if (loaded->job.training.evaluates || loaded->job.program)
        return VD_OK;
    vd_status status = config_of(loaded, &text, err);
    if (status == VD_OK)
        status = save_text(dir, VD_WEIGHTS_CONFIG, &text, err);
    if (status == VD_OK && loaded->job.training.model.lora.rank > 0) {
        status = adapter_config_of(&loaded->job, &text, err);
        if (status == VD_OK)
            status = save_text(dir, VD_WEIGHTS_ADAPTER_CONFIG, &text, err);
    }
    vd_buf_free(&text);
    if (status == VD_OK && loaded->job.pretrained)
        status = vd_companions_copy(loaded->job.model_dir, dir, err);
    return status;
}

vd_status vd_config_export(const char *from, const char *to, bool narrow, vd_err *err) {
    const vd_config_change change = {.dtype = narrow ? "bfloat16" : "float32"};
    vd_buf config = {0}, text = {0};
    bool there;
    vd_status status = vd_config_load(from, VD_WEIGHTS_CONFIG, &config, &there, err);
    if (status == VD_OK && there)
        status = vd_config_changed(config.data, config.size, &change, &text, err);
    if (status == VD_OK)
        status = save_text(to, VD_WEIGHTS_CONFIG, &text, err);
    if (status == VD_OK && there)
        status = vd_config_load(from, VD_WEIGHTS_ADAPTER_CONFIG, &text, &there, err);
    if (status == VD_OK)
        status = save_text(to, VD_WEIGHTS_ADAPTER_CONFIG, &text, err);
    if (status == VD_OK && config.size > 0)
        status = vd_companions_copy(from, to, err);
    vd_buf_free(&config);
    vd_buf_free(&text);
    return status;
}

/* Checks that adapter_config.json describes the adapters of the job. */
static vd_status compare_adapter(const char *dir, const vd_job *job, vd_err *err) {
    vd_buf found = {0}, expected = {0};
    bool there;
    vd_status status = vd_config_load(dir, VD_WEIGHTS_ADAPTER_CONFIG, &found, &there, err);
    if (status == VD_OK)
        status = adapter_config_of(job, &expected, err);
    if (status == VD_OK && !vd_adapter_config_equal(&found, &expected))
        status =
            vd_fail(err, VD_ERR_PEER, "%s/" VD_WEIGHTS_ADAPTER_CONFIG ": %s %s", dir,
                    there ? "means other adapters than" : "is missing, for those of", job->path);
    vd_buf_free(&found);
    vd_buf_free(&expected);
    return status;
}

/* Replaces the job's model by what config.json describes, but keeps what only the job can say. */
static vd_status take_config(const vd_buf *config, vd_model *model, vd_err *err) {
    const vd_model own = *model;
    const vd_config_choice choice = {.dropout = own.dropout, .pad = own.pad};
    *model = (vd_model){
        .mask_rate = own.mask_rate, .mask = own.mask, .image = own.image, .lora = own.lora};
    vd_status status =
        vd_config_read(config->data, config->size, VD_WEIGHTS_CONFIG, &choice, model, err);
    model->new_head = own.new_head;
    model->one_segment = own.one_segment;
    model->pad = own.pad;
    memcpy(model->image_mean, own.image_mean, sizeof own.image_mean);
    memcpy(model->image_std, own.image_std, sizeof own.image_std);
    return status;
}

vd_status vd_config_compare(const char *dir, const vd_buf *config, const char *job,
                            const vd_hash *program, vd_err *err) {
    vd_loaded loaded = {0};
    vd_program other = {0};
    vd_hash hash = {{0}};
    vd_err why = {0};
    vd_status status = vd_load_job(job, &loaded, err);
    if (status != VD_OK)
        goto out;
    status = take_config(config, &loaded.job.training.model, &why);
    if (status == VD_OK)
        status = vd_job_program(&loaded.job, &other, &why);
    if (status == VD_OK)
        status = vd_program_hash(&other, &hash, &why);
    if (status == VD_OK && vd_hash_equal(&hash, program) && loaded.job.training.model.lora.rank > 0)
        status = compare_adapter(dir, &loaded.job, err);
    else if (status == VD_ERR_LOCAL)
        status = vd_fail(err, status, "%s", why.text);
    else if (status != VD_OK || !vd_hash_equal(&hash, program))
        status =
            vd_fail(err, VD_ERR_PEER, "%s/" VD_WEIGHTS_CONFIG ": means another model than %s%s%s",
                    dir, job, *why.text ? ": " : "", why.text);
out:
    vd_program_free(&other);
    vd_loaded_free(&loaded);
    return status;
}
