/* The places of a run's data: DIR/data.json names files, and DIR/data holds copies of tensors that
 * are small or lie in no file. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verde/commit/json.h"
#include "verde/load/load.h"

enum {
    COPY_BYTES_MAX = 16 << 20, /* larger tensors are not copied */
    COPY_CHUNK = 1 << 20,
    ALIGNMENT = 64,           /* of tensors in DIR/data */
    RECORD_ELEMENT_BYTES = 8, /* data.json has at least as many bytes per element */
    PATH_SIZE = 4200,
};

void vd_placed_data_free(vd_placed_data *data) {
    for (uint32_t i = 0; i < data->file_count; i++)
        vd_map_free(&data->file[i]);
    free(data->file);
    free(data->place);
    free(data->tensor);
    *data = (vd_placed_data){0};
}

static vd_status make_places(vd_loaded *loaded, vd_err *err) {
    vd_placed_data *to = &loaded->placed;
    to->place = calloc((size_t)loaded->program.data_count + 1, sizeof *to->place);
    to->tensor = calloc((size_t)loaded->program.data_count + 1, sizeof *to->tensor);
    loaded->exec.data = to->tensor;
    return to->place && to->tensor ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

/* Places the tensors of the model's files, found by name; they are data tensors 1..count. */
static void place_weights(vd_loaded *loaded, uint32_t count) {
    const vd_weights *files = &loaded->weights.files;
    for (uint32_t i = 1; loaded->weights.present && i <= count; i++) {
        const vd_weight *w = vd_weights_find(files, loaded->program.data[i].tensor.name);
        if (!w)
            continue;
        loaded->placed.place[i] = (vd_data_place){files->file[w->file].path, w->at};
        loaded->placed.tensor[i] = w->data;
    }
}

/* Places the tensors of the state that the job goes on from: data tensors from `first` on. */
static void place_start(vd_loaded *loaded, uint32_t first) {
    const vd_start *start = &loaded->start;
    for (uint32_t i = 0; start->present && i < start->count; i++) {
        const vd_weight *w = &start->file.tensor[start->at[i]];
        loaded->placed.place[first + i] = (vd_data_place){start->file.file[w->file].path, w->at};
        loaded->placed.tensor[first + i] = w->data;
    }
}

vd_status vd_place_prompt(vd_loaded *loaded, const vd_prompt *prompt, vd_err *err) {
    const uint32_t start = loaded->program.data_count - loaded->start.count;
    vd_status status = make_places(loaded, err);
    if (status != VD_OK)
        return status;
    place_weights(loaded, start - 1);
    place_start(loaded, start);
    loaded->placed.tensor[0] = loaded->prompts.token + prompt->first;
    vd_prompt_words(prompt, loaded->words);
    if (loaded->program.data_count > 1 &&
        strcmp(loaded->program.data[1].tensor.name, VD_PROMPT_KEY) == 0)
        loaded->placed.tensor[1] = loaded->words;
    return VD_OK;
}

/* Places all data of a job: the first shard is data tensor 0, the other shards come last. */
vd_status vd_place_data(vd_loaded *loaded, vd_err *err) {
    const vd_dataset *data = &loaded->data;
    const uint32_t last = loaded->program.data_count - data->count;
    const uint32_t config = vd_training_has_config(&loaded->job.training);
    vd_status status = make_places(loaded, err);
    if (status == VD_OK) {
        place_weights(loaded, last - config - loaded->start.count);
        place_start(loaded, last + 1 - config - loaded->start.count);
    }
    if (status == VD_OK && config)
        loaded->placed.tensor[last] = loaded->weights.meaning.data;
    for (uint32_t i = 0; status == VD_OK && i < data->count; i++) {
        const uint32_t at = i ? last + i : 0;
        loaded->placed.place[at] = (vd_data_place){data->list[i].path, data->list[i].offset};
        loaded->placed.tensor[at] = data->list[i].tensor.data;
    }
    return status;
}

/* ---- writing ---- */

/* Copies in pieces, so that a mapped file need not be in memory as a whole. */
static vd_status copy_bytes(const uint8_t *bytes, size_t size, vd_writer *to, vd_err *err) {
    vd_status status = VD_OK;
    for (size_t at = 0; at < size && status == VD_OK; at += COPY_CHUNK) {
        const size_t piece = size - at < COPY_CHUNK ? size - at : COPY_CHUNK;
        status = vd_writer_put(to, bytes + at, piece, err);
        vd_map_pass(bytes + at, piece);
    }
    return status;
}

/* Appends a tensor to DIR/data, and sets *offset to its place there. */
static vd_status copy_tensor(const ro_shape *shape, const void *data, vd_writer *to, uint64_t *size,
                             uint64_t *offset, vd_err *err) {
    static const uint8_t zeros[ALIGNMENT];
    void *copy = NULL;
    const size_t bytes = vd_shape_bytes(shape), gap = (size_t)(-*size % ALIGNMENT);
    const void *little = vd_to_little(data, bytes, ro_dtype_size(shape->dtype), &copy);
    vd_status status =
        little ? vd_writer_put(to, zeros, gap, err) : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = copy_bytes(little, bytes, to, err);
    free(copy);
    *offset = *size + gap;
    *size += gap + bytes;
    return status;
}

static vd_status put_place(json_t *list, const vd_leaf *tensor, const char *path, uint64_t offset,
                           vd_err *err) {
    char *whole = path ? realpath(path, NULL) : strdup("data");
    json_t *item = whole ? json_pack("{ss ss sI}", "name", tensor->name, "file", whole, "offset",
                                     (json_int_t)offset)
                         : NULL;
    free(whole);
    if (item && json_array_append_new(list, item) == 0)
        return VD_OK;
    return vd_fail(err, VD_ERR_LOCAL, "data.json: out of memory, or %s has no name in UTF-8",
                   path ? path : "a tensor");
}

static vd_status place_all(const vd_loaded *loaded, vd_writer *copies, json_t *list, vd_err *err) {
    const bool prompts = loaded->prompts.count > 0 || loaded->given.pack.count > 0 ||
                         loaded->packed; /* else every run would have its copies */
    uint64_t size = 0, offset;
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < loaded->program.data_count; i++) {
        const vd_leaf *t = &loaded->program.data[i].tensor;
        const vd_data_place *at = &loaded->placed.place[i];
        if (at->path && (prompts || vd_shape_bytes(&t->shape) > COPY_BYTES_MAX)) {
            status = put_place(list, t, at->path, at->offset, err);
            continue;
        }
        status = copy_tensor(&t->shape, loaded->placed.tensor[i], copies, &size, &offset, err);
        if (status == VD_OK)
            status = put_place(list, t, NULL, offset, err);
    }
    return status;
}

