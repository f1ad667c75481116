/* The data that a job names: from files, through their SHA-256, to tensors with commitments. */
#include "verde/commit/commit.h"
#include "verde/job/data.h"

#include <stdlib.h>
#include <string.h>

enum {
    HASH_CHUNK = 4 << 20,
    EVALUATION_INTERVAL = 64, /* batches between committed states, which have one number */
};

/* Both hashes of every byte. */
typedef struct {
    const vd_data_reader *how;
    uint64_t done, total;
    vd_sha *sha;
} hasher;

void vd_dataset_free(vd_dataset *dataset) {
    for (uint32_t i = 0; i < dataset->file_count; i++)
        vd_map_free(&dataset->file[i]);
    free(dataset->file);
    free(dataset->list);
    free(dataset->shard);
    vd_buf_free(&dataset->joined);
    *dataset = (vd_dataset){0};
}

static void tell(hasher *h, uint64_t more) {
    h->done += more;
    if (h->how && h->how->progress)
        h->how->progress(h->how->user, h->done, h->total);
}

static void put_file(hasher *h, const vd_map *file) {
    for (uint64_t at = 0; at < file->size; at += HASH_CHUNK) {
        const uint64_t left = file->size - at, size = left < HASH_CHUNK ? left : HASH_CHUNK;
        vd_sha_put(h->sha, file->data + at, (size_t)size);
        tell(h, size);
    }
}

static vd_status check_sha256(const vd_job *job, hasher *h, const vd_dataset *data, vd_err *err) {
    vd_hash digest;
    char got[2 * VD_HASH_SIZE + 1], expected[2 * VD_HASH_SIZE + 1];
    if (!vd_sha_finish(h->sha, &digest))
        return vd_fail(err, VD_ERR_LOCAL, "%s: SHA-256 failed", data->file[0].path);
    if (!memcmp(digest.b, job->data_sha256, VD_HASH_SIZE))
        return VD_OK;
    vd_hex(digest.b, VD_HASH_SIZE, got);
    vd_hex(job->data_sha256, VD_HASH_SIZE, expected);
    if (data->file_count > 1)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: `data.sha256` is %s, but the %u files of `data.files`, one after the "
                       "other, have %s",
                       job->path, expected, data->file_count, got);
    return vd_fail(err, VD_ERR_USAGE, "%s: `data.sha256` is %s, but %s has %s", job->path, expected,
                   data->file[0].path, got);
}

static vd_status join(vd_dataset *out, const vd_map *file, vd_err *err) {
    if (file->size > VD_JOINED_BYTES_MAX - out->joined.size)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: files of images must have at most %llu bytes together", file->path,
                       (unsigned long long)VD_JOINED_BYTES_MAX);
    vd_put(&out->joined, file->data, (size_t)file->size);
    return vd_buf_ok(&out->joined) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

/* One file after the other is hashed and looked at while its pages are at hand. */
static vd_status read_files(const vd_job *job, hasher *h, vd_dataset *out, vd_err *err) {
    const bool joins = job->data_kind == VD_DATA_CIFAR10 && out->file_count > 1;
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < out->file_count; i++) {
        put_file(h, &out->file[i]);
        status = vd_data_form(job, &out->file[i], &out->list[i], err);
        if (status == VD_OK && joins)
            status = join(out, &out->file[i], err);
    }
    out->count = joins ? 1 : out->file_count;
    if (status == VD_OK && joins)
        out->list[0] =
            (vd_data_tensor){.tensor = {{RO_U8, 1, {(int64_t)out->joined.size}}, out->joined.data}};
    return status == VD_OK ? check_sha256(job, h, out, err) : status;
}

static vd_status check_types(const vd_dataset *data, vd_err *err) {
    const int dtype = data->list[0].tensor.shape.dtype;
    for (uint32_t i = 1; i < data->count; i++)
        if (data->list[i].tensor.shape.dtype != dtype)
            return vd_fail(err, VD_ERR_USAGE, "%s: has tokens of type %s, and %s of type %s",
                           data->list[i].path, ro_dtype_name(data->list[i].tensor.shape.dtype),
                           data->list[0].path, ro_dtype_name(dtype));
    return VD_OK;
}

