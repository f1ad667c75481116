/* Reads proofs, and descends to the first leaf that differs. PROTOCOL.md section 5.2. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/run.h"
#include "verde/protocol/dispute.h"

/* Convicts of a bad proof, unless the check failed by local trouble. */
static bool bad(vd_referee *r, uint32_t p, vd_status status, const char *what) {
    if (status == VD_ERR_LOCAL)
        vd_trouble(r, what);
    else
        vd_convict(r, p, VD_GRADE_BAD_PROOF, "%s", what);
    return false;
}

static const vd_hash *known_root(const vd_referee *r, uint32_t p, const vd_tree_name *tree) {
    switch (tree->kind) {
    case VD_TREE_ITEMS:
    case VD_TREE_RUN: return &r->party[p].root;
    case VD_TREE_SUBRUN: return &r->party[p].subrun_root;
    case VD_TREE_TRACE: return &r->party[p].trace_root;
    case VD_TREE_FOLD: return &r->party[p].fold_root;
    default: return NULL;
    }
}

bool vd_take_root(vd_referee *r, uint32_t p, const vd_tree_name *tree, const vd_hash *expected,
                  vd_hash *root) {
    vd_hash commitment;
    const vd_hash *known = known_root(r, p, tree);
    if (!vd_json_get_hash(r->party[p].body, "root", root))
        return bad(r, p, VD_ERR_PEER, "an answer about a tree carries no root");
    if (known && !vd_hash_equal(known, root)) {
        vd_convict(r, p, VD_GRADE_CONTRADICTION, "answered about another root than it had stated");
        return false;
    }
    if (known)
        return true;
    bool ok =
        tree->kind == VD_TREE_STATE
            ? vd_state_of_root(&r->program_hash, tree->step, root, &commitment)
            : vd_tensor_commit(
                  vd_value_shape(r->program, vd_step_graph(r->program, tree->step), tree->value),
                  root, &commitment);
    if (!ok)
        return bad(r, p, VD_ERR_LOCAL, "out of memory");
    if (!vd_hash_equal(&commitment, expected))
        return bad(r, p, VD_ERR_PEER, "a root does not lead to the commitment that it had stated");
    return true;
}

bool vd_take_path(const json_t *path, vd_proof *proof) {
    if (!json_is_array(path) || json_array_size(path) > VD_PROOF_MAX)
        return false;
    proof->length = 0;
    for (size_t i = 0; i < json_array_size(path); i++)
        if (!vd_json_to_hash(json_array_get(path, i), &proof->path[proof->length++]))
            return false;
    return true;
}

bool vd_is_logged(const vd_referee *r, const vd_tree_name *tree) {
    return r->rounded && tree->kind == VD_TREE_RUN;
}

/* Hashes a leaf as it stands in the tree, which for S || L (`logged`) has their hash. */
static bool hash_leaf(const vd_buf *data, bool logged, vd_hash *leaf) {
    vd_hash pair[2], both;
    if (!logged)
        return vd_leaf_hash(data->data, data->size, leaf);
    memcpy(pair, data->data, sizeof pair);
    return vd_emitted_state(&pair[0], &pair[1], &both) && vd_leaf_hash(&both, sizeof both, leaf);
}

bool vd_take_leaf(vd_referee *r, uint32_t p, const json_t *entry, const vd_hash *root,
                  uint64_t index, uint64_t count, bool logged, vd_buf *data) {
    const char *text = json_string_value(json_object_get(entry, "data"));
    vd_proof proof;
    vd_hash leaf;
    vd_err err = {0};
    if (!text || !vd_take_path(json_object_get(entry, "path"), &proof))
        return bad(r, p, VD_ERR_PEER, "a proof is malformed");
    vd_status status = vd_unbase64(text, strlen(text), data, &err);
    if (status != VD_OK)
        return bad(r, p, status, "a leaf is not base64");
    if (logged && data->size != 2 * sizeof leaf)
        return bad(r, p, VD_ERR_PEER, "a leaf of the run is not a state and a log");
    if (!hash_leaf(data, logged, &leaf))
        return bad(r, p, VD_ERR_LOCAL, "out of memory");
    status = vd_proof_verify(&proof, index, count, &leaf, root, &err);
    return status == VD_OK || bad(r, p, status, "a proof does not lead to the stated root");
}

