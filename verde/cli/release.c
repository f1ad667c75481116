/* This file checks the signed list of a release and the files beside it. */
#include "verde/cli/release.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "verde/commit/json.h"
#include "verde/load/verdict_file.h"

/* Limit on brackets and commas: a listed file has four, and the note adds a few. */
enum { ELEMENTS_MAX = 8 * VD_RELEASE_FILES_MAX, PIECE = 1 << 20 };

typedef struct {
    const char *name;
    vd_hash sha256;
    int64_t size;
} released;

typedef struct {
    json_t *root; /* owned; names are borrowed from it */
    const char *version;
    const json_t *files;
    size_t count, here; /* `here` lie beside the list */
} list;

bool vd_is_release(const char *path) {
    static const char type[] = "\"" VD_TYPE_RELEASE "\"";
    vd_buf text = {0};
    vd_err err = {0};
    const bool is = vd_read_file(path, VD_RELEASE_MAX, &text, &err) == VD_OK &&
                    memmem(text.data, text.size, type, sizeof type - 1) != NULL;
    vd_buf_free(&text);
    return is;
}

/* Returns whether a text is safe to print: the list may come from anywhere. */
static bool is_plain(const char *text) {
    if (!text || !*text || strlen(text) > VD_RELEASE_NAME_MAX)
        return false;
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* Returns whether a name can only mean a file beside the list. */
static bool is_name(const char *name) {
    return is_plain(name) && *name != '.' && !strchr(name, '/');
}

static vd_status read_entry(const list *l, size_t i, released *out, vd_err *err) {
    static const char *const names[] = {"name", "sha256", "size", NULL};
    const json_t *entry = json_array_get(l->files, i), *size;
    char place[32];
    snprintf(place, sizeof place, "files[%zu]", i);
    vd_status status = json_is_object(entry) ? vd_json_known(entry, place, names, err)
                                             : vd_fail(err, VD_ERR_PEER, "%s is no object", place);
    if (status != VD_OK)
        return status;
    out->name = json_string_value(json_object_get(entry, "name"));
    if (!is_name(out->name))
        return vd_fail(err, VD_ERR_PEER, "%s: name must be that of a file beside the list", place);
    const char *digits = json_string_value(json_object_get(entry, "sha256"));
    if (!digits || !vd_unhex(digits, out->sha256.b, sizeof out->sha256.b))
        return vd_fail(err, VD_ERR_PEER, "%s: sha256 must have 64 lower-case digits", place);
    size = json_object_get(entry, "size");
    out->size = json_integer_value(size);
    return json_is_integer(size) && out->size >= 0
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER, "%s: size must be a number of bytes", place);
}

static vd_status hash_file(int fd, const char *path, vd_hash *out, int64_t *size, vd_err *err) {
    vd_sha *sha = vd_sha_create();
    char *piece = malloc(PIECE);
    ssize_t got = -1;
    *size = 0;
    if (!sha || !piece)
        errno = ENOMEM;
    while (sha && piece && (got = read(fd, piece, PIECE)) > 0) {
        vd_sha_put(sha, piece, (size_t)got);
        *size += got;
    }
    const bool done = got == 0 && vd_sha_finish(sha, out);
    if (!done)
        vd_fail(err, VD_ERR_LOCAL, "%s: %s", path, strerror(errno));
    vd_sha_destroy(sha);
    free(piece);
    return done ? VD_OK : VD_ERR_LOCAL;
}

/* Compares a listed file. One that is missing is no error: nobody downloads all packages. */
static vd_status compare(const char *list_path, const released *file, bool *here, vd_err *err) {
    const char *slash = strrchr(list_path, '/');
    const int folder = slash ? (int)(slash + 1 - list_path) : 0;
    char path[4096];
    vd_hash hash;
    int64_t size;
    uint64_t bytes;
    int fd;
    if (snprintf(path, sizeof path, "%.*s%s", folder, list_path, file->name) >= (int)sizeof path)
        return vd_fail(err, VD_ERR_LOCAL, "%s: the folder's name is too long", file->name);
    *here = access(path, F_OK) == 0;
    if (!*here)
        return VD_OK;
    vd_status status = vd_open_file(path, &fd, &bytes, err);
    if (status != VD_OK)
        return status;
    status = hash_file(fd, path, &hash, &size, err);
    close(fd);
    if (status == VD_OK && size != file->size)
        return vd_fail(err, VD_ERR_PEER,
                       "%s is not what was released: it has %" PRId64 " bytes, expected %" PRId64,
                       path, size, file->size);
    if (status == VD_OK && !vd_hash_equal(&hash, &file->sha256))
        return vd_fail(err, VD_ERR_PEER,
                       "%s is not what was released: its SHA-256 is not the listed one", path);
    return status;
}

