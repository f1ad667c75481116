/* The data that a job names: from a file, through its SHA-256, to a tensor with its commitment. */
#include "verde/commit/commit.h"
#include "verde/job/job.h"

#include <string.h>

void vd_dataset_free(vd_dataset *dataset) {
    vd_buf_free(&dataset->file);
    *dataset = (vd_dataset){0};
}

static vd_status check_sha256(const vd_job *job, const vd_buf *file, vd_err *err) {
    vd_hash digest;
    char got[2 * VD_HASH_SIZE + 1], expected[2 * VD_HASH_SIZE + 1];
    if (!vd_hash_tagged(NULL, file->data, file->size, &digest))
        return vd_fail(err, VD_ERR_LOCAL, "%s: SHA-256 failed", job->data_path);
    if (!memcmp(digest.b, job->data_sha256, VD_HASH_SIZE))
        return VD_OK;
    vd_hex(digest.b, VD_HASH_SIZE, got);
    vd_hex(job->data_sha256, VD_HASH_SIZE, expected);
    if (job->record_files > 1)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: `data.sha256` is %s, but the %d files of `data.files`, one after the "
                       "other, have %s",
                       job->path, expected, (int)job->record_files, got);
    return vd_fail(err, VD_ERR_USAGE, "%s: `data.sha256` is %s, but %s has %s", job->path, expected,
                   job->data_path, got);
}

static vd_status use_text(const vd_job *job, vd_dataset *out, vd_err *err) {
    if (out->file.size == 0)
        return vd_fail(err, VD_ERR_USAGE, "%s: a text must have at least 1 byte, got 0",
                       job->data_path);
    out->tensor = (ro_tensor){{RO_U8, 1, {(int64_t)out->file.size}}, out->file.data};
    return VD_OK;
}

/* llm.c's header: 256 int32, little-endian: magic, version, number of tokens, zeros. */
static vd_status read_header(const vd_job *job, vd_cursor *cursor, uint32_t *count, vd_err *err) {
    uint32_t magic = vd_get_u32(cursor), version = vd_get_u32(cursor), rest = 0;
    *count = vd_get_u32(cursor);
    for (int i = 3; i < VD_TOKENS_HEADER_SIZE / 4; i++)
        rest |= vd_get_u32(cursor);
    if (cursor->failed)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: a token file must start with a header of %d bytes, "
                       "got %zu bytes in all",
                       job->data_path, VD_TOKENS_HEADER_SIZE, cursor->size);
    if (magic != VD_TOKENS_MAGIC)
        return vd_fail(err, VD_ERR_USAGE, "%s: a token file must start with the number %d, got %u",
                       job->data_path, VD_TOKENS_MAGIC, magic);
    if (version != VD_TOKENS_VERSION)
        return vd_fail(err, VD_ERR_USAGE, "%s: the token file's version must be %d, got %u",
                       job->data_path, VD_TOKENS_VERSION, version);
    if (*count < 1 || *count > INT32_MAX)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: the header's token count must be 1..2147483647, "
                       "got %u",
                       job->data_path, *count);
    if (rest)
        return vd_fail(err, VD_ERR_USAGE, "%s: the header's numbers after the third must be 0",
                       job->data_path);
    return VD_OK;
}

static vd_status check_tokens(const vd_job *job, const uint16_t *token, uint32_t count,
                              vd_err *err) {
    for (uint32_t i = 0; i < count; i++)
        if (token[i] >= job->training.model.vocab)
            return vd_fail(err, VD_ERR_USAGE,
                           "%s: token %u must be below model.vocab (%lld), got %u", job->data_path,
                           i, (long long)job->training.model.vocab, token[i]);
    return VD_OK;
}

