/* The header of a safetensors file: 8 bytes with its size, then JSON, then the tensors' bytes. */
#include "verde/weights/internal.h"

#include <stdlib.h>
#include <string.h>

#include "verde/commit/json.h"

enum { SIZE_BYTES = 8, NAME_SHOWN = 100 };

/* State of reading one header. */
typedef struct {
    const char *path;
    uint32_t index; /* number of the file */
    uint64_t data;  /* where the tensors' bytes begin */
    uint64_t size;  /* of the file */
    vd_err *err;
} header;

vd_status vd_weights_json(const void *text, size_t size, const char *path, json_t **out,
                          vd_err *err) {
    vd_status status = vd_json_read(text, size, VD_WEIGHTS_ELEMENTS_MAX, out, err);
    return status == VD_OK ? VD_OK
                           : vd_fail(err, status == VD_ERR_PEER ? VD_ERR_USAGE : status, "%s: %s",
                                     path, err ? err->text : "");
}

/* ---- one tensor ---- */

static vd_status header_bad(const header *h, const char *tensor, const char *what) {
    return vd_fail(h->err, VD_ERR_USAGE, "%s: tensor %.*s: %s", h->path, NAME_SHOWN, tensor, what);
}

static vd_status read_type(const header *h, const char *name, const json_t *value,
                           vd_weight_form *out) {
    const char *text = json_string_value(value);
    if (!text)
        return header_bad(h, name, "`dtype` must be a string");
    if (!vd_weight_type_of(text, &out->type))
        return vd_fail(h->err, VD_ERR_USAGE,
                       "%s: tensor %.*s: unknown `dtype` \"%.20s\"; expected one such as F32, BF16 "
                       "or F16",
                       h->path, NAME_SHOWN, name, text);
    return VD_OK;
}

static vd_status read_shape(const header *h, const char *name, const json_t *value,
                            vd_weight_form *out) {
    const size_t count = json_array_size(value);
    _Static_assert(RO_MAX_DIMS == 8, "the sentence below");
    if (!json_is_array(value) || count > RO_MAX_DIMS)
        return header_bad(h, name, "`shape` must be a list of at most 8 dimensions");
    out->ndim = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *dim = json_array_get(value, i);
        out->dim[i] = json_integer_value(dim);
        if (!json_is_integer(dim) || out->dim[i] < 1)
            return header_bad(h, name, "a dimension of `shape` must be a whole number, 1 or more");
    }
    if (vd_weight_bytes(out) == 0)
        return header_bad(h, name, "`shape` has more than 2^40 elements");
    return VD_OK;
}

static vd_status read_offsets(const header *h, const char *name, const json_t *value,
                              vd_weight *out) {
    const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    const json_int_t from = json_integer_value(begin), to = json_integer_value(end);
    const uint64_t room = h->size - h->data, expected = vd_weight_bytes(&out->form);
    char form[VD_WEIGHT_FORM_TEXT];
    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        from < 0 || to < from)
        return header_bad(h, name,
                          "`data_offsets` must be two whole numbers, 0 or more, ascending");
    if ((uint64_t)to > room)
        return vd_fail(h->err, VD_ERR_USAGE,
                       "%s: tensor %.*s: `data_offsets` end at %lld, beyond the %llu bytes that "
                       "the file has of tensors",
                       h->path, NAME_SHOWN, name, (long long)to, (unsigned long long)room);
    vd_weight_form_text(&out->form, form);
    if ((uint64_t)(to - from) != expected)
        return vd_fail(h->err, VD_ERR_USAGE,
                       "%s: tensor %.*s: %s has %llu bytes, but its `data_offsets` hold %lld",
                       h->path, NAME_SHOWN, name, form, (unsigned long long)expected,
                       (long long)(to - from));
    out->at = h->data + (uint64_t)from;
    out->size = expected;
    return VD_OK;
}

/* Checks alignment. The format sorts tensors by falling element size and pads its header to 8
 * bytes, so a misaligned file comes from an old or foreign writer. */
static vd_status check_alignment(const header *h, const vd_weight *w) {
    const size_t element = vd_weight_type_size(w->form.type);
    if (w->at % element == 0)
        return VD_OK;
    return vd_fail(h->err, VD_ERR_USAGE,
                   "%s: tensor %.*s begins at byte %llu of the file, which is no multiple of its "
                   "%zu-byte elements; save the model again with a present version of safetensors",
                   h->path, NAME_SHOWN, w->form.name, (unsigned long long)w->at, element);
}

static vd_status read_tensor(const header *h, const char *name, json_t *value, vd_weight *out) {
    *out = (vd_weight){.file = h->index};
    if (!vd_weight_name_valid(name))
        return header_bad(
            h, name,
            "a name must be 1 to 255 printable ASCII characters without space, quote and "
            "backslash");
    memcpy(out->form.name, name, strlen(name) + 1);
    const json_t *type = json_object_get(value, "dtype"), *shape = json_object_get(value, "shape"),
                 *offsets = json_object_get(value, "data_offsets");
    if (!type || !shape || !offsets || json_object_size(value) != 3)
        return header_bad(h, name, "expected exactly `dtype`, `shape` and `data_offsets`");
    vd_status status = read_type(h, name, type, &out->form);
    if (status == VD_OK)
        status = read_shape(h, name, shape, &out->form);
    if (status == VD_OK)
        status = read_offsets(h, name, offsets, out);
    out->shape = vd_weight_shape(&out->form);
    return status == VD_OK ? check_alignment(h, out) : status;
}

