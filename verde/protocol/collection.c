/* This file loads an item's program, and rejects one that does not belong to the job. */
#include "verde/protocol/collection.h"

#include "verde/exec/exec.h"

vd_status vd_collection_open(const vd_collection *c, uint64_t item, vd_program *out, vd_hash *hash,
                             vd_err *err) {
    vd_hash own;
    *out = (vd_program){0};
    vd_status status = c->load(c->user, item, out, err);
    if (status == VD_OK)
        status = vd_refuse_experimental(out, err);
    if (status == VD_OK)
        status = vd_program_hash(out, &own, err);
    if (status == VD_OK && c->program && !vd_hash_equal(&own, &c->program[item]))
        status = vd_fail(err, VD_ERR_LOCAL, "item %llu: its program is another one than the job's",
                         (unsigned long long)item);
    if (status == VD_OK && hash)
        *hash = own;
    if (status != VD_OK)
        vd_program_free(out);
    return status;
}
