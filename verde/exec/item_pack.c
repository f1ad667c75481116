/* This file reads the programs of a pack, and the data that each of them has for itself. */
#include "verde/exec/item_pack.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/backend.h"

static const char magic[] = VD_PACK_MAGIC;

static vd_status pack_wrong(vd_err *err, uint32_t item, const char *what) {
    return vd_fail(err, VD_ERR_PEER, "prompt %u of the pack (item %u): %s", item + 1, item, what);
}

/* ---- the layout of a pack ---- */

static vd_status read_head(vd_cursor *c, uint32_t *count, uint32_t *own, vd_err *err) {
    const uint8_t *name = vd_get(c, sizeof magic);
    const uint16_t version = vd_get_u16(c);
    *count = vd_get_u32(c);
    *own = vd_get_u16(c);
    if (!name || memcmp(name, magic, sizeof magic) != 0 || c->failed)
        return vd_fail(err, VD_ERR_PEER, "no pack of programs");
    return version == VD_PACK_VERSION ? VD_OK
                                      : vd_fail_version(err, NULL, version, "a pack of programs",
                                                        VD_PACK_VERSION, VD_PACK_VERSION);
}

uint32_t vd_pack_count(const void *bytes, size_t size) {
    vd_cursor c = vd_cursor_of(bytes, size);
    uint32_t count, own;
    return read_head(&c, &count, &own, NULL) == VD_OK && count <= VD_PACK_ITEMS_MAX ? count : 0;
}

/* Reads an item, whose program is stored whole, or as changes of an earlier one. */
static bool read_item(vd_cursor *c, vd_pack *pack, uint32_t i) {
    vd_packed_item *item = &pack->item[i];
    item->key = (int64_t)vd_get_u64(c);
    item->base = vd_get_u32(c);
    item->code_bytes = vd_get_u32(c);
    item->code = vd_get(c, item->code_bytes);
    item->own_bytes = vd_get_u32(c);
    item->own = vd_get(c, item->own_bytes);
    return !c->failed && item->key >= 0 &&
           (item->base == i || (item->base < i && pack->item[item->base].base == item->base));
}

static int by_key(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Checks that all keys differ, because they name the folders of runs. */
static vd_status check_keys(const vd_pack *pack, vd_err *err) {
    int64_t *key = calloc(pack->count, sizeof *key);
    vd_status status = key ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; key && i < pack->count; i++)
        key[i] = pack->item[i].key;
    if (key)
        qsort(key, pack->count, sizeof *key, by_key);
    for (uint32_t i = 1; status == VD_OK && i < pack->count; i++)
        if (key[i] == key[i - 1])
            status = vd_fail(err, VD_ERR_PEER, "two items of the pack have the key %lld",
                             (long long)key[i]);
    free(key);
    return status;
}

void vd_pack_free(vd_pack *pack) {
    vd_program_free(&pack->first);
    free(pack->item);
    *pack = (vd_pack){0};
}

/* ---- programs ---- */

/* Applies changes to a program's bytes: each is u32 offset, u32 size, and the new bytes. */
static bool change(const vd_packed_item *item, uint8_t *code, size_t size) {
    vd_cursor c = vd_cursor_of(item->code, item->code_bytes);
    while (c.at < c.size) {
        const uint32_t at = vd_get_u32(&c), count = vd_get_u32(&c);
        const uint8_t *bytes = vd_get(&c, count);
        if (!bytes || c.failed || at > size || count > size - at)
            return false;
        memcpy(code + at, bytes, count);
    }
    return true;
}

static vd_status decode(const vd_pack *pack, uint32_t index, vd_program *out, vd_err *err) {
    const vd_packed_item *item = &pack->item[index], *base = &pack->item[item->base];
    const uint8_t *code = item->code;
    uint8_t *changed = NULL;
    vd_status status = VD_OK;
    vd_err why = {0};
    if (item->base != index) {
        changed = malloc((size_t)base->code_bytes + 1);
        if (!changed)
            return vd_fail(err, VD_ERR_LOCAL, "out of memory");
        memcpy(changed, base->code, base->code_bytes);
        code = changed;
        if (!change(item, changed, base->code_bytes))
            status = pack_wrong(err, index, "a change lies outside of the program that it is like");
    }
    if (status == VD_OK) {
        status = vd_program_decode(code, base->code_bytes, out, &why);
        if (status != VD_OK)
            vd_fail(err, status, "prompt %u of the pack (item %u): %.350s", index + 1, index,
                    why.text);
    }
    free(changed);
    return status;
}

