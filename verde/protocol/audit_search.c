/* This file narrows a state that differs down to a step, a node and an element. */
#include "verde/protocol/audit_search.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/run.h"
#include "verde/protocol/dispute.h"

static vd_status no_memory(vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "audit: out of memory");
}

static vd_status wrong(vd_err *err, const char *what) {
    return vd_fail(err, VD_ERR_PEER, "%s", what);
}

static void free_all(vd_buf *data, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        vd_buf_free(&data[i]);
}

/* ---- what it commits to ---- */

vd_status vd_search_ends(const vd_audit_line *line, uint64_t leaf, vd_hash *before, vd_hash *after,
                         vd_err *err) {
    const vd_tree_name run = {.kind = VD_TREE_RUN};
    const uint32_t count = leaf ? 2 : 1;
    vd_hash root = line->run_root;
    vd_buf data[2] = {{0}};
    vd_status status = vd_line_prove(line, &run, leaf ? leaf - 1 : 0, count, &root, data, err);
    for (uint32_t i = 0; status == VD_OK && i < count; i++)
        if (data[i].size != VD_HASH_SIZE)
            status = wrong(err, "a committed state is not a hash");
    if (status == VD_OK)
        memcpy(after->b, data[count - 1].data, VD_HASH_SIZE);
    if (status == VD_OK && leaf)
        memcpy(before->b, data[0].data, VD_HASH_SIZE);
    free_all(data, 2);
    return status;
}

static vd_status fetch_tensor(const vd_audit_line *line, int64_t step, uint32_t leaf,
                              vd_search_put put, void *user, vd_err *err) {
    const vd_tree_name tree = {.kind = VD_TREE_TENSOR, .step = step, .value = leaf};
    const uint64_t total = vd_tree_leaves(line->program, &tree);
    vd_buf *data = calloc(VD_PROVE_LEAVES_MAX, sizeof *data);
    vd_hash root = {{0}};
    vd_status status = data ? VD_OK : no_memory(err);
    for (uint64_t at = 0; status == VD_OK && at < total; at += VD_PROVE_LEAVES_MAX) {
        const uint64_t left = total - at;
        const uint32_t count = left < VD_PROVE_LEAVES_MAX ? (uint32_t)left : VD_PROVE_LEAVES_MAX;
        status = vd_line_prove(line, &tree, at, count, &root, data, err);
        for (uint32_t i = 0; status == VD_OK && i < count; i++)
            status = put(user, data[i].data, data[i].size, err);
        for (uint32_t i = 0; i < count; i++)
            data[i].size = 0;
    }
    if (data)
        free_all(data, VD_PROVE_LEAVES_MAX);
    free(data);
    return status;
}

vd_status vd_search_state(const vd_audit_line *line, int64_t step, vd_search_put put, void *user,
                          vd_err *err) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < line->program->leaf_count; i++)
        status = fetch_tensor(line, step, i, put, user, err);
    return status;
}

/* ---- the step ---- */

typedef struct {
    const uint8_t *bytes;
    size_t size;
} leaf_bytes;

typedef struct {
    const vd_audit_line *line;
    const vd_source *own;
    const vd_graph *graph;
    vd_crumb *place;
    vd_err *err;
} search;

static vd_status state_root(const search *s, vd_ask_kind kind, const vd_tree_name *tree,
                            vd_hash *root) {
    const vd_question q = {.kind = kind, .tree = *tree};
    return vd_line_state(s->line, &q, root, s->err);
}

/* Finds the first step whose resulting state differs. */
static vd_status find_step(const search *s, int64_t from, int64_t to) {
    const vd_tree_name tree = {.kind = VD_TREE_SUBRUN, .step = from, .to = to};
    const size_t count = (size_t)(to - from) + 1;
    vd_hash root, *state = calloc(count, sizeof *state);
    vd_tree own = {0};
    uint64_t leaf = 0;
    s->place->step = from;
    vd_status status = state ? state_root(s, VD_ASK_SUBRUN, &tree, &root) : no_memory(s->err);
    if (status == VD_OK)
        status = s->own->states(s->own->user, from, to, state, s->err);
    if (status == VD_OK)
        status = vd_tree_of_hashes(&own, state, count, s->err);
    if (status == VD_OK)
        status = vd_line_descend(s->line, &tree, &own, &root, &leaf, s->err);
    if (status == VD_OK)
        s->place->step = leaf ? from + (int64_t)leaf - 1 : from;
    vd_tree_free(&own);
    free(state);
    return status;
}