static vd_status write_record(const char *dir, json_t *list, vd_err *err) {
    char path[1100];
    json_t *record = json_pack("{sO si}", "data", list, "verde", 1);
    char *text = record ? json_dumps(record, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;
    snprintf(path, sizeof path, "%s/data.json", dir);
    vd_status status = text ? vd_write_file(path, text, strlen(text), 0644, err)
                            : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    free(text);
    json_decref(record);
    return status;
}

vd_status vd_save_data(const char *dir, const vd_loaded *loaded, vd_err *err) {
    char path[1100];
    vd_writer copies = {0};
    json_t *list = json_array();
    snprintf(path, sizeof path, "%s/data", dir);
    vd_status status = vd_writer_open(&copies, path, 0644, err);
    if (status == VD_OK)
        status = place_all(loaded, &copies, list, err);
    if (status == VD_OK)
        status = vd_writer_commit(&copies, err);
    if (status == VD_OK)
        status = write_record(dir, list, err);
    vd_writer_abort(&copies);
    json_decref(list);
    return status;
}

/* ---- reading ---- */

typedef struct {
    const char *dir, *moved;
    bool own;       /* data.json may name only plain files in its folder */
    uint32_t first; /* index of the first tensor that data.json lists */
    vd_loaded *loaded;
    vd_data_reader reader;
    uint64_t done, total;
} data_loading;

/* Checks that a name is a plain file in the folder: a link could lead to any file of the
 * machine. */
static vd_status check_own(const char *dir, const char *file, const char *path, vd_err *err) {
    struct stat info;
    if (strchr(file, '/') || *file == 0 || strcmp(file, "..") == 0)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s/data.json: `file` must be the name of a file in that folder, got "
                       "\"%.80s\"",
                       dir, file);
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return vd_fail(err, VD_ERR_USAGE, "%s: must be a plain file, and no link", path);
    return VD_OK;
}

