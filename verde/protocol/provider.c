#include "verde/protocol/provider.h"

#include "verde/exec/run.h"

#include <stdlib.h>
#include <string.h>

static const char *const lie_names[] = {"none", "proof", "withhold", "silence", "contradict"};

const char *vd_lie_kinds(void) {
    return "proof, withhold, silence, contradict";
}

vd_status vd_lie_parse(const char *text, vd_lie *out, vd_err *err) {
    for (int i = 1; i <= VD_LIE_CONTRADICT; i++)
        if (strcmp(text, lie_names[i]) == 0) {
            *out = (vd_lie)i;
            return VD_OK;
        }
    return vd_fail(err, VD_ERR_USAGE, "fault of a server must be one of %s, got \"%s\"",
                   vd_lie_kinds(), text);
}

bool vd_commitment(const vd_hash *salt, const vd_public_key *key, const vd_hash *root,
                   vd_hash *out) {
    uint8_t bytes[VD_HASH_SIZE + VD_KEY_SIZE + VD_HASH_SIZE];
    memcpy(bytes, salt->b, VD_HASH_SIZE);
    memcpy(bytes + VD_HASH_SIZE, key->b, VD_KEY_SIZE);
    memcpy(bytes + VD_HASH_SIZE + VD_KEY_SIZE, root->b, VD_HASH_SIZE);
    return vd_hash_tagged("verde/commit/1", bytes, sizeof bytes, out);
}

/* ---- one request ---- */

typedef struct {
    const vd_provider *provider;
    vd_source source; /* of the run that the question is about */
    vd_assignment assignment;
    vd_hash assignment_hash, question_hash;
    vd_question question;
    vd_err *err;
} request;

/* Secret until revealed, and the same after a restart: a signature that nobody else can make. */
static vd_status salt_of(const request *r, vd_hash *salt) {
    static const char prefix[] = "verde/salt/1";
    uint8_t message[sizeof prefix + VD_HASH_SIZE], signature[VD_SIGNATURE_SIZE];
    memcpy(message, prefix, sizeof prefix);
    memcpy(message + sizeof prefix, r->assignment_hash.b, VD_HASH_SIZE);
    vd_status status = vd_sign(r->provider->key, message, sizeof message, signature, r->err);
    if (status == VD_OK && !vd_hash_tagged("verde/salt/1", signature, sizeof signature, salt))
        status = vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    return status;
}

/* ---- trees ---- */

/* The leaves of a tree: hashes, records or bytes of a tensor; and its Merkle tree. */
typedef struct {
    vd_tree tree;
    vd_hash *item;             /* RUN, SUBRUN, STATE; owned */
    vd_hash (*logged)[2];      /* RUN with rounding logs: S and L of each item; owned */
    const vd_records *records; /* TRACE, FOLD */
    vd_records parts;          /* FOLD; owned */
    const uint8_t *bytes;      /* TENSOR, as committed to */
    void *copy;                /* owned; NULL if those are the tensor's memory */
    uint64_t size;
    vd_hash root; /* of the tree */
} leaves;

static void leaves_free(leaves *l) {
    vd_tree_free(&l->tree);
    vd_records_free(&l->parts);
    free(l->item);
    free(l->logged);
    free(l->copy);
}

static vd_status tensor_leaves(const request *r, const vd_tree_name *name, leaves *out) {
    const vd_program *p = r->provider->program;
    const void *data;
    vd_status status = r->source.tensor(r->source.user, name->step, name->value, &data, r->err);
    if (status != VD_OK)
        return status;
    const ro_shape *shape = vd_value_shape(p, vd_step_graph(p, name->step), name->value);
    out->size = vd_shape_bytes(shape);
    out->bytes = vd_to_little(data, out->size, ro_dtype_size(shape->dtype), &out->copy);
    return out->bytes ? vd_tree_of_bytes(&out->tree, out->bytes, out->size, r->err)
                      : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
}

