/* Trees over tensors, kept from one question to the next: a referee asks about one tensor several
 * times, and hashing it anew each time is most of an answer. Private to verde/exec. */
#ifndef VD_KEPT_TREES_H
#define VD_KEPT_TREES_H

#include "verde/commit/commit.h"

enum { VD_KEPT_TREES_MAX = 16 };
/* Bytes of all kept trees together, or one tree if that is larger: those of 8 GiB of tensors. */
#define VD_KEPT_TREES_BYTES (UINT64_C(512) << 20)

typedef struct {
    int64_t step;
    uint32_t value;
    uint64_t used; /* when last, by the count of uses */
    vd_tree tree;
} vd_kept_tree;

typedef struct {
    vd_kept_tree kept[VD_KEPT_TREES_MAX];
    uint32_t count;
    uint64_t uses;
    uint64_t bytes_max;
} vd_kept_trees;

/* The tree over a value of a step; NULL if it is not kept. Stands until the next call of
 * vd_kept_trees_put or _clear, as does that of _put. */
const vd_tree *vd_kept_trees_find(vd_kept_trees *trees, int64_t step, uint32_t value);
/* Takes over *tree. What was not used for longest goes, as far as the limits ask for it. */
const vd_tree *vd_kept_trees_put(vd_kept_trees *trees, int64_t step, uint32_t value, vd_tree *tree);
void vd_kept_trees_clear(vd_kept_trees *trees);

#endif
