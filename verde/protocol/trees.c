/* Loads the trees that questions are about, from this provider's run. PROTOCOL.md section 2. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/run.h"
#include "verde/protocol/inquiry.h"

void vd_leaves_free(vd_leaves *l) {
    vd_tree_free(&l->own);
    vd_records_free(&l->parts);
    free(l->item);
    free(l->logged);
    free(l->copy);
}

static vd_status tree_over(vd_inquiry *r, const vd_tree_name *name, const ro_shape *shape,
                           const void *data, vd_leaves *out) {
    const vd_source *s = &r->source;
    if (s->tree)
        return s->tree(s->user, name->step, name->value, data, &out->tree, r->err);
    return vd_tensor_tree(NULL, shape, data, &out->own, r->err);
}

/* Loads a tensor's leaves, whose tree must give the commitment. A kept tree may be of earlier
 * bytes: each leaf that is sent is checked by its proof. */
static vd_status tensor_leaves(vd_inquiry *r, const vd_tree_name *name, vd_leaves *out) {
    const vd_program *p = vd_inquiry_program(r);
    const ro_shape *shape = vd_value_shape(p, vd_step_graph(p, name->step), name->value);
    const void *data;
    vd_hash expected, root, commitment;
    vd_status status = vd_expected_tensor(r, name->step, name->value, &expected);
    if (status == VD_OK)
        status = r->source.tensor(r->source.user, name->step, name->value, &data, r->err);
    if (status != VD_OK)
        return status;
    out->size = vd_shape_bytes(shape);
    out->bytes = vd_to_little(data, out->size, ro_dtype_size(shape->dtype), &out->copy);
    status = out->bytes ? tree_over(r, name, shape, data, out)
                        : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = vd_tree_root(out->tree, &root, r->err);
    if (status == VD_OK && !vd_tensor_commit(shape, &root, &commitment))
        status = vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    return status == VD_OK ? vd_expect(r, &commitment, &expected, "a tensor") : status;
}

/* Makes the leaves of a run with rounding logs: a proof contains S || L, and the tree has its
 * hash. */
static vd_status log_leaves(vd_inquiry *r, uint64_t count, vd_leaves *out) {
    vd_hash run_name, *logs = calloc(count, sizeof *logs);
    out->logged = calloc(count, sizeof *out->logged);
    vd_status status = logs && out->logged
                           ? r->source.served->logs(r->source.served->user, &run_name, logs, r->err)
                           : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    for (uint64_t i = 0; status == VD_OK && i < count; i++) {
        out->logged[i][0] = out->item[i];
        out->logged[i][1] = logs[i];
        if (!vd_emitted_state(&out->item[i], &logs[i], &out->item[i]))
            status = vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    }
    free(logs);
    return status;
}

static vd_status hash_leaves(vd_inquiry *r, const vd_tree_name *name, uint64_t count,
                             vd_leaves *out) {
    const vd_source *s = &r->source;
    vd_status status;
    out->item = calloc(count, sizeof *out->item);
    if (!out->item)
        return vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    if (name->kind == VD_TREE_ITEMS)
        status = VD_OK, memcpy(out->item, r->provider->item_root, count * sizeof *out->item);
    else if (name->kind == VD_TREE_RUN)
        status = s->run(s->user, out->item, r->err);
    else if (name->kind == VD_TREE_SUBRUN)
        status = vd_checked_states(r, name->step, name->to, out->item);
    else
        status = vd_checked_leaves(r, name->step, out->item);
    if (name->kind == VD_TREE_SUBRUN && r->provider->lie == VD_LIE_CONTRADICT)
        out->item[count - 1].b[31] ^= 1;
    if (status == VD_OK && name->kind == VD_TREE_RUN && s->served)
        status = log_leaves(r, count, out);
    return status != VD_OK ? status : vd_tree_of_hashes(&out->own, out->item, count, r->err);
}

vd_status vd_leaves_load(vd_inquiry *r, const vd_tree_name *name, vd_leaves *out) {
    vd_status status;
    *out = (vd_leaves){.tree = &out->own};
    if (name->kind == VD_TREE_TENSOR) {
        status = tensor_leaves(r, name, out);
    } else if (name->kind == VD_TREE_TRACE) {
        status = vd_checked_trace(r, name->step, &out->records);
        if (status == VD_OK)
            status = vd_records_tree(out->records, &out->own, r->err);
    } else if (name->kind == VD_TREE_FOLD) {
        status = vd_checked_fold(r, name, &out->parts);
        out->records = &out->parts;
        if (status == VD_OK)
            status = vd_records_tree(out->records, &out->own, r->err);
    } else {
        const uint64_t count = vd_job_leaves(vd_inquiry_program(r), r->provider->collection, name);
        status = hash_leaves(r, name, count, out);
    }
    if (status == VD_OK)
        status = vd_tree_root(out->tree, &out->root, r->err);
    if (status == VD_OK && (name->kind == VD_TREE_RUN || name->kind == VD_TREE_ITEMS))
        status = vd_expect(r, &out->root, &r->source.run_root, "the list of what was committed to");
    if (status != VD_OK)
        vd_leaves_free(out);
    return status;
}

const uint8_t *vd_leaves_at(const vd_leaves *l, uint64_t index, size_t *size) {
    if (l->records)
        return vd_records_at(l->records, index, size);
    *size = l->logged ? sizeof l->logged[index] : VD_HASH_SIZE;
    if (l->logged)
        return l->logged[index][0].b;
    if (l->item)
        return l->item[index].b;
    uint64_t at = index * VD_LEAF_SIZE;
    *size = l->size - at < VD_LEAF_SIZE ? (size_t)(l->size - at) : VD_LEAF_SIZE;
    return l->bytes + at;
}