/* S || L is what a leaf is proven by, and its hash what the tree is made of. */
static vd_status log_leaves(const request *r, uint64_t count, leaves *out) {
    vd_hash run_name, *logs = calloc(count, sizeof *logs);
    out->logged = calloc(count, sizeof *out->logged);
    vd_status status = logs && out->logged ? r->source.logs(r->source.user, &run_name, logs, r->err)
                                           : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    for (uint64_t i = 0; status == VD_OK && i < count; i++) {
        out->logged[i][0] = out->item[i];
        out->logged[i][1] = logs[i];
        if (!vd_logged_state(&out->item[i], &logs[i], &out->item[i]))
            status = vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    }
    free(logs);
    return status;
}

static vd_status hash_leaves(const request *r, const vd_tree_name *name, uint64_t count,
                             leaves *out) {
    const vd_source *s = &r->source;
    vd_status status;
    out->item = calloc(count, sizeof *out->item);
    if (!out->item)
        return vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    if (name->kind == VD_TREE_RUN)
        status = s->run(s->user, out->item, r->err);
    else if (name->kind == VD_TREE_SUBRUN)
        status = s->states(s->user, name->step, name->to, out->item, r->err);
    else
        status = s->leaves(s->user, name->step, out->item, r->err);
    if (name->kind == VD_TREE_SUBRUN && r->provider->lie == VD_LIE_CONTRADICT)
        out->item[count - 1].b[31] ^= 1;
    if (status == VD_OK && name->kind == VD_TREE_RUN && s->role)
        status = log_leaves(r, count, out);
    return status != VD_OK ? status : vd_tree_of_hashes(&out->tree, out->item, count, r->err);
}

static vd_status fold_leaves(const request *r, const vd_tree_name *name, leaves *out) {
    const vd_program *p = r->provider->program;
    const uint32_t node = name->value - vd_source_count(p, vd_step_graph(p, name->step));
    vd_status status =
        r->source.fold(r->source.user, name->step, node, name->element, &out->parts, r->err);
    out->records = &out->parts;
    return status == VD_OK ? vd_records_tree(&out->parts, &out->tree, r->err) : status;
}

static vd_status load_leaves(const request *r, const vd_tree_name *name, leaves *out) {
    const vd_source *s = &r->source;
    vd_status status;
    *out = (leaves){0};
    if (name->kind == VD_TREE_TENSOR) {
        status = tensor_leaves(r, name, out);
    } else if (name->kind == VD_TREE_TRACE) {
        status = s->trace(s->user, name->step, &out->records, r->err);
        if (status == VD_OK)
            status = vd_records_tree(out->records, &out->tree, r->err);
    } else if (name->kind == VD_TREE_FOLD) {
        status = fold_leaves(r, name, out);
    } else {
        status = hash_leaves(r, name, vd_tree_leaves(r->provider->program, name), out);
    }
    if (status == VD_OK)
        status = vd_tree_root(&out->tree, &out->root, r->err);
    if (status != VD_OK)
        leaves_free(out);
    return status;
}

static const uint8_t *leaf_bytes(const leaves *l, uint64_t index, size_t *size) {
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

/* {"data": base64, "path": [hash, ...]} */
static json_t *prove_leaf(const request *r, const leaves *l, uint64_t index) {
    vd_proof proof;
    size_t size;
    const uint8_t *bytes = leaf_bytes(l, index, &size);
    if (vd_tree_prove(&l->tree, index, &proof, r->err) != VD_OK)
        return NULL;
    if (r->provider->lie == VD_LIE_PROOF && proof.length)
        proof.path[0].b[0] ^= 1;
    char *data = vd_base64(bytes, size);
    if (!data) {
        vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
        return NULL;
    }
    json_t *path = json_array();
    for (uint32_t i = 0; i < proof.length; i++)
        json_array_append_new(path, vd_json_hash(&proof.path[i]));
    json_t *out = json_pack("{ss so}", "data", data, "path", path);
    free(data);
    return out;
}

/* ---- answers ---- */

static json_t *answer_prove(const request *r) {
    leaves l;
    if (load_leaves(r, &r->question.tree, &l) != VD_OK)
        return NULL;
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->question.leaf_count; i++)
        json_array_append_new(list, prove_leaf(r, &l, r->question.leaf[i]));
    json_t *out = json_pack("{so so}", "root", vd_json_hash(&l.root), "leaves", list);
    leaves_free(&l);
    return out;
}

