/* A job with prompts: its programs are sent as one pack, and results are fetched, not a model. */
#include <string.h>

#include "verde/delegate/delegation.h"
#include "verde/exec/item_pack.h"

static vd_status pack_prompt(vd_delegation *d, vd_packing *packing, uint32_t i, vd_hash *hash) {
    vd_loaded *l = &d->loaded;
    vd_status status = vd_load_prompt(l, i, d->err);
    if (status == VD_OK)
        status = vd_program_hash(&l->program, hash, d->err);
    if (status == VD_OK)
        d->slow_s += vd_delegation_slow_s(&l->program);
    return status == VD_OK
               ? vd_packing_put(packing, vd_prompt_key(l, i), &l->program, l->exec.data, d->err)
               : status;
}

vd_status vd_delegation_pack(vd_delegation *d) {
    const uint32_t count = vd_prompt_count(&d->loaded);
    vd_packing packing = {0};
    vd_items items = {0};
    if (count > VD_PACK_ITEMS_MAX)
        return vd_fail(d->err, VD_ERR_USAGE,
                       "%s: has %u prompts, and at most %d are sent together; split them",
                       d->o->job, count, VD_PACK_ITEMS_MAX);
    vd_packing_begin(&packing, count, vd_prompt_own_data(&d->loaded));
    vd_status status = vd_items_create(count, &items, d->err);
    for (uint32_t i = 0; status == VD_OK && i < count; i++)
        status = pack_prompt(d, &packing, i, &items.program[i]);
    if (status == VD_OK)
        status = vd_collection_hash(items.program, count, &d->program, d->err);
    d->bytes = packing.bytes;
    packing.bytes = (vd_buf){0};
    vd_packing_free(&packing);
    vd_items_free(&items);
    return status;
}
