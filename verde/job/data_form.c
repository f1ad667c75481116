/* The forms of data files: text, tokens as llm.c writes them, records of images. */
#include "verde/job/data.h"

enum { PASS_BYTES = 1 << 20 }; /* of a mapped file between two releases of its pages */

static vd_status use_text(vd_map *file, vd_data_tensor *out, vd_err *err) {
    if (file->size == 0)
        return vd_fail(err, VD_ERR_USAGE, "%s: a text must have at least 1 byte, got 0",
                       file->path);
    out->tensor = (ro_tensor){{RO_U8, 1, {(int64_t)file->size}}, file->data};
    return VD_OK;
}

typedef struct {
    uint32_t magic, version;
    int dtype;
} token_form;

static const token_form token_forms[] = {{VD_TOKENS16_MAGIC, VD_TOKENS16_VERSION, RO_U16},
                                         {VD_TOKENS32_MAGIC, VD_TOKENS32_VERSION, RO_I32}};

static vd_status find_form(const char *path, uint32_t magic, uint32_t version, int *dtype,
                           vd_err *err) {
    for (size_t i = 0; i < sizeof token_forms / sizeof *token_forms; i++) {
        const token_form *form = &token_forms[i];
        *dtype = form->dtype;
        if (magic == form->magic && version == form->version)
            return VD_OK;
        if (magic == form->magic)
            return vd_fail(err, VD_ERR_USAGE, "%s: the token file's version must be %u, got %u",
                           path, form->version, version);
    }
    return vd_fail(err, VD_ERR_USAGE,
                   "%s: a token file must start with the number %d (16 bits) or %d (32 bits), "
                   "got %u",
                   path, VD_TOKENS16_MAGIC, VD_TOKENS32_MAGIC, magic);
}

/* Reads the header of llm.c: 256 little-endian int32, of which the first are magic, version and
 * number of tokens, the rest zeros. */
static vd_status read_header(const vd_map *file, int *dtype, uint32_t *count, vd_err *err) {
    vd_cursor cursor = vd_cursor_of(file->data, (size_t)file->size);
    uint32_t magic = vd_get_u32(&cursor), version = vd_get_u32(&cursor), rest = 0;
    *count = vd_get_u32(&cursor);
    for (int i = 3; i < VD_TOKENS_HEADER_SIZE / 4; i++)
        rest |= vd_get_u32(&cursor);
    if (cursor.failed)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: a token file must start with a header of %d bytes, "
                       "got %llu bytes in all",
                       file->path, VD_TOKENS_HEADER_SIZE, (unsigned long long)file->size);
    vd_status status = find_form(file->path, magic, version, dtype, err);
    if (status != VD_OK)
        return status;
    if (*count < 1 || *count > INT32_MAX)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: the header's token count must be 1..2147483647, "
                       "got %u",
                       file->path, *count);
    if (rest)
        return vd_fail(err, VD_ERR_USAGE, "%s: the header's numbers after the third must be 0",
                       file->path);
    return VD_OK;
}

static uint32_t skip_known(const ro_tensor *tokens, uint32_t i, uint32_t end, int64_t vocab) {
    if (tokens->shape.dtype == RO_U16)
        for (const uint16_t *token = tokens->data; i < end && token[i] < vocab;)
            i++;
    else
        for (const uint32_t *token = tokens->data; i < end && token[i] < vocab;)
            i++;
    return i;
}

/* Returns the index of the first token outside of the vocabulary, or `count` if there is none. */
static uint32_t first_beyond(const ro_tensor *tokens, uint32_t count, int64_t vocab) {
    const size_t size = ro_dtype_size(tokens->shape.dtype);
    for (uint32_t i = 0, end; i < count; i = end) {
        end = count - i < PASS_BYTES ? count : i + PASS_BYTES;
        const uint32_t at = skip_known(tokens, i, end, vocab);
        if (at < end)
            return at;
        vd_map_pass((const uint8_t *)tokens->data + i * size, (end - i) * size);
    }
    return count;
}

