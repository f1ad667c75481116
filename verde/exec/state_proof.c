/* This file makes, writes and reads proofs that a state belongs to a run. */
#include "verde/exec/state_proof.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "verde/commit/json.h"
#include "verde/exec/backend.h"

void vd_state_proof_free(vd_state_proof *proof) {
    vd_program_free(&proof->program);
    free(proof->tensor);
    *proof = (vd_state_proof){0};
}

/* Finds the leaf of the run's tree for the state after `step`; false: that is no checkpoint. */
static bool leaf_of(const vd_program *program, int64_t step, uint64_t *leaf) {
    const int64_t c = program->checkpoint_interval;
    if (step < 0 || step > program->steps)
        return false;
    *leaf = (uint64_t)(step / c) + (step % c != 0);
    return *leaf < vd_run_leaves(program) && vd_run_leaf_step(program, *leaf) == step;
}

/* Computes the state's item in the run's tree (PROTOCOL.md sections 2.3 and 12.3). */
static vd_status item_of(const vd_state_proof *p, vd_hash *item, vd_err *err) {
    vd_hash state;
    vd_status status =
        vd_state_commit(&p->program_hash, p->step, p->tensor, p->program.leaf_count, &state, err);
    *item = state;
    if (status == VD_OK && p->emits && !vd_emitted_state(&state, &p->emitted, item))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a state");
    return status;
}

static vd_status check_path(const vd_state_proof *p, vd_err *err) {
    vd_hash item, hash;
    uint64_t leaf;
    if (!leaf_of(&p->program, p->step, &leaf))
        return vd_fail(err, VD_ERR_PEER, "step %lld is no checkpoint of the program's run",
                       (long long)p->step);
    vd_status status = item_of(p, &item, err);
    if (status == VD_OK && !vd_leaf_hash(&item, sizeof item, &hash))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory in hashing a state");
    return status == VD_OK ? vd_proof_verify(&p->path, leaf, vd_run_leaves(&p->program), &hash,
                                             &p->run_root, err)
                           : status;
}

/* ---- making ---- */

/* Gets the leaves of the run's tree. */
static vd_status committed(const vd_exec *exec, const vd_run_log *log, vd_tree *tree, vd_err *err) {
    vd_hash *item = calloc(log->count + 1, sizeof *item);
    vd_status status = item ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < log->count && status == VD_OK; i++) {
        vd_hash state = log->state[i];
        vd_fault_state(exec, log->step[i], &state);
        item[i] = state;
        if (log->backend && !vd_emitted_state(&state, &log->emitted[i], &item[i]))
            status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    if (status == VD_OK)
        status = vd_tree_of_hashes(tree, item, log->count, err);
    free(item);
    return status;
}

static vd_status copy_program(const vd_program *from, vd_program *to, vd_err *err) {
    vd_buf bytes = {0};
    vd_program_encode(from, &bytes);
    vd_status status = vd_buf_ok(&bytes) ? vd_program_decode(bytes.data, bytes.size, to, err)
                                         : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&bytes);
    return status;
}

vd_status vd_state_proof_make(const vd_exec *exec, const vd_run_log *log, uint32_t index,
                              const vd_hash *tensor, vd_state_proof *out, vd_err *err) {
    const uint32_t count = exec->program->leaf_count;
    vd_tree tree = {0};
    *out = (vd_state_proof){.program_hash = log->program,
                            .step = log->step[index],
                            .tensor = calloc(count, sizeof *out->tensor),
                            .emits = log->backend != NULL,
                            .emitted = log->emitted[index]};
    vd_status status = out->tensor ? copy_program(exec->program, &out->program, err)
                                   : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK) {
        memcpy(out->tensor, tensor, count * sizeof *tensor);
        status = committed(exec, log, &tree, err);
    }
    if (status == VD_OK)
        status = vd_tree_root(&tree, &out->run_root, err);
    if (status == VD_OK)
        status = vd_tree_prove(&tree, index, &out->path, err);
    if (status == VD_OK)
        status = check_path(out, err);
    vd_tree_free(&tree);
    if (status != VD_OK)
        vd_state_proof_free(out);
    return status;
}

/* ---- proof.json ---- */

static json_t *proof_list(const vd_hash *hash, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, vd_hash_text(&hash[i]));
    return list;
}

static json_t *program_text(const vd_program *program) {
    vd_buf bytes = {0};
    vd_program_encode(program, &bytes);
    char *text = vd_buf_ok(&bytes) ? vd_base64(bytes.data, bytes.size) : NULL;
    json_t *value = text ? json_string(text) : NULL;
    free(text);
    vd_buf_free(&bytes);
    return value;
}