/* Makes a file's path. Names without a leading slash are in the run's directory. */
static vd_status path_of(const data_loading *l, const char *file, char *path, vd_err *err) {
    const char *name = strrchr(file, '/'), *dir = l->dir, *moved = l->moved;
    int length;
    if (*file != '/' || l->own)
        length = snprintf(path, PATH_SIZE, "%s/%s", dir, file);
    else if (moved)
        length = snprintf(path, PATH_SIZE, "%s/%s", moved, name + 1);
    else
        length = snprintf(path, PATH_SIZE, "%s", file);
    if (length >= PATH_SIZE)
        return vd_fail(err, VD_ERR_PEER, "%s/data.json: a path is too long", dir);
    return l->own ? check_own(dir, file, path, err) : VD_OK;
}

static vd_status map_once(const data_loading *l, const char *path, const vd_map **out,
                          vd_err *err) {
    vd_placed_data *data = &l->loaded->placed;
    for (uint32_t i = data->file_count; i > 0; i--)
        if (strcmp((*out = &data->file[i - 1])->path, path) == 0)
            return VD_OK;
    vd_map *file = &data->file[data->file_count];
    vd_status status = vd_map_file(path, file, err);
    if (status == VD_ERR_USAGE && !l->own)
        return vd_fail(err, status, "%s; the run in %s reads it, and --data says where it is now",
                       err->text, l->dir);
    *out = file;
    data->file_count += status == VD_OK;
    return status;
}

static vd_status check_item(const char *dir, uint32_t i, const json_t *item, vd_err *err) {
    static const char *const names[] = {"name", "file", "offset", NULL};
    char place[32];
    vd_err why = {0};
    snprintf(place, sizeof place, "data[%u]", i);
    vd_status status = vd_json_known(item, place, names, &why);
    return status == VD_OK ? VD_OK : vd_fail(err, status, "%s/data.json: %s", dir, why.text);
}

static vd_status compare_tensor(const data_loading *l, const vd_data *want, const char *path,
                                const void *data, vd_err *err) {
    vd_hash byte_root, root;
    vd_err why = {0};
    vd_status status =
        vd_tensor_hash(l->reader.ro, &want->tensor.shape, data, &byte_root, &root, err);
    if (status == VD_OK && memcmp(root.b, want->root, VD_HASH_SIZE) != 0)
        status = vd_fail(err, VD_ERR_PEER,
                         "%s: has changed, or is another file: not the data `%s` of the program in "
                         "%s",
                         path, want->tensor.name, l->dir);
    if (status == VD_OK && vd_check_range(want, data, &why) != VD_OK)
        status = vd_fail(err, VD_ERR_PEER, "%s: %s", path, why.text);
    return status;
}

static vd_status load_tensor(data_loading *l, uint32_t i, const json_t *item, vd_err *err) {
    const vd_data *want = &l->loaded->program.data[i];
    const char *name = json_string_value(json_object_get(item, "file"));
    const json_t *at = json_object_get(item, "offset");
    const json_int_t offset = json_integer_value(at);
    const size_t element = ro_dtype_size(want->tensor.shape.dtype);
    const uint64_t bytes = vd_shape_bytes(&want->tensor.shape);
    char path[PATH_SIZE];
    const vd_map *file = NULL;
    vd_status status = check_item(l->dir, i, item, err);
    if (status != VD_OK)
        return status;
    if (!name || !json_is_integer(at) || offset < 0 || (uint64_t)offset % element != 0)
        return vd_fail(err, VD_ERR_PEER, "%s/data.json: tensor %u must have a file and an offset",
                       l->dir, i);
    status = path_of(l, name, path, err);
    if (status == VD_OK)
        status = map_once(l, path, &file, err);
    if (status != VD_OK)
        return status;
    if (file->size < bytes || file->size - bytes < (uint64_t)offset)
        return vd_fail(err, VD_ERR_PEER, "%s: %llu bytes, expected %llu from byte %lld on", path,
                       (unsigned long long)file->size, (unsigned long long)bytes,
                       (long long)offset);
    uint8_t *data = file->data + offset;
    vd_from_little(data, (size_t)bytes, element);
    if (!vd_data_is_known(l->loaded->known, path, (uint64_t)offset, want)) {
        status = compare_tensor(l, want, path, data, err);
        if (status == VD_OK &&
            strchr(name, '/')) /* only files outside of the run's folder are shared by runs */
            vd_data_note(l->loaded->known, path, (uint64_t)offset, want);
    }
    l->loaded->placed.place[i] = (vd_data_place){file->path, (uint64_t)offset};
    l->loaded->placed.tensor[i] = data;
    l->done += bytes;
    l->reader.progress(l->reader.user, l->done, l->total);
    return status;
}

