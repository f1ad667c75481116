/* A provider's answers: one function for each kind of question. PROTOCOL.md section 4.2. */
#include <stdlib.h>
#include <string.h>

#include "verde/protocol/inquiry.h"
#include "verde/protocol/pace.h"

/* A hash of a signature: secret until revealed, yet the same after a restart. */
static vd_status salt_of(vd_inquiry *r, vd_hash *salt) {
    static const char prefix[] = "verde/salt/1";
    uint8_t message[sizeof prefix + VD_HASH_SIZE], signature[VD_SIGNATURE_SIZE];
    memcpy(message, prefix, sizeof prefix);
    memcpy(message + sizeof prefix, r->assignment_hash.b, VD_HASH_SIZE);
    vd_status status = vd_sign(r->provider->key, message, sizeof message, signature, r->err);
    if (status == VD_OK && !vd_hash_tagged("verde/salt/1", signature, sizeof signature, salt))
        status = vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    return status;
}

static json_t *list_of(const vd_hash *hash, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, vd_hash_text(&hash[i]));
    return list;
}

static json_t *path_json(const vd_proof *proof) {
    return list_of(proof->path, proof->length);
}

/* Returns {"data": base64, "path": [hash, ...]}. */
static json_t *prove_leaf(vd_inquiry *r, const vd_leaves *l, uint64_t index) {
    vd_proof proof;
    size_t size;
    const uint8_t *bytes = vd_leaves_at(l, index, &size);
    if (vd_tree_prove(l->tree, index, &proof, r->err) != VD_OK)
        return NULL;
    char *data = vd_base64(bytes, size);
    if (!data) {
        vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
        return NULL;
    }
    json_t *out = NULL;
    if (vd_check_proof(r, l, index, &proof, data) == VD_OK) {
        if (r->provider->lie == VD_LIE_PROOF && proof.length)
            proof.path[0].b[0] ^= 1;
        out = json_pack("{ss so}", "data", data, "path", path_json(&proof));
    }
    free(data);
    return out;
}

static json_t *answer_prove(vd_inquiry *r) {
    vd_leaves l = {0};
    if (vd_leaves_load(r, &r->question.tree, &l) != VD_OK)
        return NULL;
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->question.leaf_count; i++)
        json_array_append_new(list, prove_leaf(r, &l, r->question.leaf[i]));
    json_t *out = json_pack("{so so}", "root", vd_hash_text(&l.root), "leaves", list);
    vd_leaves_free(&l);
    return out;
}

static json_t *answer_open(vd_inquiry *r) {
    vd_leaves l = {0};
    uint64_t lo[1 << VD_OPEN_DEPTH_MAX], hi[1 << VD_OPEN_DEPTH_MAX];
    const vd_question *q = &r->question;
    if (vd_leaves_load(r, &q->tree, &l) != VD_OK)
        return NULL;
    size_t count = vd_tree_frontier(q->lo, q->hi, q->depth, lo, hi);
    vd_hash frontier[1 << VD_OPEN_DEPTH_MAX];
    vd_status status = VD_OK;
    for (size_t i = 0; status == VD_OK && i < count; i++)
        status = vd_tree_node(l.tree, lo[i], hi[i], &frontier[i], r->err);
    if (status == VD_OK)
        status = vd_check_frontier(r, &l, frontier, count);
    json_t *out = NULL;
    if (status == VD_OK)
        out =
            json_pack("{so so}", "root", vd_hash_text(&l.root), "hashes", list_of(frontier, count));
    vd_leaves_free(&l);
    return out;
}

/* States the root, with proofs of both ends, which must be states that the run committed to. */
static json_t *answer_subrun(vd_inquiry *r) {
    vd_leaves l = {0};
    if (vd_leaves_load(r, &r->question.tree, &l) != VD_OK)
        return NULL;
    json_t *out = json_pack("{so so so}", "root", vd_hash_text(&l.root), "first",
                            prove_leaf(r, &l, 0), "last", prove_leaf(r, &l, l.tree->count - 1));
    vd_leaves_free(&l);
    return out;
}

static json_t *answer_trace(vd_inquiry *r) {
    int64_t s = r->question.tree.step;
    vd_hash state[2];
    vd_leaves l = {0};
    vd_status status =
        s < 0 ? vd_checked_states(r, 0, 0, &state[1]) : vd_checked_states(r, s, s + 1, state);
    if (status != VD_OK || vd_leaves_load(r, &r->question.tree, &l) != VD_OK)
        return NULL;
    json_t *out =
        json_pack("{so so}", "root", vd_hash_text(&l.root), "after", vd_hash_text(&state[1]));
    if (s >= 0)
        json_object_set_new(out, "before", vd_hash_text(&state[0]));
    vd_leaves_free(&l);
    return out;
}

static vd_status make_commitment(vd_inquiry *r, vd_hash *salt, vd_hash *root, vd_hash *out) {
    vd_leaves l = {0};
    vd_public_key key;
    const vd_tree_name run = {.kind = r->provider->collection ? VD_TREE_ITEMS : VD_TREE_RUN};
    vd_status status = salt_of(r, salt);
    if (status == VD_OK)
        status = vd_leaves_load(r, &run, &l);
    if (status != VD_OK)
        return status;
    *root = l.root;
    vd_leaves_free(&l);
    vd_key_public(r->provider->key, &key);
    return vd_commitment(salt, &key, root, out) ? VD_OK
                                                : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
}

