/* Judges a pack of programs, in the child that reads it. */
#include <stdlib.h>

#include "verde/commit/collection.h"
#include "verde/delivery/item_results.h"
#include "verde/exec/estimate.h"
#include "verde/exec/item_pack.h"
#include "verde/exec/journal.h"
#include "verde/exec/store.h"
#include "verde/provide/judge.h"

static uint64_t sum(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Returns the disk space of an item: checkpoints, or a journal with images, other files and its
 * results. */
static uint64_t item_disk(const vd_program *p, uint32_t own_bytes, uint32_t program_bytes) {
    enum { LISTED = 512 }; /* bytes for its root and name, twice, in the job's run.json */
    const uint64_t images = (uint64_t)p->steps / VD_IMAGE_STEPS + 1;
    const uint64_t keep = images > VD_KEEP_MIN ? images : VD_KEEP_MIN;
    const uint64_t bytes = sum(sum(vd_estimate_disk(p, (int64_t)keep), vd_estimate_journal(p)),
                               sum(vd_item_record_bytes(p), own_bytes));
    return vd_judge_disk(sum(bytes, sum(vd_estimate_beside(p, program_bytes), LISTED)), keep + 1,
                         p->data_count);
}

static vd_status add_item(const vd_pack *pack, uint32_t i, const vd_judge_machine *machine,
                          vd_judgement *j, vd_hash *hash, vd_err *err) {
    vd_program p = {0};
    vd_status status = vd_pack_program(pack, i, &p, hash, err);
    if (status == VD_OK)
        status = vd_refuse_experimental(&p, err);
    if (status != VD_OK) {
        vd_program_free(&p);
        return status;
    }
    status = vd_judge_estimate(&p, machine, j, err);
    const vd_packed_item *item = &pack->item[i];
    j->disk = sum(j->disk, item_disk(&p, item->own_bytes, pack->item[item->base].code_bytes));
    if (status == VD_OK && __builtin_add_overflow(j->steps, p.steps, &j->steps))
        status = vd_fail(err, VD_ERR_PEER, "the programs of the pack have too many steps");
    if (status == VD_OK && vd_item_record_bytes(&p) > VD_ITEM_RECORD_MAX)
        status = vd_fail(
            err, VD_ERR_PEER,
            "prompt %u of the pack (item %u): its result has %llu bytes, and at most %d are handed "
            "out",
            i + 1, i, (unsigned long long)vd_item_record_bytes(&p), VD_ITEM_RECORD_MAX);
    vd_program_free(&p);
    return status;
}

static vd_status add_shared(const vd_pack *pack, vd_judgement *j, vd_err *err) {
    const vd_program *p = &pack->first;
    j->data_count = p->data_count - pack->own;
    j->data_bytes = calloc((size_t)j->data_count + 1, sizeof *j->data_bytes);
    if (!j->data_bytes)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < j->data_count; i++)
        j->data_bytes[i] = vd_shape_bytes(&p->data[pack->own + i].tensor.shape);
    return VD_OK;
}

vd_status vd_judge_pack(const char *path, const vd_judge_machine *machine, vd_judgement *j,
                        bool *read, vd_err *err) {
    vd_map file = {0};
    vd_pack pack = {0};
    vd_hash *hash = NULL;
    vd_status status = vd_map_file(path, &file, err);
    *read = status == VD_OK;
    if (status == VD_OK)
        status = vd_pack_open(file.data, file.size, &pack, err);
    if (status == VD_OK && !(hash = calloc(pack.count, sizeof *hash)))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < pack.count; i++)
        status = add_item(&pack, i, machine, j, &hash[i], err);
    if (status == VD_OK)
        status = add_shared(&pack, j, err);
    if (status == VD_OK)
        status = vd_collection_hash(hash, pack.count, &j->program, err);
    j->items = pack.count;
    free(hash);
    vd_pack_free(&pack);
    vd_map_free(&file);
    return status;
}