/* Returns whether data.json lists tensor i. It does not list a pack's tensors of one program, nor,
 * in a job's own folder, weights that the job gives. */
static bool is_in_files(const data_loading *l, uint32_t i) {
    return i >= l->first && (!l->own || !vd_is_wanted(&l->loaded->program.data[i]));
}

static vd_status load_all(data_loading *l, const json_t *list, vd_err *err) {
    const vd_program *p = &l->loaded->program;
    vd_status status = VD_OK;
    uint32_t given = 0, at = 0;
    for (uint32_t i = 0; i < p->data_count; i++)
        given += is_in_files(l, i);
    if (json_array_size(list) != given)
        return vd_fail(err, VD_ERR_PEER, "%s/data.json: %zu data tensors, expected %u", l->dir,
                       json_array_size(list), given);
    l->loaded->placed.file = calloc((size_t)p->data_count + 1, sizeof(vd_map));
    if (!l->loaded->placed.file)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = l->first; i < p->data_count; i++)
        l->total += vd_shape_bytes(&p->data[i].tensor.shape);
    for (uint32_t i = 0; status == VD_OK && i < p->data_count; i++)
        if (is_in_files(l, i))
            status = load_tensor(l, i, json_array_get(list, at++), err);
    return status;
}

/* Reads data.json, and checks its version and the names of its members. The caller frees *out.
 * VD_ERR_USAGE: there is no file; VD_ERR_PEER: the file is malformed. */
static vd_status read_record(const char *path, json_t **out, vd_err *err) {
    static const char *const names[] = {"verde", "data", NULL};
    vd_err why = {0};
    *out = NULL;
    vd_status status = vd_check_readable(path, err);
    if (status != VD_OK)
        return status;
    status = vd_json_load(path, VD_PLACES_BYTES_MAX, RECORD_ELEMENT_BYTES, out, &why);
    if (status == VD_OK) {
        status = vd_json_begin(*out, "verde", "a list of data", names, &why);
        if (status == VD_OK)
            return VD_OK;
        vd_fail(&why, status, "%s: %s", path, why.text);
    }
    json_decref(*out);
    *out = NULL;
    return vd_fail(err, status == VD_ERR_USAGE ? VD_ERR_PEER : status, "%s", why.text);
}

static vd_status load_places(data_loading *l, vd_err *err) {
    char path[1100];
    json_t *record = NULL;
    vd_ticker hashing = {.start = vd_seconds()};
    const ro_options options = {.size = sizeof options, .backend = "cpu"};
    l->reader = (vd_data_reader){.progress = vd_tell_hashing, .user = &hashing};
    snprintf(path, sizeof path, "%s/data.json", l->dir);
    vd_status status = read_record(path, &record, err);
    if (status == VD_OK)
        status = make_places(l->loaded, err);
    if (status == VD_OK && ro_ctx_create(&options, &l->reader.ro) != RO_OK)
        status = vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(NULL));
    if (status == VD_OK)
        status = load_all(l, json_object_get(record, "data"), err);
    ro_ctx_destroy(l->reader.ro);
    json_decref(record);
    return status;
}

vd_status vd_load_data(const char *dir, const char *moved, vd_loaded *out, vd_err *err) {
    data_loading l = {.dir = dir, .moved = moved, .loaded = out};
    return load_places(&l, err);
}

vd_status vd_load_shared_data(const char *dir, uint32_t own, bool own_files, vd_loaded *out,
                              vd_err *err) {
    data_loading l = {.dir = dir, .own = own_files, .first = own, .loaded = out};
    const vd_status status = load_places(&l, err);
    /* files of a job are the user's, so a bad one is a usage error */
    return status == VD_ERR_PEER && own_files ? vd_fail(err, VD_ERR_USAGE, "%s", err->text)
                                              : status;
}

vd_status vd_load_own_data(const char *dir, vd_loaded *out, vd_err *err) {
    return vd_load_shared_data(dir, 0, true, out, err);
}
