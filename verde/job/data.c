/* This file loads a job's data: it maps and hashes files, and makes tensors with commitments. */
#include "verde/base/thread.h"
#include "verde/commit/commit.h"
#include "verde/job/data.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    HASH_CHUNK = 4 << 20,
    EVALUATION_INTERVAL = 64, /* batches between committed states, each of which is one number */
};

/* SHA-256 over all files in order. It cannot be split, and takes longer than all other work on the
 * data, so it has a thread of its own. */
typedef struct {
    const vd_data_reader *how;
    const vd_dataset *data;
    uint64_t done, total;
    vd_sha *sha;
    pthread_t thread;
    bool runs;
    atomic_bool stop; /* set when the data is refused: hashing may stop */
} sum_of_files;

void vd_dataset_free(vd_dataset *dataset) {
    for (uint32_t i = 0; i < dataset->file_count; i++)
        vd_map_free(&dataset->file[i]);
    free(dataset->file);
    free(dataset->list);
    free(dataset->shard);
    vd_map_free(&dataset->joined);
    *dataset = (vd_dataset){0};
}

static void put_file(sum_of_files *h, const vd_map *file) {
    for (uint64_t at = 0; at < file->size && !atomic_load(&h->stop); at += HASH_CHUNK) {
        const uint64_t left = file->size - at, size = left < HASH_CHUNK ? left : HASH_CHUNK;
        vd_sha_put(h->sha, file->data + at, (size_t)size);
        vd_map_pass(file->data + at, (size_t)size);
        h->done += size;
        if (h->how && h->how->progress)
            h->how->progress(h->how->user, h->done, h->total);
    }
}

static void *put_files(void *user) {
    sum_of_files *h = user;
    for (uint32_t i = 0; i < h->data->file_count; i++)
        put_file(h, &h->data->file[i]);
    return NULL;
}

static void end_sum(sum_of_files *h) {
    if (h->runs)
        pthread_join(h->thread, NULL);
    h->runs = false;
}

/* Starts hashing the files; finishes it first if tokens must be reordered in place. */
static void begin_sum(sum_of_files *h) {
    const bool reorders = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    for (uint32_t i = 0; i < h->data->file_count; i++)
        h->total += h->data->file[i].size;
    h->runs = !reorders && vd_thread_start(&h->thread, put_files, h) == 0;
    if (!h->runs)
        put_files(h);
}

static vd_status check_sha256(const vd_job *job, sum_of_files *h, vd_err *err) {
    const vd_dataset *data = h->data;
    vd_hash digest;
    char got[2 * VD_HASH_SIZE + 1], expected[2 * VD_HASH_SIZE + 1], place[VD_JOB_PLACE_SIZE];
    if (!vd_sha_finish(h->sha, &digest))
        return vd_fail(err, VD_ERR_LOCAL, "%s: SHA-256 failed", data->file[0].path);
    if (!memcmp(digest.b, job->data_sha256, VD_HASH_SIZE))
        return VD_OK;
    vd_hex(digest.b, VD_HASH_SIZE, got);
    vd_hex(job->data_sha256, VD_HASH_SIZE, expected);
    vd_job_place(job, "data.sha256", place);
    if (data->file_count > 1)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: `data.sha256` is %s, but the %u files of `data.files`, one after the "
                       "other, have %s",
                       place, expected, data->file_count, got);
    return vd_fail(err, VD_ERR_USAGE, "%s: `data.sha256` is %s, but %s has %s", place, expected,
                   data->file[0].path, got);
}

/* Joins files of images into one tensor, because images are drawn from all of them. */
static vd_status join_files(vd_dataset *out, vd_err *err) {
    uint64_t size = 0;
    for (uint32_t i = 0; i < out->file_count; i++) {
        if (out->file[i].size > VD_JOINED_BYTES_MAX - size)
            return vd_fail(err, VD_ERR_USAGE,
                           "%s: files of images must have at most %llu bytes together",
                           out->file[i].path, (unsigned long long)VD_JOINED_BYTES_MAX);
        size += out->file[i].size;
    }
    vd_status status = vd_map_join(out->file, out->file_count, &out->joined, err);
    if (status == VD_OK)
        out->list[0] = (vd_data_tensor){.tensor = {{RO_U8, 1, {(int64_t)size}}, out->joined.data}};
    return status;
}

static vd_status read_files(const vd_job *job, vd_dataset *out, vd_err *err) {
    const bool joins = job->data_kind == VD_DATA_CIFAR10 && out->file_count > 1;
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < out->file_count; i++)
        status = vd_data_form(job, &out->file[i], &out->list[i], err);
    out->count = joins ? 1 : out->file_count;
    return status == VD_OK && joins ? join_files(out, err) : status;
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

