/* A record of an item's last state, as it is sent: the commitments of all tensors, the audit path
 * from the state to the run root, and the bytes of the tensors that are results. */
#include <stdlib.h>
#include <string.h>

#include "verde/delivery/item_results.h"

/* Results: leaves of programs that generate or score (models/models.h), and answers of any. */
bool vd_is_result_leaf(const vd_leaf *leaf) {
    static const char *const results[] = {"text",
                                          "count",
                                          "stopped",
                                          "log_probability",
                                          "best",
                                          "best_log_probability",
                                          "class_log_probability"};
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (strcmp(leaf->name, results[i]) == 0)
            return true;
    return vd_answer_name(leaf) != NULL;
}

/* Returns the length of the path from the last state: the number of splits above it. */
static uint32_t path_length(const vd_program *p) {
    uint64_t from = 0;
    const uint64_t leaves = vd_run_leaves(p);
    uint32_t length = 0;
    for (; leaves - from > 1; length++)
        from = vd_tree_split(from, leaves);
    return length;
}

uint64_t vd_item_record_bytes(const vd_program *p) {
    uint64_t bytes = ((uint64_t)p->leaf_count + path_length(p)) * VD_HASH_SIZE;
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (vd_is_result_leaf(&p->leaf[i]) &&
            __builtin_add_overflow(bytes, (uint64_t)vd_shape_bytes(&p->leaf[i].shape), &bytes))
            return UINT64_MAX;
    return bytes;
}

static vd_status check_root(const vd_program *p, const vd_hash *program_hash,
                            const vd_hash *run_root, const vd_hash *tensor, const vd_proof *path,
                            vd_err *err) {
    const uint64_t leaves = vd_run_leaves(p);
    vd_hash state, hash;
    vd_status status = vd_state_commit(program_hash, p->steps, tensor, p->leaf_count, &state, err);
    if (status == VD_OK && !vd_leaf_hash(&state, sizeof state, &hash))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory in hashing a state");
    return status == VD_OK ? vd_proof_verify(path, leaves - 1, leaves, &hash, run_root, err)
                           : status;
}

static vd_status read_tensor(const vd_leaf *leaf, const vd_hash *commitment, vd_cursor *c,
                             void **out, vd_err *err) {
    const size_t size = vd_shape_bytes(&leaf->shape);
    const uint8_t *bytes = vd_get(c, size);
    vd_hash root, found;
    *out = bytes ? malloc(size) : NULL;
    if (!*out)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    memcpy(*out, bytes, size);
    vd_from_little(*out, size, ro_dtype_size(leaf->shape.dtype));
    vd_status status = vd_tensor_hash(NULL, &leaf->shape, *out, &root, &found, err);
    if (status == VD_OK && !vd_hash_equal(&found, commitment))
        status = vd_fail(err, VD_ERR_PEER, "the bytes of tensor %s do not give its commitment",
                         leaf->name);
    return status;
}

static vd_status read_tensors(const vd_program *p, const vd_hash *tensor, vd_cursor *c,
                              vd_state *out, vd_err *err) {
    vd_status status = VD_OK;
    *out = (vd_state){.step = p->steps, .count = p->leaf_count};
    out->tensor = calloc((size_t)p->leaf_count + 1, sizeof *out->tensor);
    if (!out->tensor)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < p->leaf_count; i++)
        if (vd_is_result_leaf(&p->leaf[i]))
            status = read_tensor(&p->leaf[i], &tensor[i], c, &out->tensor[i], err);
    if (status != VD_OK)
        vd_state_free(out);
    return status;
}

vd_status vd_item_record_read(const vd_program *p, const vd_hash *program_hash,
                              const vd_hash *run_root, const void *bytes, size_t size, size_t *used,
                              vd_state *out, vd_err *err) {
    const uint64_t expected = vd_item_record_bytes(p);
    vd_cursor c = vd_cursor_of(bytes, size);
    vd_proof path = {.length = path_length(p)};
    *out = (vd_state){0};
    if (size < expected)
        return vd_fail(err, VD_ERR_PEER, "%zu bytes of a record, expected %llu", size,
                       (unsigned long long)expected);
    vd_hash *tensor = calloc((size_t)p->leaf_count + 1, sizeof *tensor);
    if (!tensor)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    memcpy(tensor, vd_get(&c, p->leaf_count * sizeof *tensor), p->leaf_count * sizeof *tensor);
    memcpy(path.path, vd_get(&c, path.length * sizeof *path.path), path.length * sizeof *path.path);
    vd_status status = check_root(p, program_hash, run_root, tensor, &path, err);
    if (status == VD_OK)
        status = read_tensors(p, tensor, &c, out, err);
    *used = (size_t)expected;
    free(tensor);
    return status;
}
