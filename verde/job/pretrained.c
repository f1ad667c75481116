/* This file loads the model that a job goes on from: folder, manifest, sizes and tensors. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verde/commit/commit.h"
#include "verde/job/config.h"
#include "verde/job/job.h"

void vd_job_weights_free(vd_job_weights *weights) {
    vd_weights_close(&weights->files);
    vd_manifest_free(&weights->manifest);
    free(weights->tensor);
    vd_buf_free(&weights->meaning);
    *weights = (vd_job_weights){0};
}

/* ---- the manifest ---- */

static vd_status make_manifest(const vd_job *job, const vd_data_reader *reader, vd_job_weights *out,
                               vd_err *err) {
    vd_weights_hashing how = {0};
    if (reader)
        how = (vd_weights_hashing){reader->ro, reader->progress, reader->user};
    vd_status status = vd_weights_open(job->model_dir, &out->files, err);
    out->present = status == VD_OK;
    return status == VD_OK ? vd_manifest_make(&out->files, &how, &out->manifest, err) : status;
}

static vd_status find_manifest(const vd_job *job, const vd_data_reader *reader, vd_job_weights *out,
                               vd_err *err) {
    char path[VD_JOB_PATH_SIZE + 16], place[VD_JOB_PLACE_SIZE];
    struct stat info;
    if (stat(job->model_dir, &info) == 0)
        return make_manifest(job, reader, out, err);
    snprintf(path, sizeof path, "%s.manifest", job->model_dir);
    if (stat(path, &info) != 0)
        return vd_fail(err, VD_ERR_USAGE, "%s: `model.dir` is %s, but neither it nor %s is there",
                       vd_job_place(job, "model.dir", place), job->model_dir, path);
    return vd_manifest_read(path, &out->manifest, err);
}

static bool is_jobs(const vd_job *job, const vd_manifest *manifest) {
    vd_hash hash;
    return vd_manifest_hash(manifest, &hash, NULL) == VD_OK &&
           memcmp(hash.b, job->model_sha256, VD_HASH_SIZE) == 0;
}

/* Reports a wrong manifest hash, and what differs from the job's manifest if that lies nearby. */
static vd_status tell_difference(const vd_job *job, const vd_data_reader *reader,
                                 const vd_job_weights *w, const vd_hash *hash, vd_err *err) {
    char path[VD_JOB_PATH_SIZE + 16], got[2 * VD_HASH_SIZE + 1], expected[2 * VD_HASH_SIZE + 1];
    char place[VD_JOB_PLACE_SIZE];
    const vd_weights_hashing how = {.ro = reader ? reader->ro : NULL};
    vd_manifest beside = {0};
    vd_status status = VD_OK;
    snprintf(path, sizeof path, "%s.manifest", job->model_dir);
    if (w->present && vd_manifest_read(path, &beside, NULL) == VD_OK && is_jobs(job, &beside))
        status = vd_manifest_compare(&beside, &w->files, &how, err);
    vd_manifest_free(&beside);
    if (status != VD_OK)
        return status;
    vd_hex(hash->b, VD_HASH_SIZE, got);
    vd_hex(job->model_sha256, VD_HASH_SIZE, expected);
    return vd_fail(err, VD_ERR_USAGE,
                   "%s: `model.sha256` is %s, but the manifest of %s has %s; `verde manifest %s "
                   "--against MANIFEST` tells what differs",
                   vd_job_place(job, "model.sha256", place), expected, job->model_dir, got,
                   job->model_dir);
}

static vd_status check_manifest(const vd_job *job, const vd_data_reader *reader,
                                const vd_job_weights *w, vd_err *err) {
    vd_hash hash;
    vd_status status = vd_manifest_hash(&w->manifest, &hash, err);
    if (status != VD_OK)
        return status;
    if (memcmp(hash.b, job->model_sha256, VD_HASH_SIZE) != 0)
        return tell_difference(job, reader, w, &hash, err);
    return w->manifest.has_config
               ? VD_OK
               : vd_fail(err, VD_ERR_USAGE, "%s: has no " VD_WEIGHTS_CONFIG, job->model_dir);
}

