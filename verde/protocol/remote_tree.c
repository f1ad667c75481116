/* This file descends into a provider's tree to all leaves that differ from ours. */
#include "verde/protocol/remote_tree.h"

#include <stdlib.h>

#include "verde/protocol/limits.h"

static vd_status no_memory(vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "out of memory for the comparison of two runs");
}

typedef struct {
    const vd_audit_line *line;
    const vd_tree *own;
    vd_tree_name tree;
    vd_hash root;
    uint64_t *leaf; /* leaves that differ, ascending; owned */
    uint64_t count, capacity;
    vd_err *err;
} differing;

static vd_status add_leaves(differing *d, uint64_t lo, uint64_t hi) {
    if (d->count + (hi - lo) > d->capacity) {
        const uint64_t capacity = 2 * d->count + (hi - lo);
        uint64_t *grown = realloc(d->leaf, capacity * sizeof *grown);
        if (!grown)
            return no_memory(d->err);
        d->leaf = grown;
        d->capacity = capacity;
    }
    while (lo < hi)
        d->leaf[d->count++] = lo++;
    return VD_OK;
}

/* Collects the leaves below a node that differs. If all hashes of its frontier differ, most leaves
 * do: then all are taken without opening more nodes. */
static vd_status gather(differing *d, uint64_t lo, uint64_t hi, const vd_hash *above) {
    enum { WIDTH = 1 << VD_OPEN_DEPTH };
    const vd_question q = {
        .kind = VD_ASK_OPEN, .tree = d->tree, .lo = lo, .hi = hi, .depth = VD_OPEN_DEPTH};
    uint64_t from[WIDTH], to[WIDTH];
    vd_hash theirs[WIDTH], mine;
    bool differs[WIDTH];
    size_t unequal = 0;
    if (hi - lo == 1)
        return add_leaves(d, lo, hi);
    const size_t count = vd_tree_frontier(lo, hi, q.depth, from, to);
    vd_status status = vd_line_open(d->line, &q, above, &d->root, theirs, count, d->err);
    for (size_t i = 0; status == VD_OK && i < count; i++) {
        status = vd_tree_node(d->own, from[i], to[i], &mine, d->err);
        differs[i] = !vd_hash_equal(&mine, &theirs[i]);
        unequal += differs[i];
    }
    if (status == VD_OK && unequal == count)
        return add_leaves(d, lo, hi);
    for (size_t i = 0; status == VD_OK && i < count; i++)
        if (differs[i])
            status = gather(d, from[i], to[i], &theirs[i]);
    return status;
}

static vd_status prove_some(differing *d, uint64_t first, uint32_t count, vd_remote_take take,
                            void *user) {
    vd_buf *data = calloc(count, sizeof *data);
    vd_status status =
        data ? vd_line_prove_some(d->line, &d->tree, d->leaf + first, count, &d->root, data, d->err)
             : no_memory(d->err);
    for (uint32_t i = 0; status == VD_OK && i < count; i++)
        status = take(user, d->leaf[first + i], &data[i], d->err);
    for (uint32_t i = 0; data && i < count; i++)
        vd_buf_free(&data[i]);
    free(data);
    return status;
}

vd_status vd_remote_differing(const vd_audit_line *line, const vd_tree_name *tree,
                              const vd_tree *own, const vd_hash *root, uint32_t at_once,
                              vd_remote_take take, void *user, vd_err *err) {
    differing d = {.line = line, .own = own, .tree = *tree, .root = *root, .err = err};
    vd_status status = gather(&d, 0, own->count, root);
    for (uint64_t i = 0; status == VD_OK && i < d.count; i += at_once) {
        const uint64_t left = d.count - i;
        status = prove_some(&d, i, left < at_once ? (uint32_t)left : at_once, take, user);
    }
    free(d.leaf);
    return status;
}
