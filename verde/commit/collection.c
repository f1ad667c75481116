#include "verde/commit/collection.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION = 1 };

static const char magic[] = "verde collection";

void vd_collection_write(const vd_hash *program, uint64_t count, vd_buf *out) {
    vd_put_string(out, magic);
    vd_put_u16(out, VERSION);
    vd_put_u64(out, count);
    vd_put(out, program, count * sizeof *program);
}

vd_status vd_collection_read(const void *bytes, size_t size, vd_hash **program, uint64_t *count,
                             vd_err *err) {
    vd_cursor c = vd_cursor_of(bytes, size);
    char name[sizeof magic];
    vd_get_string(&c, name, sizeof name);
    const uint16_t version = vd_get_u16(&c);
    *program = NULL;
    *count = vd_get_u64(&c);
    if (c.failed || strcmp(name, magic) != 0 || version != VERSION)
        return vd_fail(err, VD_ERR_PEER, "not a collection of version %d", VERSION);
    if (*count < 1 || *count > VD_COLLECTION_ITEMS_MAX ||
        size != VD_COLLECTION_HEAD + *count * sizeof **program)
        return vd_fail(err, VD_ERR_PEER, "a collection of %llu items in %zu bytes",
                       (unsigned long long)*count, size);
    *program = malloc(*count * sizeof **program);
    if (!*program)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    memcpy(*program, vd_get(&c, *count * sizeof **program), *count * sizeof **program);
    return VD_OK;
}

vd_status vd_collection_hash(const vd_hash *program, uint64_t count, vd_hash *out, vd_err *err) {
    vd_buf bytes = {0};
    vd_collection_write(program, count, &bytes);
    const bool ok =
        vd_buf_ok(&bytes) && vd_hash_tagged("verde/collection/1", bytes.data, bytes.size, out);
    vd_buf_free(&bytes);
    return ok ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

vd_status vd_collection_root(const vd_hash *run_root, uint64_t count, vd_hash *out, vd_err *err) {
    vd_tree tree = {0};
    vd_status status = vd_tree_of_hashes(&tree, run_root, count, err);
    if (status == VD_OK)
        status = vd_tree_root(&tree, out, err);
    vd_tree_free(&tree);
    return status;
}