/* ---- all tensors of the file ---- */

static vd_status check_notes(const header *h, json_t *notes) {
    const char *name;
    json_t *value;
    if (!json_is_object(notes))
        return vd_fail(h->err, VD_ERR_USAGE, "%s: `__metadata__` must be an object", h->path);
    json_object_foreach(notes, name, value) if (!json_is_string(value)) return vd_fail(
        h->err, VD_ERR_USAGE, "%s: `__metadata__`: `%.60s` must be a string", h->path, name);
    return VD_OK;
}

static vd_status header_room(const header *h, size_t more, vd_weights *out) {
    if (more > VD_WEIGHTS_MAX - out->count)
        return vd_fail(h->err, VD_ERR_USAGE, "%s: more than %d tensors", h->path, VD_WEIGHTS_MAX);
    vd_weight *grown = realloc(out->tensor, (out->count + more + 1) * sizeof *grown);
    if (!grown)
        return vd_fail(h->err, VD_ERR_LOCAL, "%s: out of memory", h->path);
    out->tensor = grown;
    return VD_OK;
}

static vd_status read_tensors(const header *h, json_t *root, vd_weights *out) {
    json_t *notes = json_object_get(root, "__metadata__"), *value;
    const char *name;
    vd_status status = notes ? check_notes(h, notes) : VD_OK;
    if (status == VD_OK)
        status = header_room(h, json_object_size(root) - (notes != NULL), out);
    json_object_foreach(root, name, value) {
        if (status != VD_OK)
            return status;
        if (value == notes)
            continue;
        status = read_tensor(h, name, value, &out->tensor[out->count]);
        out->count += status == VD_OK;
    }
    return status;
}

static int by_place(const void *a, const void *b) {
    const vd_weight *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Sorts tensors by their offset, and checks that they cover all bytes after the header exactly
 * once: bytes that nobody reads could hide anything. */
static vd_status check_cover(const header *h, vd_weight *tensor, uint32_t count) {
    uint64_t at = h->data;
    qsort(tensor, count, sizeof *tensor, by_place);
    for (uint32_t i = 0; i < count; at += tensor[i++].size) {
        const char *name = tensor[i].form.name;
        if (tensor[i].at < at)
            return vd_fail(h->err, VD_ERR_USAGE, "%s: tensors %.*s and %.*s overlap", h->path,
                           NAME_SHOWN, tensor[i - 1].form.name, NAME_SHOWN, name);
        if (tensor[i].at > at)
            return vd_fail(h->err, VD_ERR_USAGE,
                           "%s: %llu bytes before tensor %.*s belong to no tensor", h->path,
                           (unsigned long long)(tensor[i].at - at), NAME_SHOWN, name);
    }
    if (at != h->size)
        return vd_fail(h->err, VD_ERR_USAGE,
                       "%s: %llu bytes at the end of the file belong to no tensor", h->path,
                       (unsigned long long)(h->size - at));
    return VD_OK;
}

static vd_status read_size(const uint8_t *bytes, uint64_t size, header *h, uint64_t *out) {
    vd_cursor cursor = vd_cursor_of(bytes, size < SIZE_BYTES ? size : SIZE_BYTES);
    *out = vd_get_u64(&cursor);
    if (cursor.failed)
        return vd_fail(h->err, VD_ERR_USAGE,
                       "%s: a safetensors file begins with 8 bytes, the size of its header; this "
                       "one has %llu in all",
                       h->path, (unsigned long long)size);
    if (*out > VD_WEIGHTS_HEADER_MAX)
        return vd_fail(h->err, VD_ERR_USAGE,
                       "%s: the first 8 bytes say that the header has %llu bytes; at most %d are "
                       "allowed: is this a safetensors file?",
                       h->path, (unsigned long long)*out, VD_WEIGHTS_HEADER_MAX);
    if (*out > size - SIZE_BYTES)
        return vd_fail(h->err, VD_ERR_USAGE,
                       "%s: the header has %llu bytes, but only %llu follow: cut short?", h->path,
                       (unsigned long long)*out, (unsigned long long)(size - SIZE_BYTES));
    h->data = SIZE_BYTES + *out;
    return VD_OK;
}

vd_status vd_header_read(const uint8_t *bytes, uint64_t size, const char *path, uint32_t index,
                         vd_weights *out, vd_err *err) {
    header h = {.path = path, .index = index, .size = size, .err = err};
    const uint32_t before = out->count;
    uint64_t length;
    json_t *root = NULL;
    vd_status status = read_size(bytes, size, &h, &length);
    if (status != VD_OK)
        return status;
    while (length > 0 && bytes[SIZE_BYTES + length - 1] == ' ') /* the format pads with spaces */
        length--;
    status = vd_weights_json(bytes + SIZE_BYTES, length, path, &root, err);
    if (status == VD_OK)
        status = read_tensors(&h, root, out);
    if (status == VD_OK)
        status = check_cover(&h, out->tensor + before, out->count - before);
    json_decref(root);
    return status;
}

vd_status vd_weights_header(const void *bytes, uint64_t size, const char *name, vd_weights *out,
                            vd_err *err) {
    return vd_header_read(bytes, size, name, out->file_count, out, err);
}