vd_status vd_state_proof_put(const vd_state_proof *p, vd_buf *out, vd_err *err) {
    vd_json_start();
    json_t *root =
        json_pack("{si so sI so so so}", "verde_proof", 1, "program", program_text(&p->program),
                  "step", (json_int_t)p->step, "run_root", vd_hash_text(&p->run_root), "path",
                  proof_list(p->path.path, p->path.length), "tensors",
                  proof_list(p->tensor, p->program.leaf_count));
    if (root && p->emits)
        json_object_set_new(root, "logs", vd_hash_text(&p->emitted));
    char *text = root && !vd_json_failed() ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    if (text)
        vd_put(out, text, strlen(text));
    vd_put_u8(out, '\n');
    const bool done = text && vd_buf_ok(out);
    free(text);
    return done ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory in writing a proof");
}

vd_status vd_state_proof_write(const vd_state_proof *p, const char *path, vd_err *err) {
    vd_buf text = {0};
    vd_status status = vd_state_proof_put(p, &text, err);
    if (status == VD_OK)
        status = vd_write_file(path, text.data, text.size, 0644, err);
    vd_buf_free(&text);
    return status;
}

static bool get_list(const json_t *list, vd_hash *out, size_t count) {
    if (!json_is_array(list) || json_array_size(list) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!vd_json_to_hash(json_array_get(list, i), &out[i]))
            return false;
    return true;
}

static vd_status read_program(const json_t *value, vd_state_proof *out, vd_err *err) {
    const char *text = json_string_value(value);
    vd_buf bytes = {0};
    if (!text)
        return vd_fail(err, VD_ERR_PEER, "`program` must be a string");
    vd_status status = vd_unbase64(text, strlen(text), &bytes, err);
    if (status == VD_OK)
        status = vd_program_decode(bytes.data, bytes.size, &out->program, err);
    if (status == VD_OK)
        status = vd_program_hash(&out->program, &out->program_hash, err);
    vd_buf_free(&bytes);
    return status;
}

static vd_status read_hashes(const json_t *root, vd_state_proof *out, vd_err *err) {
    const json_t *step = json_object_get(root, "step"), *path = json_object_get(root, "path"),
                 *emitted = json_object_get(root, "logs");
    const size_t length = json_array_size(path);
    out->step = json_integer_value(step);
    out->path.length = (uint32_t)length;
    out->emits = vd_backend_of(&out->program) != NULL;
    out->tensor = calloc(out->program.leaf_count, sizeof *out->tensor);
    if (!out->tensor)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (!json_is_integer(step))
        return vd_fail(err, VD_ERR_PEER, "`step` must be a whole number");
    if (out->emits ? !vd_json_to_hash(emitted, &out->emitted) : emitted != NULL)
        return vd_fail(err, VD_ERR_PEER,
                       "`logs` must be a hash for a program with rounding, and "
                       "absent for others");
    if (length > VD_PROOF_MAX || !get_list(path, out->path.path, length) ||
        !vd_json_get_hash(root, "run_root", &out->run_root))
        return vd_fail(err, VD_ERR_PEER,
                       "`path` must be a list of at most %d hashes, and "
                       "`run_root` one hash",
                       VD_PROOF_MAX);
    if (!get_list(json_object_get(root, "tensors"), out->tensor, out->program.leaf_count))
        return vd_fail(err, VD_ERR_PEER,
                       "`tensors` must be %u hashes, one for each leaf of the "
                       "program's state",
                       out->program.leaf_count);
    return VD_OK;
}

static vd_status read_proof(const json_t *root, vd_state_proof *out, vd_err *err) {
    static const char *const names[] = {"verde_proof", "program",  "step", "tensors",
                                        "path",        "run_root", "logs", NULL};
    vd_status status = vd_json_begin(root, "verde_proof", "the proof of a state", names, err);
    if (status == VD_OK)
        status = read_program(json_object_get(root, "program"), out, err);
    if (status == VD_OK)
        status = read_hashes(root, out, err);
    return status == VD_OK ? check_path(out, err) : status;
}

vd_status vd_state_proof_parse(const void *text, size_t size, vd_state_proof *out, vd_err *err) {
    json_t *root = NULL;
    *out = (vd_state_proof){0};
    if (size && ((const char *)text)[size - 1] == '\n')
        size--;
    vd_status status = vd_json_read(text, size, VD_LEAVES_MAX + 256, &root, err);
    if (status == VD_OK)
        status = read_proof(root, out, err);
    json_decref(root);
    if (status != VD_OK)
        vd_state_proof_free(out);
    return status;
}

vd_status vd_state_proof_read(const char *path, vd_state_proof *out, vd_err *err) {
    vd_buf text = {0};
    vd_err why = {0};
    *out = (vd_state_proof){0};
    vd_status status = vd_read_file(path, VD_STATE_PROOF_BYTES_MAX, &text, err);
    if (status != VD_OK)
        return status;
    status = vd_state_proof_parse(text.data, text.size, out, &why);
    vd_buf_free(&text);
    return status == VD_OK ? VD_OK : vd_fail(err, status, "%s: %s", path, why.text);
}