static json_t *answer_open(const request *r) {
    leaves l;
    uint64_t lo[1 << VD_OPEN_DEPTH_MAX], hi[1 << VD_OPEN_DEPTH_MAX];
    const vd_question *q = &r->question;
    if (load_leaves(r, &q->tree, &l) != VD_OK)
        return NULL;
    size_t count = vd_tree_frontier(q->lo, q->hi, q->depth, lo, hi);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        vd_hash hash;
        if (vd_tree_node(&l.tree, lo[i], hi[i], &hash, r->err) != VD_OK)
            break;
        json_array_append_new(list, vd_json_hash(&hash));
    }
    json_t *out = json_pack("{so so}", "root", vd_json_hash(&l.root), "hashes", list);
    leaves_free(&l);
    return out;
}

/* The ends of what is stated come with proofs, to be compared with earlier statements. */
static json_t *answer_subrun(const request *r) {
    leaves l;
    if (load_leaves(r, &r->question.tree, &l) != VD_OK)
        return NULL;
    json_t *out = json_pack("{so so so}", "root", vd_json_hash(&l.root), "first",
                            prove_leaf(r, &l, 0), "last", prove_leaf(r, &l, l.tree.count - 1));
    leaves_free(&l);
    return out;
}

static json_t *answer_trace(const request *r) {
    int64_t s = r->question.tree.step;
    const vd_source *source = &r->source;
    vd_hash state[2];
    leaves l;
    vd_status status = s < 0 ? source->states(source->user, 0, 0, &state[1], r->err)
                             : source->states(source->user, s, s + 1, state, r->err);
    if (status != VD_OK || load_leaves(r, &r->question.tree, &l) != VD_OK)
        return NULL;
    json_t *out =
        json_pack("{so so}", "root", vd_json_hash(&l.root), "after", vd_json_hash(&state[1]));
    if (s >= 0)
        json_object_set_new(out, "before", vd_json_hash(&state[0]));
    leaves_free(&l);
    return out;
}

static vd_status make_commitment(const request *r, vd_hash *salt, vd_hash *root, vd_hash *out) {
    leaves l;
    vd_public_key key;
    vd_tree_name run = {.kind = VD_TREE_RUN};
    vd_status status = salt_of(r, salt);
    if (status == VD_OK)
        status = load_leaves(r, &run, &l);
    if (status != VD_OK)
        return status;
    *root = l.root;
    leaves_free(&l);
    vd_key_public(r->provider->key, &key);
    return vd_commitment(salt, &key, root, out) ? VD_OK
                                                : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
}

static json_t *answer_commit(const request *r) {
    vd_hash salt, root, commit;
    if (make_commitment(r, &salt, &root, &commit) != VD_OK)
        return NULL;
    return json_pack("{so}", "commit", vd_json_hash(&commit));
}

/* Of a rounding log: which one the run has, or has followed. */
static json_t *add_run_name(const request *r, json_t *out) {
    const uint64_t count = vd_run_leaves(r->provider->program);
    vd_hash run_name, *logs = calloc(count, sizeof *logs);
    vd_status status = logs ? r->source.logs(r->source.user, &run_name, logs, r->err)
                            : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    free(logs);
    if (status == VD_OK)
        json_object_set_new(out, "run", vd_json_hash(&run_name));
    return out;
}

/* Only to a set that holds the own commitment: nobody learns the root before all have committed. */
static json_t *answer_reveal(const request *r) {
    vd_hash salt, root, commit;
    bool mine = false;
    if (make_commitment(r, &salt, &root, &commit) != VD_OK)
        return NULL;
    for (uint32_t i = 0; i < r->question.commit_count; i++)
        mine |= vd_hash_equal(&r->question.commit[i], &commit);
    if (!mine || r->question.commit_count != r->assignment.provider_count)
        return json_pack("{ss}", "refusal", "the set of commitments lacks mine");
    json_t *out = json_pack("{so so}", "salt", vd_json_hash(&salt), "root", vd_json_hash(&root));
    return r->source.role ? add_run_name(r, out) : out;
}