static vd_status commit_to(vd_job *job, hasher *h, vd_dataset *out, vd_err *err) {
    vd_training *t = &job->training;
    for (uint32_t i = 0; i < out->count; i++) {
        const ro_tensor *data = &out->list[i].tensor;
        vd_hash byte_root, root;
        vd_status status = vd_tensor_hash(h->how ? h->how->ro : NULL, &data->shape, data->data,
                                          &byte_root, &root, err);
        if (status)
            return status;
        memcpy(i ? out->shard[i - 1].root : t->data_root, root.b, VD_HASH_SIZE);
        if (i)
            out->shard[i - 1].count = data->shape.dim[0];
        tell(h, i + 1 < out->count ? (uint64_t)data->shape.dim[0] : h->total - h->done);
    }
    t->data_dtype = out->list[0].tensor.shape.dtype;
    t->data_count = out->list[0].tensor.shape.dim[0];
    t->shard = out->shard;
    t->shard_count = out->count - 1;
    return VD_OK;
}

static vd_status hash_data(vd_job *job, const vd_data_reader *reader, vd_dataset *out,
                           vd_err *err) {
    hasher h = {.how = reader, .sha = vd_sha_create()};
    for (uint32_t i = 0; i < out->file_count; i++)
        h.total += 2 * out->file[i].size;
    out->list = calloc(out->file_count, sizeof *out->list);
    out->shard = calloc(out->file_count, sizeof *out->shard);
    vd_status status = h.sha && out->list && out->shard
                           ? read_files(job, &h, out, err)
                           : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = check_types(out, err);
    if (status == VD_OK)
        status = commit_to(job, &h, out, err);
    vd_sha_destroy(h.sha);
    return status;
}

vd_status vd_job_load_data(vd_job *job, const vd_data_reader *reader, vd_dataset *out,
                           vd_err *err) {
    *out = (vd_dataset){0};
    vd_status status = vd_data_open(job, out, err);
    if (status == VD_OK)
        status = hash_data(job, reader, out, err);
    if (status == VD_OK && job->training.evaluates) {
        vd_training *t = &job->training;
        t->steps = vd_evaluation_steps(t);
        t->checkpoint_interval = t->steps < EVALUATION_INTERVAL ? t->steps : EVALUATION_INTERVAL;
    }
    if (status != VD_OK)
        vd_dataset_free(out);
    return status;
}

static vd_status load_thresholds(const vd_job *job, vd_program_rounding *out, vd_err *err) {
    const char *path = job->rounding.thresholds_path;
    vd_thresholds found;
    vd_hash hash;
    vd_buf file = {0};
    vd_status status = vd_read_file(path, VD_THRESHOLDS_BYTES_MAX, &file, err);
    if (!status && !vd_hash_tagged(NULL, file.data, file.size, &hash))
        status = vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", path);
    vd_buf_free(&file);
    if (!status && memcmp(hash.b, job->rounding.thresholds_sha256, sizeof hash.b) != 0)
        status = vd_fail(err, VD_ERR_USAGE, "%s: its SHA-256 is not rounding.sha256 of %s", path,
                         job->path);
    if (!status)
        status = vd_thresholds_load(path, &found, err);
    if (!status && found.bits != out->bits)
        status = vd_fail(err, VD_ERR_USAGE, "%s: thresholds for %d bits, rounding.bits of %s is %d",
                         path, (int)found.bits, job->path, (int)out->bits);
    if (!status)
        memcpy(out->threshold, found.of, sizeof out->threshold);
    return status;
}

vd_status vd_job_program(const vd_job *job, vd_program *out, vd_err *err) {
    vd_err inner = {0};
    vd_status status = vd_training_program(&job->training, out, &inner);
    if (status)
        return vd_fail(err, status, "%s: %s", job->path, inner.text);
    out->rounding.bits = (int32_t)job->rounding.bits;
    out->rounding.encoding = (int32_t)job->rounding.encoding;
    return job->rounding.encoding == VD_LOG_SYMBOLS ? load_thresholds(job, &out->rounding, err)
                                                    : VD_OK;
}
