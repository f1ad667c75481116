#include "verde/exec/item_pack.h"

#include <stdlib.h>
#include <string.h>

static const char magic[] = "verde pack"; /* with its NUL */
enum { VERSION = 1 };

static vd_status pack_wrong(vd_err *err, uint32_t item, const char *what) {
    return vd_fail(err, VD_ERR_PEER, "prompt %u of the pack (item %u): %s", item + 1, item, what);
}

/* ---- where things are ---- */

static bool read_head(vd_cursor *c, uint32_t *count, uint32_t *own) {
    const uint8_t *name = vd_get(c, sizeof magic);
    const bool known = name && memcmp(name, magic, sizeof magic) == 0 && vd_get_u16(c) == VERSION;
    *count = vd_get_u32(c);
    *own = vd_get_u16(c);
    return known && !c->failed && *count > 0;
}

uint32_t vd_pack_count(const void *bytes, size_t size) {
    vd_cursor c = vd_cursor_of(bytes, size);
    uint32_t count, own;
    return read_head(&c, &count, &own) && count <= VD_PACK_ITEMS_MAX ? count : 0;
}

/* A program is like one that stands before it, whole. */
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

/* A run lies in a folder that has the key for its name. */
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

/* Each change is u32 at, u32 size, and the bytes that stand there instead. */
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
    if (!read_head(&c, &out->count, &out->own))
        return vd_fail(err, VD_ERR_PEER, "no pack of programs, version %d", VERSION);
    if (out->count > VD_PACK_ITEMS_MAX || out->own < 1 || out->own > VD_PACK_OWN_MAX)
        return vd_fail(err, VD_ERR_PEER,
                       "a pack must have 1 to %d items with 1 to %d data tensors of their own, got "
                       "%u with %u",
                       VD_PACK_ITEMS_MAX, VD_PACK_OWN_MAX, out->count, out->own);
    out->item = calloc(out->count, sizeof *out->item);
    vd_status status = out->item ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
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
        free(data);
    }
    return status;
}

/* What all items share is uploaded once. */
static vd_status check_shared(const vd_pack *pack, uint32_t index, const vd_program *p,
                              vd_err *err) {
    const vd_program *first = &pack->first;
    if (p->data_count != first->data_count)
        return pack_wrong(err, index, "it has more or fewer data tensors than the first one");
    for (uint32_t i = pack->own; i < p->data_count; i++)
        if (memcmp(p->data[i].root, first->data[i].root, VD_HASH_SIZE) != 0 ||
            !ro_shape_equal(&p->data[i].tensor.shape, &first->data[i].tensor.shape))
            return pack_wrong(err, index, "its weights are not those of the first one");
    return VD_OK;
}

vd_status vd_pack_program(const vd_pack *pack, uint32_t index, vd_program *out, vd_hash *hash,
                          vd_err *err) {
    *out = (vd_program){0};
    vd_status status = decode(pack, index, out, err);
    if (status == VD_OK && out->rounding.bits)
        status = pack_wrong(err, index, "it has rounding logs");
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

/* ---- making one ---- */

void vd_packing_begin(vd_packing *p, uint32_t count, uint32_t own) {
    *p = (vd_packing){.own = own};
    vd_put(&p->bytes, magic, sizeof magic);
    vd_put_u16(&p->bytes, VERSION);
    vd_put_u32(&p->bytes, count);
    vd_put_u16(&p->bytes, (uint16_t)own);
}

void vd_packing_free(vd_packing *p) {
    vd_buf_free(&p->bytes);
    for (uint32_t i = 0; i < VD_PACKING_BASES; i++)
        vd_buf_free(&p->base[i]);
    *p = (vd_packing){0};
}

/* Places that differ. Two that lie close together cost less as one. */
static void put_changes(const vd_buf *base, const vd_buf *code, vd_buf *out) {
    enum { GAP = 8 };
    for (size_t at = 0; at < code->size; at++) {
        if (code->data[at] == base->data[at])
            continue;
        size_t end = at + 1;
        for (size_t i = end; i < code->size && i - end < GAP; i++)
            if (code->data[i] != base->data[i])
                end = i + 1;
        vd_put_u32(out, (uint32_t)at);
        vd_put_u32(out, (uint32_t)(end - at));
        vd_put(out, code->data + at, end - at);
        at = end;
    }
}

static void put_whole(vd_packing *p, vd_buf *code) {
    const uint32_t place = p->bases++ % VD_PACKING_BASES;
    vd_put_u32(&p->bytes, p->count);
    vd_put_u32(&p->bytes, (uint32_t)code->size);
    vd_put(&p->bytes, code->data, code->size);
    vd_buf_free(&p->base[place]);
    p->base[place] = *code;
    p->base_number[place] = p->count;
    *code = (vd_buf){0};
}

/* By how it differs from one that lies there whole, if that is shorter. */
static void put_code(vd_packing *p, vd_buf *code) {
    vd_buf changes = {0}, least = {0};
    uint32_t base = VD_PACKING_BASES;
    for (uint32_t i = 0; i < VD_PACKING_BASES; i++) {
        if (code->size != p->base[i].size)
            continue;
        changes.size = 0;
        put_changes(&p->base[i], code, &changes);
        if (changes.size < (base < VD_PACKING_BASES ? least.size : code->size / 2)) {
            const vd_buf other = least;
            least = changes;
            changes = other;
            base = i;
        }
    }
    if (base == VD_PACKING_BASES) {
        put_whole(p, code);
    } else {
        vd_put_u32(&p->bytes, p->base_number[base]);
        vd_put_u32(&p->bytes, (uint32_t)least.size);
        vd_put(&p->bytes, least.data, least.size);
    }
    vd_buf_free(&changes);
    vd_buf_free(&least);
}

static vd_status put_own(vd_packing *p, const vd_program *program, const void *const *data,
                         vd_err *err) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->own; i++)
        bytes += vd_shape_bytes(&program->data[i].tensor.shape);
    vd_put_u32(&p->bytes, (uint32_t)bytes);
    for (uint32_t i = 0; i < p->own; i++) {
        const ro_shape *shape = &program->data[i].tensor.shape;
        const size_t size = vd_shape_bytes(shape);
        void *copy;
        const void *little = vd_to_little(data[i], size, ro_dtype_size(shape->dtype), &copy);
        if (!little)
            return vd_fail(err, VD_ERR_LOCAL, "out of memory");
        vd_put(&p->bytes, little, size);
        free(copy);
    }
    return VD_OK;
}

vd_status vd_packing_put(vd_packing *p, int64_t key, const vd_program *program,
                         const void *const *data, vd_err *err) {
    vd_buf code = {0};
    vd_program_encode(program, &code);
    if (!vd_buf_ok(&code)) {
        vd_buf_free(&code);
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    vd_put_u64(&p->bytes, (uint64_t)key);
    put_code(p, &code);
    vd_buf_free(&code);
    vd_status status = put_own(p, program, data, err);
    p->count++;
    if (status == VD_OK && !vd_buf_ok(&p->bytes))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK && p->bytes.size > VD_PACK_BYTES_MAX)
        status = vd_fail(err, VD_ERR_USAGE,
                         "the programs of %u prompts take more than the %d bytes that are sent "
                         "together; split the prompts",
                         p->count, VD_PACK_BYTES_MAX);
    return status;
}