/* The claim of the second hearing. There is nobody left to copy it from: the rival's is revealed.
 */
static json_t *answer_challenge(const request *r) {
    leaves l;
    vd_tree_name run = {.kind = VD_TREE_RUN};
    if (load_leaves(r, &run, &l) != VD_OK)
        return NULL;
    json_t *out = json_pack("{so}", "root", vd_json_hash(&l.root));
    leaves_free(&l);
    return out;
}

static json_t *path_json(const vd_proof *proof) {
    json_t *path = json_array();
    for (uint32_t i = 0; i < proof->length; i++)
        json_array_append_new(path, vd_json_hash(&proof->path[i]));
    return path;
}

static json_t *answer_section(const request *r) {
    const vd_source *s = &r->source;
    vd_section_proof proof = {.run = {{0}}};
    json_t *out = NULL;
    char *text = NULL;
    vd_status status =
        s->section(s->user, r->question.tree.step, r->question.leaf[0], &proof, r->err);
    if (status == VD_OK && !(text = vd_base64(proof.bytes.data, proof.bytes.size)))
        status = vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    if (r->provider->lie == VD_LIE_PROOF)
        proof.tree_root.b[0] ^= 1;
    if (status == VD_OK)
        out = json_pack("{so so so so}", "run", vd_json_hash(&proof.run), "tree",
                        vd_json_hash(&proof.tree_root), "path", path_json(&proof.section), "logs",
                        path_json(&proof.step));
    if (proof.leaf.size <= VD_LOG_SECTION_BYTES)
        json_object_set_new(out, "section", json_string(text));
    else {
        json_object_set_new(out, "digest", vd_json_hash(&proof.leaf.digest));
        json_object_set_new(out, "size", json_integer((json_int_t)proof.leaf.size));
    }
    free(text);
    vd_buf_free(&proof.bytes);
    return out;
}

/* What the auditor holds against the trainer: only if the trainer has signed it. */
static json_t *answer_note(const request *r) {
    vd_buf note = {0};
    json_t *out = NULL;
    vd_status status = r->source.note(r->source.user, r->question.leaf[0],
                                      &r->assignment.provider[0], &note, r->err);
    if (status == VD_OK)
        out = json_pack("{ss#}", "note", (const char *)note.data, (size_t)note.size);
    if (status == VD_ERR_PEER) { /* said in an answer: it is no fault of the request */
        out = json_pack("{ss}", "refusal", r->err->text);
        r->err->status = VD_OK;
    }
    vd_buf_free(&note);
    return out;
}

static json_t *(*const answers[])(const request *) = {
    [VD_ASK_COMMIT] = answer_commit,       [VD_ASK_REVEAL] = answer_reveal,
    [VD_ASK_SUBRUN] = answer_subrun,       [VD_ASK_TRACE] = answer_trace,
    [VD_ASK_OPEN] = answer_open,           [VD_ASK_PROVE] = answer_prove,
    [VD_ASK_CHALLENGE] = answer_challenge, [VD_ASK_NOTE] = answer_note,
    [VD_ASK_SECTION] = answer_section,
};

static bool is_enrolled(const vd_assignment *a, const vd_public_key *key) {
    for (uint32_t i = 0; i < a->provider_count; i++)
        if (memcmp(key, &a->provider[i], sizeof *key) == 0)
            return true;
    return false;
}

/* Its own run; in the second hearing, if this provider is the challenger, its second one. What was
 * said about one is never said about the other. */