bool vd_take_leaves(vd_referee *r, uint32_t p, const vd_tree_name *tree, const vd_hash *expected,
                    const uint64_t *leaf, uint32_t count, vd_each_leaf each) {
    const json_t *list = json_object_get(r->party[p].body, "leaves");
    uint64_t total = vd_job_leaves(r->program, r->options.collection, tree);
    vd_hash root;
    if (!vd_take_root(r, p, tree, expected, &root))
        return false;
    if (!json_is_array(list) || json_array_size(list) != count)
        return bad(r, p, VD_ERR_PEER, "not as many leaves as were asked for");
    for (uint32_t i = 0; i < count; i++) {
        vd_buf data = {0};
        bool ok = vd_take_leaf(r, p, json_array_get(list, i), &root, leaf[i], total,
                               vd_is_logged(r, tree), &data) &&
                  each(r, p, leaf[i], &data);
        vd_buf_free(&data);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- wanted leaves ---- */

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

bool vd_want(vd_referee *r, const uint64_t *leaf, uint32_t count) {
    uint64_t *list = calloc(count + 1, sizeof *list);
    if (!list) {
        vd_trouble(r, "out of memory");
        return false;
    }
    memcpy(list, leaf, count * sizeof *list);
    qsort(list, count, sizeof *list, ascending);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || list[kept - 1] != list[i])
            list[kept++] = list[i];
    free(r->wanted);
    r->wanted = list;
    r->wanted_count = kept;
    return true;
}

bool vd_ask_wanted(vd_referee *r, const vd_tree_name *tree, vd_question *question) {
    if (r->wanted_count == 0)
        return false;
    *question = (vd_question){.kind = VD_ASK_PROVE, .tree = *tree, .leaf_count = r->wanted_count};
    question->leaf = malloc(r->wanted_count * sizeof *question->leaf);
    if (!question->leaf) {
        vd_trouble(r, "out of memory");
        return false;
    }
    memcpy(question->leaf, r->wanted, r->wanted_count * sizeof *question->leaf);
    return true;
}

/* ---- descent ---- */

void vd_descend(vd_referee *r, vd_tree_name tree, vd_phase open, vd_phase next) {
    uint64_t count = vd_job_leaves(r->program, r->options.collection, &tree);
    r->descent = (vd_descent){.tree = tree, .count = count, .lo = 0, .hi = count, .next = next};
    for (uint32_t p = 0; p < r->parties; p++) {
        const vd_hash *root = known_root(r, p, &tree);
        if (root)
            r->party[p].node = *root;
    }
    r->phase = count == 1 ? next : open;
}

bool vd_descent_ask(vd_referee *r, uint32_t p, vd_question *question) {
    const vd_descent *d = &r->descent;
    (void)p;
    *question = (vd_question){
        .kind = VD_ASK_OPEN, .tree = d->tree, .lo = d->lo, .hi = d->hi, .depth = VD_OPEN_DEPTH};
    return true;
}

/* Returns the commitment that p has made to the tree before it states the tree's root. */
static const vd_hash *committed(const vd_referee *r, uint32_t p, const vd_tree_name *tree) {
    return tree->kind == VD_TREE_STATE ? &r->party[p].after : &r->party[p].record->output;
}

/* Reads the frontier that p states and checks that it joins to the hash of the node above it. */
static bool take_frontier(vd_referee *r, uint32_t p, size_t count, vd_hash *frontier) {
    const vd_descent *d = &r->descent;
    const json_t *list = json_object_get(r->party[p].body, "hashes");
    vd_hash root, joined;
    if (!vd_take_root(r, p, &d->tree, committed(r, p, &d->tree), &root))
        return false;
    if (d->lo == 0 && d->hi == d->count)
        r->party[p].node = root;
    if (!json_is_array(list) || json_array_size(list) != count)
        return bad(r, p, VD_ERR_PEER, "not as many hashes as were asked for");
    for (size_t i = 0; i < count; i++)
        if (!vd_json_to_hash(json_array_get(list, i), &frontier[i]))
            return bad(r, p, VD_ERR_PEER, "a hash is malformed");
    if (!vd_tree_join(d->lo, d->hi, VD_OPEN_DEPTH, frontier, count, &joined))
        return bad(r, p, VD_ERR_LOCAL, "out of memory");
    if (!vd_hash_equal(&joined, &r->party[p].node))
        return bad(r, p, VD_ERR_PEER, "opened hashes do not lead to the hash above them");
    return true;
}

void vd_descent_take(vd_referee *r) {
    enum { WIDTH = 1 << VD_OPEN_DEPTH };
    vd_descent *d = &r->descent;
    uint64_t lo[WIDTH], hi[WIDTH];
    vd_hash frontier[VD_PARTIES_MAX][WIDTH];
    size_t count = vd_tree_frontier(d->lo, d->hi, VD_OPEN_DEPTH, lo, hi), at = 0;
    bool ok = true;
    for (uint32_t p = 0; p < r->parties; p++)
        ok &= take_frontier(r, p, count, frontier[p]);
    if (!ok)
        return;
    while (at < count && vd_hash_equal(&frontier[0][at], &frontier[1][at]))
        at++;
    if (at == count) { /* equal children of different hashes: a collision, or our own bug */
        vd_trouble(r, "two different nodes have equal children");
        return;
    }
    for (uint32_t p = 0; p < r->parties; p++)
        r->party[p].node = frontier[p][at];
    d->lo = lo[at];
    d->hi = hi[at];
    if (d->hi - d->lo == 1)
        r->phase = d->next;
}