/* Computes the commitment of each tensor; *first is that of tensor 0. */
static vd_status commit_to(ro_ctx *ro, const vd_dataset *out, vd_hash *first, vd_err *err) {
    for (uint32_t i = 0; i < out->count; i++) {
        const ro_tensor *data = &out->list[i].tensor;
        vd_hash byte_root, root;
        vd_status status = vd_tensor_hash(ro, &data->shape, data->data, &byte_root, &root, err);
        if (status)
            return status;
        if (i == 0) {
            *first = root;
            continue;
        }
        out->shard[i - 1].count = data->shape.dim[0];
        memcpy(out->shard[i - 1].root, root.b, VD_HASH_SIZE);
    }
    return VD_OK;
}

/* Returns the bound of all elements, which vd_data_form has checked; 0: images' bytes have none. */
static int64_t below_of(const vd_job *job) {
    const vd_model *m = &job->training.model;
    const int64_t classes = m->task == VD_TASK_CLASSES ? m->classes : 0;
    if (job->data_kind == VD_DATA_CIFAR10)
        return 0;
    return classes > m->vocab ? classes : m->vocab;
}

static void put_training(const vd_dataset *out, const vd_hash *first, vd_training *t) {
    memcpy(t->data_root, first->b, VD_HASH_SIZE);
    t->data_dtype = out->list[0].tensor.shape.dtype;
    t->data_count = out->list[0].tensor.shape.dim[0];
    t->shard = out->shard;
    t->shard_count = out->count - 1;
}

/* Checks and hashes the data. Reports errors in one file first, then a wrong SHA-256, then
 * others. */
static vd_status hash_data(vd_job *job, sum_of_files *h, vd_dataset *out, vd_err *err) {
    vd_err together = {0};
    vd_hash first;
    begin_sum(h);
    vd_status status = read_files(job, out, err);
    vd_status rest = status == VD_OK ? check_types(out, &together) : status;
    if (rest == VD_OK)
        rest = commit_to(h->how ? h->how->ro : NULL, out, &first, &together);
    atomic_store(&h->stop, status != VD_OK);
    end_sum(h);
    if (status == VD_OK)
        status = check_sha256(job, h, err);
    if (status == VD_OK && rest != VD_OK)
        status = vd_fail(err, rest, "%s", together.text);
    if (status == VD_OK)
        put_training(out, &first, &job->training);
    if (status == VD_OK)
        job->training.data_below = below_of(job);
    return status;
}

static vd_status load_data(vd_job *job, const vd_data_reader *reader, vd_dataset *out,
                           vd_err *err) {
    sum_of_files h = {.how = reader, .data = out, .sha = vd_sha_create()};
    out->list = calloc(out->file_count, sizeof *out->list);
    out->shard = calloc(out->file_count, sizeof *out->shard);
    vd_status status = h.sha && out->list && out->shard
                           ? hash_data(job, &h, out, err)
                           : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_sha_destroy(h.sha);
    return status;
}

vd_status vd_job_load_data(vd_job *job, const vd_data_reader *reader, vd_dataset *out,
                           vd_err *err) {
    *out = (vd_dataset){0};
    vd_status status = vd_data_open(job, out, err);
    if (status == VD_OK)
        status = load_data(job, reader, out, err);
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
    char place[VD_JOB_PLACE_SIZE];
    vd_thresholds found;
    vd_err why = {0};
    vd_hash hash;
    vd_buf file = {0};
    vd_status status = vd_read_file(path, VD_THRESHOLDS_BYTES_MAX, &file, &why);
    if (status)
        status = vd_fail(err, status, "%s: `rounding.thresholds`: %s",
                         vd_job_place(job, "rounding.thresholds", place), why.text);
    if (!status && !vd_hash_tagged(NULL, file.data, file.size, &hash))
        status = vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", path);
    vd_buf_free(&file);
    if (!status && memcmp(hash.b, job->rounding.thresholds_sha256, sizeof hash.b) != 0)
        status = vd_fail(err, VD_ERR_USAGE, "%s: `rounding.sha256` is another than that of %s",
                         vd_job_place(job, "rounding.sha256", place), path);
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
    if (vd_job_has_prompts(job))
        return vd_fail(err, VD_ERR_USAGE, "%s: each of its prompts is a program of its own",
                       job->path);
    vd_status status = vd_training_program(&job->training, out, &inner);
    if (status)
        return vd_fail(err, status, "%s: %s", job->path, inner.text);
    out->rounding.bits = (int32_t)job->rounding.bits;
    out->rounding.encoding = (int32_t)job->rounding.encoding;
    return job->rounding.encoding == VD_LOG_SYMBOLS ? load_thresholds(job, &out->rounding, err)
                                                    : VD_OK;
}