static vd_status choose_run(request *r) {
    const vd_provider *p = r->provider;
    const vd_question *q = &r->question;
    vd_public_key key;
    r->source = p->source;
    if (!q->challenged)
        return VD_OK;
    vd_key_public(p->key, &key);
    bool mine = memcmp(&key, &q->challenger, sizeof key) == 0;
    if (!r->assignment.challenge || !is_enrolled(&r->assignment, &q->challenger))
        return vd_fail(r->err, VD_ERR_PEER, "request: the assignment provides for no such hearing");
    if (!mine && q->kind == VD_ASK_CHALLENGE)
        return vd_fail(r->err, VD_ERR_PEER, "request: another provider is the challenger");
    if (!mine)
        return VD_OK;
    if (!p->run_again)
        return vd_fail(r->err, VD_ERR_PEER, "this provider does not run again");
    return p->run_again(p->again, &r->source, r->err);
}

static bool withheld(const request *r) {
    if (r->provider->lie == VD_LIE_SILENCE)
        return r->question.kind >= VD_ASK_SUBRUN;
    return r->provider->lie == VD_LIE_WITHHOLD && r->question.tree.kind == VD_TREE_TENSOR;
}

/* ---- requests ---- */

/* A note as JSON text. Notes travel as objects inside the request. */
static vd_status open_note(const json_t *note, const char *type, const vd_public_key *key,
                           vd_buf *payload, vd_err *err) {
    vd_buf text = {0};
    vd_status status =
        json_is_object(note) && vd_json_dump(note, &text)
            ? vd_note_open(text.data, text.size, VD_QUESTION_BYTES_MAX, type, key, payload, err)
            : vd_fail(err, VD_ERR_PEER, "request: not a pair of notes");
    vd_buf_free(&text);
    return status;
}

static bool note_signer(const json_t *note, vd_public_key *key) {
    vd_buf text = {0};
    bool ok = json_is_object(note) && vd_json_dump(note, &text) &&
              vd_note_signer(text.data, text.size, VD_QUESTION_BYTES_MAX, key, NULL) == VD_OK;
    vd_buf_free(&text);
    return ok;
}

static bool enrolled(const request *r) {
    vd_public_key key;
    vd_key_public(r->provider->key, &key);
    return is_enrolled(&r->assignment, &key);
}

/* Who trained is provider 0, and who followed its log is not: neither speaks as the other. */
static vd_status check_role(const request *r) {
    const vd_role role = r->provider->source.role;
    vd_public_key key;
    vd_key_public(r->provider->key, &key);
    const bool first = memcmp(&key, &r->assignment.provider[0], sizeof key) == 0;
    if (r->assignment.rounded != (role != 0))
        return vd_fail(r->err, VD_ERR_PEER, "request: the run is %s",
                       role ? "one with a rounding log" : "in fixed order");
    if (role && first != (role == VD_TRAINER))
        return vd_fail(r->err, VD_ERR_PEER, "request: the run is the %s's, which is provider %d",
                       role == VD_TRAINER ? "trainer" : "auditor", role == VD_TRAINER ? 1 : 2);
    return VD_OK;
}

static vd_status other_program(const request *r) {
    char ours[2 * VD_HASH_SIZE + 1], asked[2 * VD_HASH_SIZE + 1];
    vd_hex(r->provider->program_hash.b, VD_HASH_SIZE, ours);
    vd_hex(r->assignment.program.b, VD_HASH_SIZE, asked);
    return vd_fail(r->err, VD_ERR_PEER, "the job served is program %.8s..., asked for is %.8s...",
                   ours, asked);
}

static vd_status read_assignment(request *r, const json_t *note) {
    vd_public_key referee;
    vd_buf payload = {0};
    if (!note_signer(note, &referee))
        return vd_fail(r->err, VD_ERR_PEER, "request: assignment is not a signed note");
    if (r->provider->referee && memcmp(&referee, r->provider->referee, sizeof referee) != 0)
        return vd_fail(r->err, VD_ERR_PEER, "request: from another referee than the one served");
    vd_status status = open_note(note, VD_TYPE_ASSIGNMENT, &referee, &payload, r->err);
    if (status == VD_OK)
        status = vd_assignment_read(payload.data, payload.size, &r->assignment, r->err);
    if (status == VD_OK && !vd_assignment_hash(payload.data, payload.size, &r->assignment_hash))
        status = vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&payload);
    if (status != VD_OK)
        return status;
    if (memcmp(&referee, &r->assignment.referee, sizeof referee) != 0)
        return vd_fail(r->err, VD_ERR_PEER, "request: assignment is not signed by its referee");
    if (!vd_hash_equal(&r->assignment.program, &r->provider->program_hash))
        return other_program(r);
    if (!enrolled(r))
        return vd_fail(r->err, VD_ERR_PEER, "request: the assignment names other providers' keys");
    return check_role(r);
}