/* ---- the model ---- */

/* Checks the job's keys that only some families of models use. */
static vd_status check_choices(const vd_job *job, const vd_model *own, const vd_model *m,
                               vd_err *err) {
    const bool prompts = vd_job_has_prompts(job);
    const bool bert = m->kind == VD_MODEL_BERT, hides = bert && m->task == VD_TASK_TOKENS;
    const struct {
        bool met;
        const char *sentence;
    } rule[] = {
        {!prompts || m->kind == VD_MODEL_GPT2 || m->kind == VD_MODEL_LLAMA ||
             (job->task == VD_JOB_SCORES && vd_tells_classes(m)),
         "`task` must be another: the model tells no next token"},
        {own->dropout < 0 || bert || m->kind == VD_MODEL_GPT2,
         "`model.dropout` must not be there: the model has none"},
        {hides == (own->mask_rate > 0), hides ? "`model.mask_rate` is missing"
                                              : "`model.mask_rate` must not be there: the model "
                                                "hides no tokens"},
        {hides == (own->mask > 0), hides ? "`model.mask` is missing: the token that replaces "
                                           "hidden ones"
                                         : "`model.mask` must not be there: the model hides no "
                                           "tokens"},
        {!hides || own->mask < m->vocab, "`model.mask` must be a token of the vocabulary"},
        {bert || own->pad < 0, "`model.pad` must not be there: it belongs to bert"},
        {!bert || m->pad < m->vocab, "`model.pad` must be a token of the vocabulary"},
        {own->vocab == 0 || bert || m->kind == VD_MODEL_RESNET,
         "`model.classes` must not be there: the model tells none"},
        {prompts || (m->kind == VD_MODEL_RESNET) == (job->data_kind == VD_DATA_CIFAR10),
         "`data.kind` must be cifar10 if the model is a resnet, and only then"},
        {job->data_kind != VD_DATA_TEXT || m->vocab >= 256,
         "`data.kind` must be tokens: the model's vocabulary has no room for bytes"},
    };
    for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++)
        if (!rule[i].met)
            return vd_fail(err, VD_ERR_USAGE, "%s: %s", job->path, rule[i].sentence);
    return VD_OK;
}

/* Replaces the job's model, which has only the job's choices (classes in `vocab`), by
 * config.json's. */
static vd_status read_model(vd_job *job, const vd_buf *config, vd_err *err) {
    const vd_model own = job->training.model;
    const vd_config_choice choice = {.dropout = own.dropout, .classes = own.vocab, .pad = own.pad};
    vd_model m = {
        .mask_rate = own.mask_rate, .mask = own.mask, .image = own.image, .lora = own.lora};
    char name[VD_JOB_PATH_SIZE + 16];
    snprintf(name, sizeof name, "%s/" VD_WEIGHTS_CONFIG, job->model_dir);
    vd_status status = vd_config_read(config->data, config->size, name, &choice, &m, err);
    if (status == VD_OK)
        status = check_choices(job, &own, &m, err);
    if (job->image_stds) {
        memcpy(m.image_mean, own.image_mean, sizeof m.image_mean);
        memcpy(m.image_std, own.image_std, sizeof m.image_std);
    }
    if (status == VD_OK)
        job->training.model = m;
    return status;
}

/* ---- where texts end ---- */

static bool has_all(const int64_t *list, int64_t count, const int64_t *of, int64_t of_count) {
    for (int64_t i = 0; i < of_count; i++) {
        int64_t k = 0;
        while (k < count && list[k] != of[i])
            k++;
        if (k == count)
            return false;
    }
    return true;
}

/* Refuses a generation_config.json with other end tokens than config.json: manifests hold
 * config.json alone, so without the folder they would be unknown. Then the job must state the
 * tokens. */
