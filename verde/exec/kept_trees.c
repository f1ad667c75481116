/* This file keeps trees over tensors, and drops those unused for longest to save memory. */
#include "verde/exec/kept_trees.h"

const vd_tree *vd_kept_trees_find(vd_kept_trees *trees, int64_t step, uint32_t value) {
    for (uint32_t i = 0; i < trees->count; i++) {
        vd_kept_tree *k = &trees->kept[i];
        if (k->step == step && k->value == value) {
            k->used = ++trees->uses;
            return &k->tree;
        }
    }
    return NULL;
}

static uint64_t bytes_of(const vd_tree *tree) {
    return (2 * tree->count - 1) * sizeof *tree->leaf;
}

static uint64_t bytes_of_all(const vd_kept_trees *trees) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < trees->count; i++)
        bytes += bytes_of(&trees->kept[i].tree);
    return bytes;
}

static void drop_oldest(vd_kept_trees *trees) {
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < trees->count; i++)
        if (trees->kept[i].used < trees->kept[oldest].used)
            oldest = i;
    vd_tree_free(&trees->kept[oldest].tree);
    trees->kept[oldest] = trees->kept[--trees->count];
}

const vd_tree *vd_kept_trees_put(vd_kept_trees *trees, int64_t step, uint32_t value,
                                 vd_tree *tree) {
    while (trees->count > 0 && (trees->count == VD_KEPT_TREES_MAX ||
                                bytes_of_all(trees) + bytes_of(tree) > trees->bytes_max))
        drop_oldest(trees);
    vd_kept_tree *k = &trees->kept[trees->count++];
    *k = (vd_kept_tree){step, value, ++trees->uses, *tree};
    *tree = (vd_tree){0};
    return &k->tree;
}

void vd_kept_trees_clear(vd_kept_trees *trees) {
    while (trees->count > 0)
        vd_tree_free(&trees->kept[--trees->count].tree);
}
