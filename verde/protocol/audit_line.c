/* This file asks a provider single questions, and finds where its trees differ from ours. */
#include "verde/protocol/audit_line.h"

#include <stdlib.h>
#include <string.h>

#include "verde/protocol/dispute.h"

static vd_status no_memory(vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "audit: out of memory");
}

static vd_status wrong(vd_err *err, const char *what) {
    return vd_fail(err, VD_ERR_PEER, "%s", what);
}

/* ---- one question ---- */

typedef struct {
    vd_buf payload, note, answer;
    vd_hash hash;
    vd_answer_most most;
} asking;

static void end_asking(asking *a) {
    vd_buf_free(&a->payload);
    vd_buf_free(&a->note);
    vd_buf_free(&a->answer);
}

static vd_status write_question(const vd_audit_line *line, const vd_question *question, asking *a,
                                vd_err *err) {
    const vd_job_programs job = {line->program, NULL};
    a->most = vd_answer_most_of(question, &job);
    vd_status status = vd_question_write(question, &line->assignment, &a->payload, err);
    if (status == VD_OK &&
        !vd_hash_tagged("verde/question/1", a->payload.data, a->payload.size, &a->hash))
        status = no_memory(err);
    return status == VD_OK ? vd_note_sign(line->key, VD_TYPE_QUESTION, a->payload.data,
                                          a->payload.size, &a->note, err)
                           : status;
}

static vd_status send(const vd_audit_line *line, const vd_question *question, asking *a,
                      vd_err *err) {
    vd_outgoing out = {.question = a->hash,
                       .note = &a->note,
                       .answer_max = a->most.note,
                       .work = vd_work_of(question)};
    vd_question_print(question, line->program, out.text, sizeof out.text);
    return line->ask(line->user, &out, &a->answer, err);
}

static vd_status read_answer(const vd_audit_line *line, const asking *a, json_t **body,
                             vd_err *err) {
    const vd_answer_to asked = {&line->provider, &line->assignment, &a->hash, a->most};
    vd_stated stated = {.payload = {0}};
    vd_status status = vd_answer_read(a->answer.data, a->answer.size, &asked, &stated, body, err);
    vd_buf_free(&stated.payload);
    if (status == VD_OK && !json_is_object(*body))
        status = wrong(err, "an answer is no object");
    const char *refusal = json_string_value(json_object_get(*body, "refusal"));
    if (status == VD_OK && refusal)
        status = vd_fail(err, VD_ERR_PEER, "refused to answer: %.200s", refusal);
    return status;
}

/* Asks the question. The caller frees *body, the body of the answer. */
static vd_status line_ask(const vd_audit_line *line, const vd_question *question, json_t **body,
                          vd_err *err) {
    asking a = {.most = {0}};
    *body = NULL;
    vd_status status = write_question(line, question, &a, err);
    if (status == VD_OK)
        status = send(line, question, &a, err);
    if (status == VD_OK)
        status = read_answer(line, &a, body, err);
    end_asking(&a);
    return status;
}

/* ---- statements ---- */

static const vd_hash *draw_of(const vd_audit_line *line, const vd_question *q) {
    return &line->draw[q->kind == VD_ASK_SUBRUN  ? VD_DRAW_SUBRUN
                       : q->kind == VD_ASK_TRACE ? VD_DRAW_TRACE
                                                 : VD_DRAW_FOLD];
}

vd_status vd_line_state(const vd_audit_line *line, const vd_question *question, vd_hash *root,
                        vd_err *err) {
    vd_question q = *question;
    json_t *body;
    q.draws = true;
    q.draw = *draw_of(line, question);
    vd_status status = line_ask(line, &q, &body, err);
    if (status == VD_OK && !vd_json_get_hash(body, "root", root))
        status = wrong(err, "a statement carries no root");
    json_decref(body);
    return status;
}

/* ---- trees ---- */

static bool is_zero(const vd_hash *hash) {
    static const vd_hash none;
    return vd_hash_equal(hash, &none);
}

static vd_status take_root(const json_t *body, vd_hash *root, vd_err *err) {
    vd_hash stated;
    if (!vd_json_get_hash(body, "root", &stated))
        return wrong(err, "an answer about a tree carries no root");
    if (!is_zero(root) && !vd_hash_equal(root, &stated))
        return wrong(err, "answered about another root than it had stated");
    *root = stated;
    return VD_OK;
}

static vd_status take_leaf(const json_t *entry, const vd_hash *root, uint64_t index, uint64_t total,
                           vd_buf *data, vd_err *err) {
    const char *text = json_string_value(json_object_get(entry, "data"));
    const size_t before = data->size;
    vd_proof proof;
    vd_hash leaf;
    if (!text || !vd_take_path(json_object_get(entry, "path"), &proof))
        return wrong(err, "a proof is malformed");
    vd_status status = vd_unbase64(text, strlen(text), data, err);
    if (status != VD_OK)
        return status;
    if (!vd_leaf_hash(data->data + before, data->size - before, &leaf))
        return no_memory(err);
    return vd_proof_verify(&proof, index, total, &leaf, root, err);
}