static vd_status check_generation_config(const vd_job *job, vd_err *err) {
    const vd_generation *g = &job->generation;
    const int64_t vocab = job->training.model.vocab;
    char path[VD_JOB_PATH_SIZE + 32], said[256] = "";
    int64_t stop[VD_STOPS_MAX], count = 0;
    struct stat info;
    vd_buf text = {0};
    snprintf(path, sizeof path, "%s/" VD_WEIGHTS_GENERATION_CONFIG, job->model_dir);
    if (stat(path, &info) != 0)
        return VD_OK;
    vd_status status = vd_read_file(path, VD_WEIGHTS_CONFIG_MAX, &text, err);
    if (status == VD_OK)
        status = vd_config_stops(text.data, text.size, path, vocab, stop, &count, err);
    vd_buf_free(&text);
    if (status != VD_OK || count == 0 ||
        (has_all(g->stop, g->stop_count, stop, count) &&
         has_all(stop, count, g->stop, g->stop_count)))
        return status;
    for (int64_t i = 0; i < count; i++)
        snprintf(said + strlen(said), sizeof said - strlen(said), "%s%lld", i ? ", " : "",
                 (long long)stop[i]);
    return vd_fail(err, VD_ERR_USAGE,
                   "%s: `stop` is missing: %s has other eos tokens than " VD_WEIGHTS_CONFIG
                   ", which is all that manifests have; expected stop: [%s]",
                   job->path, path, said);
}

/* Takes the end tokens from the model, if the job does not state them. */
static vd_status take_stops(vd_job *job, const vd_job_weights *w, vd_err *err) {
    vd_generation *g = &job->generation;
    char name[VD_JOB_PATH_SIZE + 16];
    if (job->task != VD_JOB_GENERATES || job->says_stops)
        return VD_OK;
    snprintf(name, sizeof name, "%s/" VD_WEIGHTS_CONFIG, job->model_dir);
    vd_status status = vd_config_stops(w->manifest.config.data, w->manifest.config.size, name,
                                       job->training.model.vocab, g->stop, &g->stop_count, err);
    if (status == VD_OK && w->present)
        status = check_generation_config(job, err);
    if (status == VD_OK && g->min_tokens > 0 && g->stop_count == 0)
        status = vd_fail(err, VD_ERR_USAGE,
                         "%s: `min_tokens` must be 0: neither the job nor %s says a stop",
                         job->path, name);
    return status;
}

/* ---- tensors for the program ---- */

static vd_status commit_to_config(vd_job *job, vd_job_weights *out, vd_err *err) {
    vd_hash byte_root, root;
    vd_config_meaning(&job->training.model, &out->meaning);
    if (!vd_buf_ok(&out->meaning))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    const ro_shape shape = {RO_U8, 1, {(int64_t)out->meaning.size}};
    vd_status status = vd_tensor_hash(NULL, &shape, out->meaning.data, &byte_root, &root, err);
    job->training.config_bytes = (int64_t)out->meaning.size;
    memcpy(job->training.config_root, root.b, sizeof root.b);
    return status;
}

static vd_status list_tensors(vd_job *job, vd_job_weights *out, vd_err *err) {
    const vd_manifest *manifest = &out->manifest;
    out->tensor = calloc((size_t)manifest->count + 1, sizeof *out->tensor);
    if (!out->tensor)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < manifest->count; i++) {
        const vd_manifest_tensor *from = &manifest->tensor[i];
        out->tensor[i].name = from->form.name;
        out->tensor[i].shape = vd_weight_shape(&from->form);
        memcpy(out->tensor[i].root, from->commitment.b, VD_HASH_SIZE);
    }
    job->training.file = out->tensor;
    job->training.file_count = manifest->count;
    return VD_OK;
}

vd_status vd_job_load_weights(vd_job *job, const vd_data_reader *reader, vd_job_weights *out,
                              vd_err *err) {
    *out = (vd_job_weights){0};
    if (!job->pretrained)
        return VD_OK;
    vd_status status = find_manifest(job, reader, out, err);
    if (status == VD_OK)
        status = check_manifest(job, reader, out, err);
    if (status == VD_OK)
        status = read_model(job, &out->manifest.config, err);
    if (status == VD_OK)
        status = take_stops(job, out, err);
    if (status == VD_OK)
        status = list_tensors(job, out, err);
    if (status == VD_OK)
        status = commit_to_config(job, out, err);
    if (status != VD_OK)
        vd_job_weights_free(out);
    return status;
}