/* ---- the node ---- */

/* Compares the provider's record of a node with our own. *only: nothing but the output differs.
 * Otherwise no element is looked for: any place of the node shows the difference. */
static vd_status differs_in_output(const search *s, uint64_t node, vd_hash *root,
                                   const vd_records *own, vd_hash *output, bool *only) {
    const vd_tree_name tree = {.kind = VD_TREE_TRACE, .step = s->place->step};
    vd_buf data = {0};
    size_t size;
    const uint8_t *mine = vd_records_at(own, node, &size);
    vd_status status = vd_line_prove(s->line, &tree, node, 1, root, &data, s->err);
    if (status == VD_OK) {
        *only = data.size == size && memcmp(data.data, mine, size - VD_HASH_SIZE) == 0;
        if (*only)
            memcpy(output->b, data.data + size - VD_HASH_SIZE, VD_HASH_SIZE);
    }
    vd_buf_free(&data);
    return status;
}

static void to_node(const search *s, uint64_t node) {
    vd_fold fold;
    const bool is_long = vd_fold_open(&fold, s->line->program, s->graph, (uint32_t)node, 0);
    s->place->node = (int64_t)node;
    s->place->element = 0;
    s->place->count = 1;
    s->place->part = is_long ? 0 : -1;
}

/* ---- the element, and its part ---- */

/* Finds the first element of this leaf in which the provider's bytes differ from `own`. */
static vd_status find_in_leaf(const search *s, const vd_tree_name *tree, uint64_t leaf,
                              const leaf_bytes *own, vd_hash *root) {
    const size_t size =
        ro_dtype_size(vd_node_stored(s->graph, (uint32_t)s->place->node)->shape.dtype);
    vd_buf data = {0};
    size_t at = 0;
    vd_status status = vd_line_prove(s->line, tree, leaf, 1, root, &data, s->err);
    if (status == VD_OK && data.size != own->size)
        status = wrong(s->err, "a leaf of a tensor has the wrong size");
    while (status == VD_OK && at < own->size && memcmp(data.data + at, own->bytes + at, size) == 0)
        at += size;
    if (status == VD_OK && at < own->size)
        s->place->element = (int64_t)((leaf * VD_LEAF_SIZE + at) / size);
    vd_buf_free(&data);
    return status;
}

static vd_status find_element(const search *s) {
    const vd_node *n = vd_node_stored(s->graph, (uint32_t)s->place->node);
    const vd_tree_name tree = {.kind = VD_TREE_TENSOR,
                               .step = s->place->step,
                               .value = vd_source_count(s->line->program, s->graph) +
                                        (uint32_t)s->place->node};
    const uint64_t size = vd_shape_bytes(&n->shape);
    const void *data;
    void *copy = NULL;
    vd_hash root = {{0}};
    vd_tree own = {0};
    uint64_t leaf = 0;
    vd_status status = s->own->tensor(s->own->user, s->place->step, tree.value, &data, s->err);
    if (status == VD_OK)
        status = vd_tensor_tree(NULL, &n->shape, data, &own, s->err);
    if (status == VD_OK)
        status = vd_line_descend(s->line, &tree, &own, &root, &leaf, s->err);
    if (status == VD_OK) {
        const uint8_t *bytes = vd_to_little(data, size, ro_dtype_size(n->shape.dtype), &copy);
        const uint64_t left = size - leaf * VD_LEAF_SIZE;
        const leaf_bytes mine = {bytes ? bytes + leaf * VD_LEAF_SIZE : NULL,
                                 left < VD_LEAF_SIZE ? left : VD_LEAF_SIZE};
        status = bytes ? find_in_leaf(s, &tree, leaf, &mine, &root) : no_memory(s->err);
    }
    free(copy);
    vd_tree_free(&own);
    return status;
}