static vd_status read_question(request *r, const json_t *note) {
    vd_buf payload = {0};
    vd_status status = open_note(note, VD_TYPE_QUESTION, &r->assignment.referee, &payload, r->err);
    if (status == VD_OK)
        status = vd_question_read(payload.data, payload.size, r->provider->program,
                                  &r->assignment_hash, &r->question, r->err);
    if (status == VD_OK &&
        !vd_hash_tagged("verde/question/1", payload.data, payload.size, &r->question_hash))
        status = vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&payload);
    return status;
}

static vd_status answer(request *r, vd_buf *out) {
    if (withheld(r))
        return vd_fail(r->err, VD_ERR_TIMEOUT, "silent on purpose");
    const vd_source *source = &r->source;
    r->err->status = VD_OK;
    vd_json_start();
    json_t *body = answers[r->question.kind](r);
    if (vd_json_failed() || r->err->status != VD_OK) { /* what is incomplete is never signed */
        json_decref(body);
        body = NULL;
    }
    if (source->diverged(source->user) && source->role) { /* free kernels are not of one meaning */
        json_decref(body);
        return vd_fail(r->err, VD_ERR_LOCAL,
                       "the run cannot be repeated: was it made by another build, or on another "
                       "machine?");
    }
    if (source->diverged(source->user)) { /* nothing is signed that a replay does not bear out */
        json_decref(body);
        body = json_pack("{sb}", "concede", 1);
    }
    if (!body)
        return r->err->status != VD_OK ? r->err->status
                                       : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    vd_status status = vd_answer_write(r->provider->key, &r->assignment_hash, &r->question_hash,
                                       body, out, r->err);
    json_decref(body);
    return status;
}

static vd_status read_request(request *r, const void *bytes, size_t size) {
    static const char *const keys[] = {"assignment", "question", NULL};
    json_t *root;
    vd_status status = vd_json_read(bytes, size < 2 * VD_QUESTION_BYTES_MAX ? size : 0,
                                    VD_SMALL_ELEMENTS, &root, r->err);
    if (status == VD_OK && !vd_json_has_only(root, keys))
        status = vd_fail(r->err, VD_ERR_PEER, "request: not a pair of notes");
    if (status == VD_OK)
        status = read_assignment(r, json_object_get(root, "assignment"));
    if (status == VD_OK)
        status = read_question(r, json_object_get(root, "question"));
    json_decref(root);
    return status;
}

vd_status vd_provider_screen(const vd_provider *provider, const void *bytes, size_t size,
                             vd_public_key *referee, vd_err *err) {
    vd_err local = {0};
    request r = {.provider = provider, .source = provider->source, .err = err ? err : &local};
    vd_status status = read_request(&r, bytes, size);
    if (status == VD_OK)
        *referee = r.assignment.referee;
    vd_question_free(&r.question);
    return status;
}

vd_status vd_provider_answer(const vd_provider *provider, const void *bytes, size_t size,
                             vd_buf *out, vd_err *err) {
    vd_err local = {0};
    request r = {.provider = provider, .err = err ? err : &local};
    vd_status status = read_request(&r, bytes, size);
    if (status == VD_OK)
        status = choose_run(&r);
    if (status == VD_OK)
        status = answer(&r, out);
    vd_question_free(&r.question);
    return status;
}

vd_status vd_request_write(const vd_buf *assignment_note, const vd_buf *question_note, vd_buf *out,
                           vd_err *err) {
    vd_printf(out, "{\"assignment\":");
    vd_put(out, assignment_note->data, assignment_note->size);
    vd_printf(out, ",\"question\":");
    vd_put(out, question_note->data, question_note->size);
    vd_printf(out, "}");
    return vd_buf_ok(out) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}