vd_status vd_pack_open(const void *bytes, size_t size, vd_pack *out, vd_err *err) {
    vd_cursor c = vd_cursor_of(bytes, size);
    *out = (vd_pack){0};
    if (size > VD_PACK_BYTES_MAX)
        return vd_fail(err, VD_ERR_PEER, "a pack must have at most %d bytes, got %zu",
                       VD_PACK_BYTES_MAX, size);
    vd_status status = read_head(&c, &out->count, &out->own, err);
    if (status != VD_OK)
        return status;
    if (out->count < 1 || out->count > VD_PACK_ITEMS_MAX || out->own < 1 ||
        out->own > VD_PACK_OWN_MAX)
        return vd_fail(err, VD_ERR_PEER,
                       "a pack must have 1 to %d items with 1 to %d data tensors of their own, got "
                       "%u with %u",
                       VD_PACK_ITEMS_MAX, VD_PACK_OWN_MAX, out->count, out->own);
    out->item = calloc(out->count, sizeof *out->item);
    status = out->item ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < out->count; i++)
        if (!read_item(&c, out, i))
            status = pack_wrong(err, i, "its parts must follow each other to the end of the bytes");
    if (status == VD_OK && !vd_cursor_done(&c))
        status = vd_fail(err, VD_ERR_PEER, "there are bytes behind the items of the pack");
    if (status == VD_OK)
        status = check_keys(out, err);
    if (status == VD_OK)
        status = decode(out, 0, &out->first, err);
    if (status != VD_OK)
        vd_pack_free(out);
    return status;
}

/* ---- data ---- */

static bool has_own(const vd_pack *pack, uint32_t index, const vd_program *p) {
    uint64_t bytes = 0;
    if (p->data_count < pack->own)
        return false;
    for (uint32_t i = 0; i < pack->own; i++) {
        const uint64_t size = vd_shape_bytes(&p->data[i].tensor.shape);
        if (size > VD_PACK_BYTES_MAX)
            return false;
        bytes += size;
    }
    return bytes == pack->item[index].own_bytes;
}

void *vd_pack_own(const vd_pack *pack, uint32_t index, const vd_program *p, uint32_t tensor) {
    const ro_shape *shape = &p->data[tensor].tensor.shape;
    const size_t size = vd_shape_bytes(shape);
    size_t at = 0;
    void *copy = malloc(size);
    for (uint32_t i = 0; i < tensor; i++)
        at += vd_shape_bytes(&p->data[i].tensor.shape);
    if (copy) {
        memcpy(copy, pack->item[index].own + at, size);
        vd_from_little(copy, size, ro_dtype_size(shape->dtype));
    }
    return copy;
}

static vd_status check_own(const vd_pack *pack, uint32_t index, const vd_program *p, vd_err *err) {
    vd_status status = VD_OK;
    vd_err why = {0};
    if (!has_own(pack, index, p))
        return pack_wrong(err, index, "its data have not the sizes that its program says");
    for (uint32_t i = 0; status == VD_OK && i < pack->own; i++) {
        vd_hash root, commitment;
        void *data = vd_pack_own(pack, index, p, i);
        status = data
                     ? vd_tensor_hash(NULL, &p->data[i].tensor.shape, data, &root, &commitment, err)
                     : vd_fail(err, VD_ERR_LOCAL, "out of memory");
        if (status == VD_OK && memcmp(commitment.b, p->data[i].root, VD_HASH_SIZE) != 0)
            status = pack_wrong(err, index, "its data are not those of its program");
        if (status == VD_OK && vd_check_range(&p->data[i], data, &why) != VD_OK)
            status = pack_wrong(err, index, why.text);
        free(data);
    }
    return status;
}

/* Checks that an item has the first one's shared data, which is uploaded only once. */
static vd_status check_shared(const vd_pack *pack, uint32_t index, const vd_program *p,
                              vd_err *err) {
    const vd_program *first = &pack->first;
    if (p->data_count != first->data_count)
        return pack_wrong(err, index, "it has more or fewer data tensors than the first one");
    for (uint32_t i = pack->own; i < p->data_count; i++)
        if (memcmp(p->data[i].root, first->data[i].root, VD_HASH_SIZE) != 0 ||
            !ro_shape_equal(&p->data[i].tensor.shape, &first->data[i].tensor.shape) ||
            !vd_range_equal(&p->data[i].range, &first->data[i].range))
            return pack_wrong(err, index, "its weights are not those of the first one");
    return VD_OK;
}

vd_status vd_pack_program(const vd_pack *pack, uint32_t index, vd_program *out, vd_hash *hash,
                          vd_err *err) {
    *out = (vd_program){0};
    vd_status status = decode(pack, index, out, err);
    if (status == VD_OK && vd_backend_of(out)) {
        char why[64];
        snprintf(why, sizeof why, "it has %s", vd_backend_of(out)->emits);
        status = pack_wrong(err, index, why);
    }
    if (status == VD_OK)
        status = check_own(pack, index, out, err);
    if (status == VD_OK)
        status = check_shared(pack, index, out, err);
    if (status == VD_OK && hash)
        status = vd_program_hash(out, hash, err);
    if (status != VD_OK)
        vd_program_free(out);
    return status;
}