/* The tokens stay where they are in the file's bytes, in this machine's order. */
static vd_status use_tokens(const vd_job *job, vd_dataset *out, vd_err *err) {
    uint32_t count;
    vd_cursor cursor = vd_cursor_of(out->file.data, out->file.size);
    vd_status status = read_header(job, &cursor, &count, err);
    if (status)
        return status;
    uint64_t expected = VD_TOKENS_HEADER_SIZE + (uint64_t)count * sizeof(uint16_t);
    if (out->file.size != expected)
        return vd_fail(err, VD_ERR_USAGE, "%s: a file of %u tokens must have %llu bytes, got %zu",
                       job->data_path, count, (unsigned long long)expected, out->file.size);
    void *tokens = out->file.data + VD_TOKENS_HEADER_SIZE;
    vd_from_little(tokens, count * sizeof(uint16_t), sizeof(uint16_t));
    out->tensor = (ro_tensor){{RO_U16, 1, {count}}, tokens};
    return check_tokens(job, tokens, count, err);
}

/* The files one after the other. */
static vd_status read_records(const vd_job *job, vd_dataset *out, vd_err *err) {
    for (int64_t i = 0; i < job->record_files; i++) {
        const size_t before = out->file.size;
        vd_status status =
            vd_read_file(job->record_path[i], VD_DATASET_BYTES_MAX - before, &out->file, err);
        if (status)
            return status;
        out->record_bytes[i] = out->file.size - before;
    }
    return VD_OK;
}

/* One file: `bytes` of it, of which `size` each make a record. */
static vd_status check_records(const vd_job *job, const char *path, const uint8_t *data,
                               size_t bytes, size_t size, vd_err *err) {
    const int64_t classes = job->training.model.vocab;
    if (bytes == 0 || bytes % size != 0)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: a file of images must have one or more records of %zu bytes, got %zu "
                       "bytes",
                       path, size, bytes);
    for (size_t i = 0; i < bytes; i += size)
        if (data[i] >= classes)
            return vd_fail(err, VD_ERR_USAGE,
                           "%s: the label of record %zu must be below model.classes (%lld), got %u",
                           path, i / size, (long long)classes, data[i]);
    return VD_OK;
}

static vd_status use_records(const vd_job *job, vd_dataset *out, vd_err *err) {
    const size_t size = (size_t)vd_record_size(&job->training.model);
    const uint8_t *data = out->file.data;
    for (int64_t i = 0; i < job->record_files; i++) {
        vd_status status =
            check_records(job, job->record_path[i], data, out->record_bytes[i], size, err);
        if (status)
            return status;
        data += out->record_bytes[i];
    }
    out->tensor = (ro_tensor){{RO_U8, 1, {(int64_t)out->file.size}}, out->file.data};
    return VD_OK;
}

static vd_status use_data(const vd_job *job, vd_dataset *out, vd_err *err) {
    switch (job->data_kind) {
    case VD_DATA_TEXT: return use_text(job, out, err);
    case VD_DATA_CIFAR10: return use_records(job, out, err);
    case VD_DATA_TOKENS: return use_tokens(job, out, err);
    }
    return vd_fail(err, VD_ERR_USAGE, "%s: no data of kind %d", job->path, (int)job->data_kind);
}

static vd_status commit_to(vd_job *job, const ro_tensor *data, vd_err *err) {
    vd_hash byte_root, root;
    vd_status status = vd_tensor_hash(NULL, &data->shape, data->data, &byte_root, &root, err);
    if (status)
        return status;
    job->training.data_dtype = data->shape.dtype;
    job->training.data_count = data->shape.dim[0];
    memcpy(job->training.data_root, root.b, VD_HASH_SIZE);
    return VD_OK;
}

vd_status vd_job_load_data(vd_job *job, vd_dataset *out, vd_err *err) {
    *out = (vd_dataset){0};
    vd_status status = job->data_kind == VD_DATA_CIFAR10
                           ? read_records(job, out, err)
                           : vd_read_file(job->data_path, VD_DATASET_BYTES_MAX, &out->file, err);
    if (!status)
        status = check_sha256(job, &out->file, err);
    if (!status)
        status = use_data(job, out, err);
    if (!status)
        status = commit_to(job, &out->tensor, err);
    if (status)
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
