/* Trees over tensors, kept between questions: a referee asks about the same tensor several times,
 * and hashing it again would be most of the work. Private to verde/exec. */
#ifndef VD_KEPT_TREES_H
#define VD_KEPT_TREES_H

#include "verde/commit/commit.h"

enum { VD_KEPT_TREES_MAX = 16 };
/* Limit on the bytes of all kept trees, or of one larger tree: enough for 8 GiB of tensors. */
#define VD_KEPT_TREES_BYTES (UINT64_C(512) << 20)

typedef struct {
    int64_t step;
    uint32_t value;
    uint64_t used; /* number of the last use */
    vd_tree tree;
} vd_kept_tree;

typedef struct {
    vd_kept_tree kept[VD_KEPT_TREES_MAX];
    uint32_t count;
    uint64_t uses;
    uint64_t bytes_max;
} vd_kept_trees;

/* Returns the tree over a value of a step; NULL if it is not kept. Like the result of
 * vd_kept_trees_put, it is valid until the next call of _put or _clear. */
const vd_tree *vd_kept_trees_find(vd_kept_trees *trees, int64_t step, uint32_t value);
/* Keeps *tree, and takes ownership. Drops trees unused for longest as the limits require. */
const vd_tree *vd_kept_trees_put(vd_kept_trees *trees, int64_t step, uint32_t value, vd_tree *tree);
void vd_kept_trees_clear(vd_kept_trees *trees);

#endif