static vd_status take_leaves(const vd_audit_line *line, const vd_question *q, const json_t *body,
                             vd_hash *root, vd_buf *data, vd_err *err) {
    const json_t *list = json_object_get(body, "leaves");
    const uint64_t total = vd_tree_leaves(line->program, &q->tree);
    vd_status status = take_root(body, root, err);
    if (status == VD_OK && json_array_size(list) != q->leaf_count)
        status = wrong(err, "not as many leaves as were asked for");
    for (uint32_t i = 0; status == VD_OK && i < q->leaf_count; i++)
        status = take_leaf(json_array_get(list, i), root, q->leaf[i], total, &data[i], err);
    return status;
}

vd_status vd_line_prove_some(const vd_audit_line *line, const vd_tree_name *tree, uint64_t *leaf,
                             uint32_t count, vd_hash *root, vd_buf *data, vd_err *err) {
    const vd_question q = {.kind = VD_ASK_PROVE, .tree = *tree, .leaf = leaf, .leaf_count = count};
    json_t *body = NULL;
    vd_status status = line_ask(line, &q, &body, err);
    if (status == VD_OK)
        status = take_leaves(line, &q, body, root, data, err);
    json_decref(body);
    return status;
}

vd_status vd_line_prove(const vd_audit_line *line, const vd_tree_name *tree, uint64_t first,
                        uint32_t count, vd_hash *root, vd_buf *data, vd_err *err) {
    uint64_t *leaf = calloc(count, sizeof *leaf);
    if (!leaf)
        return no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        leaf[i] = first + i;
    vd_status status = vd_line_prove_some(line, tree, leaf, count, root, data, err);
    free(leaf);
    return status;
}

/* Reads the hashes of a frontier, which must join to the hash of the node above. */
static vd_status take_frontier(const json_t *body, const vd_question *q, const vd_hash *above,
                               vd_hash *frontier, size_t count, vd_err *err) {
    const json_t *list = json_object_get(body, "hashes");
    vd_hash joined;
    if (json_array_size(list) != count)
        return wrong(err, "not as many hashes as were asked for");
    for (size_t i = 0; i < count; i++)
        if (!vd_json_to_hash(json_array_get(list, i), &frontier[i]))
            return wrong(err, "a hash is malformed");
    if (!vd_tree_join(q->lo, q->hi, q->depth, frontier, count, &joined))
        return no_memory(err);
    return vd_hash_equal(&joined, above)
               ? VD_OK
               : wrong(err, "opened hashes do not lead to the hash above them");
}

vd_status vd_line_open(const vd_audit_line *line, const vd_question *q, const vd_hash *above,
                       vd_hash *root, vd_hash *frontier, size_t count, vd_err *err) {
    const bool top = q->lo == 0 && q->hi == vd_tree_leaves(line->program, &q->tree);
    json_t *body = NULL;
    vd_status status = line_ask(line, q, &body, err);
    if (status == VD_OK)
        status = take_root(body, root, err);
    if (status == VD_OK)
        status = take_frontier(body, q, top ? root : above, frontier, count, err);
    json_decref(body);
    return status;
}

/* Opens one level: *q becomes the first node of the frontier that differs, and *above its hash. */
static vd_status open_node(const vd_audit_line *line, const vd_tree *own, vd_hash *root,
                           vd_question *q, vd_hash *above, vd_err *err) {
    enum { WIDTH = 1 << VD_OPEN_DEPTH };
    uint64_t lo[WIDTH], hi[WIDTH];
    vd_hash frontier[WIDTH], mine;
    const size_t count = vd_tree_frontier(q->lo, q->hi, q->depth, lo, hi);
    vd_status status = vd_line_open(line, q, above, root, frontier, count, err);
    for (size_t i = 0; status == VD_OK && i < count; i++) {
        status = vd_tree_node(own, lo[i], hi[i], &mine, err);
        if (status != VD_OK || vd_hash_equal(&mine, &frontier[i]))
            continue;
        q->lo = lo[i];
        q->hi = hi[i];
        *above = frontier[i];
        return VD_OK;
    }
    return status == VD_OK ? wrong(err, "its tree is equal to what is right") : status;
}

vd_status vd_line_descend(const vd_audit_line *line, const vd_tree_name *tree, const vd_tree *own,
                          vd_hash *root, uint64_t *leaf, vd_err *err) {
    vd_question q = {
        .kind = VD_ASK_OPEN, .tree = *tree, .lo = 0, .hi = own->count, .depth = VD_OPEN_DEPTH};
    vd_hash above = {{0}};
    vd_status status = VD_OK;
    while (status == VD_OK && q.hi - q.lo > 1)
        status = open_node(line, own, root, &q, &above, err);
    *leaf = q.lo;
    return status;
}
