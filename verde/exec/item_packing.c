/* This file makes packs of programs. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/item_pack.h"

void vd_packing_begin(vd_packing *p, uint32_t count, uint32_t own) {
    static const char magic[] = VD_PACK_MAGIC;
    *p = (vd_packing){.own = own};
    vd_put(&p->bytes, magic, sizeof magic);
    vd_put_u16(&p->bytes, VD_PACK_VERSION);
    vd_put_u32(&p->bytes, count);
    vd_put_u16(&p->bytes, (uint16_t)own);
}

void vd_packing_free(vd_packing *p) {
    vd_buf_free(&p->bytes);
    for (uint32_t i = 0; i < VD_PACKING_BASES; i++)
        vd_buf_free(&p->base[i]);
    *p = (vd_packing){0};
}

/* Lists the differences of two programs. Close ones cost less as a single one. */
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

/* Writes a program as changes of one that is stored whole, if that is shorter, or else whole. */
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
        void *copy = NULL;
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