/* Makes a tensor of the file's tokens, in place, in this machine's byte order. */
static vd_status use_tokens(const vd_job *job, vd_map *file, vd_data_tensor *out, vd_err *err) {
    const int64_t vocab = job->training.model.vocab;
    uint32_t count = 0;
    int dtype = 0;
    vd_status status = read_header(file, &dtype, &count, err);
    if (status)
        return status;
    const size_t size = ro_dtype_size(dtype);
    uint64_t expected = VD_TOKENS_HEADER_SIZE + (uint64_t)count * size;
    if (file->size != expected)
        return vd_fail(err, VD_ERR_USAGE, "%s: a file of %u tokens must have %llu bytes, got %llu",
                       file->path, count, (unsigned long long)expected,
                       (unsigned long long)file->size);
    void *tokens = file->data + VD_TOKENS_HEADER_SIZE;
    vd_from_little(tokens, count * size, size);
    out->offset = VD_TOKENS_HEADER_SIZE;
    out->tensor = (ro_tensor){{dtype, 1, {count}}, tokens};
    const uint32_t at = first_beyond(&out->tensor, count, vocab);
    if (at == count)
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE, "%s: token %u must be below model.vocab (%lld), got %u",
                   file->path, at, (long long)vocab,
                   dtype == RO_U16 ? ((uint16_t *)tokens)[at] : ((uint32_t *)tokens)[at]);
}

static int64_t token_at(const ro_tensor *tokens, int64_t i) {
    switch (tokens->shape.dtype) {
    case RO_U8: return ((const uint8_t *)tokens->data)[i];
    case RO_U16: return ((const uint16_t *)tokens->data)[i];
    default: return ((const int32_t *)tokens->data)[i];
    }
}

/* Releases the pages before the record at `at` whenever a multiple of PASS_BYTES is crossed. */
static void pass_records(const void *bytes, uint64_t at, uint64_t size) {
    const uint64_t end = (at + size) / PASS_BYTES * PASS_BYTES,
                   before = at / PASS_BYTES * PASS_BYTES;
    if (end > before)
        vd_map_pass((const uint8_t *)bytes + before, (size_t)(end - before));
}

/* Checks the classes of sequences: each window begins with one. */
static vd_status check_classes(const vd_job *job, const vd_data_tensor *data, vd_err *err) {
    const int64_t window = vd_window_size(&job->training), classes = job->training.model.classes;
    const int64_t windows = (data->tensor.shape.dim[0] - 1) / window;
    const size_t size = (size_t)window * ro_dtype_size(data->tensor.shape.dtype);
    for (int64_t i = 0; i < windows; i++) {
        const int64_t class = token_at(&data->tensor, i * window);
        if (class < 0 || class >= classes)
            return vd_fail(err, VD_ERR_USAGE,
                           "%s: record %lld, of %lld tokens, must begin with a class below %lld, "
                           "got %lld",
                           data->path, (long long)i, (long long)window, (long long)classes,
                           (long long)class);
        pass_records(data->tensor.data, (uint64_t)i * size, size);
    }
    return VD_OK;
}

static vd_status use_records(const vd_job *job, vd_map *file, vd_data_tensor *out, vd_err *err) {
    const uint64_t size = (uint64_t)vd_record_size(&job->training.model);
    const int64_t classes = job->training.model.vocab;
    if (file->size == 0 || file->size % size != 0)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: a file of images must have one or more records of %llu bytes, got %llu "
                       "bytes",
                       file->path, (unsigned long long)size, (unsigned long long)file->size);
    for (uint64_t i = 0; i < file->size; i += size) {
        if (file->data[i] >= classes)
            return vd_fail(err, VD_ERR_USAGE,
                           "%s: the label of record %llu must be below model.classes (%lld), got "
                           "%u",
                           file->path, (unsigned long long)(i / size), (long long)classes,
                           file->data[i]);
        pass_records(file->data, i, size);
    }
    out->tensor = (ro_tensor){{RO_U8, 1, {(int64_t)file->size}}, file->data};
    return VD_OK;
}

vd_status vd_data_form(const vd_job *job, vd_map *file, vd_data_tensor *out, vd_err *err) {
    *out = (vd_data_tensor){.path = file->path};
    if (file->size > (uint64_t)RO_MAX_NUMEL)
        return vd_fail(err, VD_ERR_USAGE, "%s: %llu bytes, expected at most 2^40", file->path,
                       (unsigned long long)file->size);
    vd_status status = VD_OK;
    switch (job->data_kind) {
    case VD_DATA_TEXT: status = use_text(file, out, err); break;
    case VD_DATA_CIFAR10: return use_records(job, file, out, err);
    case VD_DATA_TOKENS: status = use_tokens(job, file, out, err); break;
    }
    return status == VD_OK && job->training.model.task == VD_TASK_CLASSES
               ? check_classes(job, out, err)
               : status;
}
