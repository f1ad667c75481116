/* Loads the weights that a program job begins with, by their manifest: `weights: {dir, sha256}`. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verde/load/load.h"

static vd_status find_files(const vd_job *job, const vd_data_reader *reader, vd_start *out,
                            vd_err *err) {
    const vd_weights_hashing how = {reader->ro, reader->progress, reader->user};
    char path[VD_JOB_PATH_SIZE + 16], place[VD_JOB_PLACE_SIZE];
    struct stat info;
    if (stat(job->start.dir, &info) == 0) {
        vd_status status = vd_weights_open(job->start.dir, &out->file, err);
        out->present = status == VD_OK;
        return status == VD_OK ? vd_manifest_make(&out->file, &how, &out->manifest, err) : status;
    }
    snprintf(path, sizeof path, "%s.manifest", job->start.dir);
    if (stat(path, &info) == 0)
        return vd_manifest_read(path, &out->manifest, err);
    return vd_fail(err, VD_ERR_USAGE, "%s: `weights.dir` is %s, but neither it nor %s is there",
                   vd_job_place(job, "weights.dir", place), job->start.dir, path);
}

static vd_status check_hash(const vd_job *job, const vd_start *start, vd_err *err) {
    char place[VD_JOB_PLACE_SIZE], hex[2 * VD_HASH_SIZE + 1];
    vd_hash hash;
    const vd_status status = vd_manifest_hash(&start->manifest, &hash, err);
    if (status != VD_OK || memcmp(job->start.sha256, hash.b, sizeof hash.b) == 0)
        return status;
    vd_hex(hash.b, VD_HASH_SIZE, hex);
    return vd_fail(err, VD_ERR_USAGE, "%s: `weights.sha256` is not that of the manifest of %s, %s",
                   vd_job_place(job, "weights.sha256", place), job->start.dir, hex);
}

/* Files and manifest are both sorted by name, so a tensor has the same index in both. */
vd_status vd_load_start_files(vd_job *job, const vd_data_reader *reader, vd_start *out,
                              vd_err *err) {
    vd_status status = find_files(job, reader, out, err);
    if (status == VD_OK)
        status = check_hash(job, out, err);
    if (status != VD_OK)
        return status;
    out->count = out->manifest.count;
    out->tensor = calloc((size_t)out->count + 1, sizeof *out->tensor);
    out->at = calloc((size_t)out->count + 1, sizeof *out->at);
    if (!out->tensor || !out->at)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < out->count; i++) {
        const vd_manifest_tensor *from = &out->manifest.tensor[i];
        out->tensor[i].name = from->form.name;
        out->tensor[i].shape = vd_weight_shape(&from->form);
        memcpy(out->tensor[i].root, from->commitment.b, VD_HASH_SIZE);
        out->at[i] = i;
    }
    job->training.first_step = job->start.first_step >= 0 ? job->start.first_step : 0;
    return VD_OK;
}