static json_t *answer_commit(vd_inquiry *r) {
    vd_hash salt, root, commit;
    if (make_commitment(r, &salt, &root, &commit) != VD_OK)
        return NULL;
    json_t *out = json_pack("{so}", "commit", vd_hash_text(&commit));
    if (r->provider->pace.plain_us > 0)
        json_object_set_new(out, "pace", vd_pace_json(&r->provider->pace));
    return out;
}

/* Adds the name of the rounding log that the run wrote or followed. */
static json_t *add_run_name(vd_inquiry *r, json_t *out) {
    const uint64_t count = vd_run_leaves(vd_inquiry_program(r));
    vd_hash run_name, *logs = calloc(count, sizeof *logs);
    vd_status status = logs
                           ? r->source.served->logs(r->source.served->user, &run_name, logs, r->err)
                           : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    free(logs);
    if (status == VD_OK)
        json_object_set_new(out, "run", vd_hash_text(&run_name));
    return out;
}

/* Answers only if its own commitment is listed: no root is revealed before all have committed. */
static json_t *answer_reveal(vd_inquiry *r) {
    vd_hash salt, root, commit;
    bool mine = false;
    if (make_commitment(r, &salt, &root, &commit) != VD_OK)
        return NULL;
    for (uint32_t i = 0; i < r->question.commit_count; i++)
        mine |= vd_hash_equal(&r->question.commit[i], &commit);
    if (!mine || r->question.commit_count != r->assignment.provider_count)
        return json_pack("{ss}", "refusal", "the set of commitments lacks mine");
    json_t *out = json_pack("{so so}", "salt", vd_hash_text(&salt), "root", vd_hash_text(&root));
    return r->source.served ? add_run_name(r, out) : out;
}

/* Answers with the root of the second run. No commitment comes first: there is no secret claim left
 * to copy, since the rival's is already revealed. */
static json_t *answer_challenge(vd_inquiry *r) {
    vd_leaves l = {0};
    vd_tree_name run = {.kind = VD_TREE_RUN};
    if (vd_leaves_load(r, &run, &l) != VD_OK)
        return NULL;
    json_t *out = json_pack("{so}", "root", vd_hash_text(&l.root));
    vd_leaves_free(&l);
    return out;
}

static json_t *answer_section(vd_inquiry *r) {
    const vd_emitted_source *s = r->source.served;
    vd_section_proof proof = {.run = {{0}}};
    json_t *out = NULL;
    char *text = NULL;
    vd_status status =
        s->section(s->user, r->question.tree.step, r->question.leaf[0], &proof, r->err);
    if (status == VD_OK)
        status = vd_check_section(r, &proof);
    if (status == VD_OK && !(text = vd_base64(proof.bytes.data, proof.bytes.size)))
        status = vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    if (r->provider->lie == VD_LIE_PROOF)
        proof.tree_root.b[0] ^= 1;
    if (status == VD_OK)
        out = json_pack("{so so so so}", "run", vd_hash_text(&proof.run), "tree",
                        vd_hash_text(&proof.tree_root), "path", path_json(&proof.section), "logs",
                        path_json(&proof.step));
    if (text && proof.leaf.size <= VD_LOG_SECTION_BYTES) {
        json_object_set_new(out, "section", json_string(text));
    } else {
        json_object_set_new(out, "digest", vd_hash_text(&proof.leaf.digest));
        json_object_set_new(out, "size", json_integer((json_int_t)proof.leaf.size));
    }
    free(text);
    vd_buf_free(&proof.bytes);
    return out;
}

/* Answers with the note that the auditor holds against the trainer, only if the trainer signed
 * it. */
static json_t *answer_note(vd_inquiry *r) {
    vd_buf note = {0};
    json_t *out = NULL;
    vd_status status = r->source.served->note(r->source.served->user, r->question.leaf[0],
                                              &r->assignment.provider[0], &note, r->err);
    if (status == VD_OK)
        out = json_pack("{ss#}", "note", (const char *)note.data, (size_t)note.size);
    if (status == VD_ERR_PEER) { /* said in the answer: the request itself is valid */
        out = json_pack("{ss}", "refusal", r->err->text);
        r->err->status = VD_OK;
    }
    vd_buf_free(&note);
    return out;
}

static json_t *(*const answers[])(vd_inquiry *) = {
    [VD_ASK_COMMIT] = answer_commit,       [VD_ASK_REVEAL] = answer_reveal,
    [VD_ASK_SUBRUN] = answer_subrun,       [VD_ASK_TRACE] = answer_trace,
    [VD_ASK_OPEN] = answer_open,           [VD_ASK_PROVE] = answer_prove,
    [VD_ASK_CHALLENGE] = answer_challenge, [VD_ASK_NOTE] = answer_note,
    [VD_ASK_SECTION] = answer_section,
};

json_t *vd_inquiry_body(vd_inquiry *r) {
    if (r->refused)
        return json_pack("{ss}", "refusal", "the second run failed");
    return answers[r->question.kind](r);
}