static vd_status read_list(const vd_buf *payload, list *out, vd_err *err) {
    static const char *const names[] = {"verde", "version", "files", NULL};
    vd_status status = vd_json_read(payload->data, payload->size, ELEMENTS_MAX, &out->root, err);
    if (status == VD_OK)
        status = vd_json_begin(out->root, "verde", "the list of a release", names, err);
    if (status != VD_OK)
        return status;
    out->version = json_string_value(json_object_get(out->root, "version"));
    out->files = json_object_get(out->root, "files");
    out->count = json_array_size(out->files);
    if (!is_plain(out->version))
        return vd_fail(err, VD_ERR_PEER,
                       "version must be 1 to %d printable characters without spaces",
                       VD_RELEASE_NAME_MAX);
    if (out->count < 1 || out->count > VD_RELEASE_FILES_MAX)
        return vd_fail(err, VD_ERR_PEER, "files must be a list of 1 to %d files, got %zu",
                       VD_RELEASE_FILES_MAX, out->count);
    return VD_OK;
}

static vd_status open_note(const char *path, const char *signer, vd_public_key *key,
                           vd_buf *payload, vd_err *err) {
    vd_buf text = {0};
    vd_public_key expected;
    vd_status status = signer ? vd_read_key("--referee", signer, &expected, err) : VD_OK;
    if (status == VD_OK)
        status = vd_read_file(path, VD_RELEASE_MAX, &text, err);
    if (status == VD_OK && text.size && text.data[text.size - 1] == '\n')
        text.size--;
    if (status == VD_OK)
        status = vd_note_signer(text.data, text.size, VD_RELEASE_MAX, key, err);
    if (status == VD_OK)
        status = vd_note_open(text.data, text.size, VD_RELEASE_MAX, VD_TYPE_RELEASE,
                              signer ? &expected : key, payload, err);
    vd_buf_free(&text);
    return status;
}

static vd_status compare_all(const char *path, list *l, bool tell, vd_err *err) {
    vd_status status = VD_OK;
    for (size_t i = 0; i < l->count && status == VD_OK; i++) {
        released file = {0};
        bool here = false;
        status = read_entry(l, i, &file, err);
        if (status == VD_OK)
            status = compare(path, &file, &here, err);
        l->here += here;
        if (status == VD_OK && tell)
            printf("%-10s %s\n", here ? "same" : "not here", file.name);
    }
    return status;
}

static void tell(const list *l, const vd_public_key *key, bool json) {
    char signer[2 * VD_KEY_SIZE + 1];
    vd_hex(key->b, VD_KEY_SIZE, signer);
    if (json)
        vd_print_json(json_pack("{s:b, s:s, s:s, s:I, s:I}", "verified", true, "signer", signer,
                                "version", l->version, "files", (json_int_t)l->count, "here",
                                (json_int_t)l->here));
    else
        printf("verified   release %s, signed by %s; %zu of its %zu files are here\n", l->version,
               signer, l->here, l->count);
}

vd_status vd_verify_release(const char *path, const char *signer, bool quiet, bool json,
                            vd_err *err) {
    list l = {0};
    vd_buf payload = {0};
    vd_public_key key = {0};
    vd_status status = open_note(path, signer, &key, &payload, err);
    if (status == VD_OK)
        status = read_list(&payload, &l, err);
    if (status == VD_OK)
        status = compare_all(path, &l, !quiet && !json, err);
    if (status == VD_OK && !quiet)
        tell(&l, &key, json);
    json_decref(l.root);
    vd_buf_free(&payload);
    return vd_tell_file(path, status, err);
}