/* Asks for the proof of the last part, with which the provider states the root over all parts. */
static vd_status state_parts(const search *s, const vd_tree_name *tree, uint64_t last,
                             vd_hash *root) {
    uint64_t leaf = last;
    const vd_question q = {.kind = VD_ASK_PROVE, .tree = *tree, .leaf = &leaf, .leaf_count = 1};
    return vd_line_state(s->line, &q, root, s->err);
}

static vd_status find_part(const search *s) {
    const uint32_t node = (uint32_t)s->place->node;
    const vd_tree_name tree = {.kind = VD_TREE_FOLD,
                               .step = s->place->step,
                               .value = vd_source_count(s->line->program, s->graph) + node,
                               .element = s->place->element};
    vd_records parts = {0};
    vd_tree own = {0};
    vd_hash root, mine;
    uint64_t leaf = 0;
    vd_status status =
        s->own->fold(s->own->user, s->place->step, node, s->place->element, &parts, s->err);
    if (status == VD_OK)
        status = vd_records_tree(&parts, &own, s->err);
    if (status == VD_OK)
        status = vd_tree_root(&own, &mine, s->err);
    if (status == VD_OK)
        status = state_parts(s, &tree, own.count - 1, &root);
    if (status == VD_OK && !vd_hash_equal(&root, &mine)) /* else the last part shows it */
        status = vd_line_descend(s->line, &tree, &own, &root, &leaf, s->err);
    s->place->part = (int64_t)leaf;
    vd_tree_free(&own);
    vd_records_free(&parts);
    return status;
}

/* ---- all of it ---- */

static vd_status find_node(const search *s, vd_hash *root, const vd_records *records,
                           const vd_tree *own) {
    const vd_tree_name tree = {.kind = VD_TREE_TRACE, .step = s->place->step};
    uint64_t node;
    vd_hash output;
    bool only = false;
    vd_status status = vd_line_descend(s->line, &tree, own, root, &node, s->err);
    if (status != VD_OK)
        return status;
    to_node(s, node);
    status = differs_in_output(s, node, root, records, &output, &only);
    if (status != VD_OK || !only)
        return status;
    status = find_element(s);
    return status == VD_OK && s->place->part >= 0 ? find_part(s) : status;
}

/* Finds the record that differs. If there is none, the place stays a seam: its leaf is the caller's
 * to find. */
static vd_status find_in_step(search *s) {
    const vd_tree_name tree = {.kind = VD_TREE_TRACE, .step = s->place->step};
    const vd_records *records;
    vd_tree own = {0};
    vd_hash root, mine;
    s->graph = vd_step_graph(s->line->program, s->place->step);
    vd_status status = state_root(s, VD_ASK_TRACE, &tree, &root);
    if (status == VD_OK)
        status = s->own->trace(s->own->user, s->place->step, &records, s->err);
    if (status == VD_OK)
        status = vd_records_tree(records, &own, s->err);
    if (status == VD_OK)
        status = vd_tree_root(&own, &mine, s->err);
    if (status == VD_OK && !vd_hash_equal(&root, &mine))
        status = find_node(s, &root, records, &own);
    vd_tree_free(&own);
    return status;
}

vd_status vd_search_place(const vd_audit_line *line, const vd_source *own, int64_t from, int64_t to,
                          vd_crumb *place, vd_err *err) {
    search s = {.line = line, .own = own, .place = place, .err = err};
    *place = (vd_crumb){.step = from, .node = -1, .part = -1, .leaf_count = 1};
    memcpy(place->draw, line->draw, sizeof place->draw);
    vd_status status = to - from > 1 ? find_step(&s, from, to) : VD_OK;
    return status == VD_OK ? find_in_step(&s) : status;
}
