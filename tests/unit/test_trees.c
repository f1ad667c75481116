/* Trees of many sizes, with any number of threads, against the definition of RFC 6962 section 2.1;
 * and trees that a replay keeps. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "verde/exec/kept_trees.h"

enum { MOST = 300, BLOCK = 256 /* leaves that one thread takes (verde/commit/bytes.c) */ };

static uint64_t seed = 1;
static uint64_t draw(uint64_t below) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

/* ---- the definition ---- */

static vd_hash naive_node(const vd_hash *left, const vd_hash *right) {
    uint8_t message[65] = {1};
    vd_hash out;
    memcpy(message + 1, left->b, 32);
    memcpy(message + 33, right->b, 32);
    cr_assert(vd_hash_tagged(NULL, message, sizeof message, &out));
    return out;
}

static uint64_t naive_split(uint64_t count) {
    uint64_t k = 1;
    while (k * 2 < count)
        k *= 2;
    return k;
}

static vd_hash naive_root(const vd_hash *leaf, uint64_t count) {
    if (count == 1)
        return leaf[0];
    const uint64_t k = naive_split(count);
    const vd_hash left = naive_root(leaf, k), right = naive_root(leaf + k, count - k);
    return naive_node(&left, &right);
}

static void naive_path(const vd_hash *leaf, uint64_t count, uint64_t index, vd_proof *out) {
    if (count == 1)
        return;
    const uint64_t k = naive_split(count);
    if (index < k)
        naive_path(leaf, k, index, out);
    else
        naive_path(leaf + k, count - k, index - k, out);
    out->path[out->length++] = index < k ? naive_root(leaf + k, count - k) : naive_root(leaf, k);
}

static vd_hash naive_leaf(const uint8_t *bytes, uint64_t size) {
    uint8_t message[1 + VD_LEAF_SIZE] = {0};
    vd_hash out;
    memcpy(message + 1, bytes, size);
    cr_assert(vd_hash_tagged(NULL, message, 1 + size, &out));
    return out;
}

static uint64_t naive_leaves(const uint8_t *bytes, uint64_t size, vd_hash *leaf) {
    uint64_t count = 0;
    for (uint64_t at = 0; at < size; at += VD_LEAF_SIZE)
        leaf[count++] = naive_leaf(bytes + at, size - at < VD_LEAF_SIZE ? size - at : VD_LEAF_SIZE);
    return count;
}

/* ---- all sizes ---- */

static vd_tree tree_of(uint64_t count) {
    vd_hash item[MOST];
    vd_tree tree;
    for (uint64_t i = 0; i < count; i++)
        cr_assert(vd_hash_tagged("item", &i, sizeof i, &item[i]));
    cr_assert(vd_tree_of_hashes(&tree, item, count, NULL) == VD_OK);
    return tree;
}

static void expect_proof(const vd_tree *tree, uint64_t index, const vd_hash *root) {
    vd_proof proof, naive = {.length = 0};
    cr_assert(vd_tree_prove(tree, index, &proof, NULL) == VD_OK);
    naive_path(tree->leaf, tree->count, index, &naive);
    cr_assert(proof.length == naive.length &&
                  memcmp(proof.path, naive.path, naive.length * sizeof *naive.path) == 0,
              "leaf %d of %d", (int)index, (int)tree->count);
    cr_assert(vd_proof_check(&proof, index, tree->count, &tree->leaf[index], root));
}

Test(trees, of_1_to_300_leaves_have_the_roots_and_proofs_of_the_definition) {
    for (uint64_t count = 1; count <= MOST; count++) {
        vd_tree tree = tree_of(count);
        vd_hash root;
        const vd_hash naive = naive_root(tree.leaf, count);
        cr_assert(vd_tree_root(&tree, &root, NULL) == VD_OK && vd_hash_equal(&root, &naive));
        expect_proof(&tree, 0, &root);
        expect_proof(&tree, count - 1, &root);
        for (int i = 0; i < 4; i++)
            expect_proof(&tree, draw(count), &root);
        vd_tree_free(&tree);
    }
}

/* Chooses a random node, and checks it and the root that follows from it if the node is right or
 * wrong. */
static void expect_random_node(const vd_tree *tree) {
    uint64_t lo = 0, hi = tree->count;
    while (hi - lo > 1 && draw(4) > 0) {
        const uint64_t split = lo + naive_split(hi - lo);
        const bool left = draw(2);
        lo = left ? lo : split;
        hi = left ? split : hi;
    }
    const vd_hash naive = naive_root(tree->leaf + lo, hi - lo);
    vd_hash node, root, with;
    cr_assert(vd_tree_node(tree, lo, hi, &node, NULL) == VD_OK && vd_hash_equal(&node, &naive),
              "[%d, %d) of %d", (int)lo, (int)hi, (int)tree->count);
    cr_assert(vd_tree_root(tree, &root, NULL) == VD_OK);
    cr_assert(vd_tree_root_with(tree, lo, hi, &node, &with, NULL) == VD_OK);
    cr_assert(vd_hash_equal(&with, &root));
    node.b[7] ^= 1;
    cr_assert(vd_tree_root_with(tree, lo, hi, &node, &with, NULL) == VD_OK);
    cr_assert(!vd_hash_equal(&with, &root));
}

Test(trees, have_the_nodes_of_the_definition_at_random_ranges) {
    for (uint64_t count = 1; count <= MOST; count++) {
        vd_tree tree = tree_of(count);
        for (int i = 0; i < 4; i++)
            expect_random_node(&tree);
        vd_tree_free(&tree);
    }
}

Test(trees, say_which_ranges_are_no_nodes) {
    vd_tree tree = tree_of(7);
    vd_hash out;
    vd_err err = {0};
    cr_expect(vd_tree_node(&tree, 1, 3, &out, &err) == VD_ERR_LOCAL && strstr(err.text, "[1, 3)"));
    cr_expect(vd_tree_root_with(&tree, 4, 8, &tree.leaf[0], &out, &err) == VD_ERR_LOCAL &&
              strstr(err.text, "[4, 8)"));
    cr_expect(vd_root_of_leaves(NULL, 0, &out, NULL) == VD_ERR_LOCAL);
    cr_expect(vd_root_of_bytes(NULL, "", 0, &out, NULL) == VD_ERR_LOCAL);
    vd_tree_free(&tree);
}

/* ---- threads ---- */

static void expect_by(ro_ctx *ro, const uint8_t *bytes, uint64_t size, const vd_hash *leaf,
                      uint64_t count) {
    vd_tree tree;
    vd_hash root, alone;
    const vd_hash naive = naive_root(leaf, count);
    cr_assert(vd_tree_of_bytes(ro, &tree, bytes, size, NULL) == VD_OK && tree.count == count);
    cr_assert(memcmp(tree.leaf, leaf, count * sizeof *leaf) == 0, "%d bytes", (int)size);
    cr_assert(vd_tree_root(&tree, &root, NULL) == VD_OK);
    cr_assert(vd_root_of_bytes(ro, bytes, size, &alone, NULL) == VD_OK);
    cr_assert(vd_hash_equal(&root, &naive) && vd_hash_equal(&alone, &naive), "%d bytes", (int)size);
    for (int i = 0; i < 3; i++) {
        expect_random_node(&tree);
        expect_proof(&tree, draw(count), &root);
    }
    vd_tree_free(&tree);
}

/* Sizes in bytes around those of a leaf, of a block and of several blocks. */
static const uint64_t sizes[] = {1,
                                 VD_LEAF_SIZE,
                                 VD_LEAF_SIZE + 1,
                                 BLOCK *VD_LEAF_SIZE - 1,
                                 BLOCK *VD_LEAF_SIZE,
                                 BLOCK *VD_LEAF_SIZE + 1,
                                 5 * BLOCK *VD_LEAF_SIZE,
                                 6 * BLOCK *VD_LEAF_SIZE + 5 * VD_LEAF_SIZE + 3};

Test(trees, are_the_same_by_any_number_of_threads) {
    const size_t most = 7 * BLOCK * VD_LEAF_SIZE;
    uint8_t *bytes = malloc(most);
    vd_hash *leaf = calloc(7 * BLOCK, sizeof *leaf);
    cr_assert(bytes && leaf);
    for (size_t i = 0; i < most; i++)
        bytes[i] = (uint8_t)draw(256);
    for (int threads = 0; threads <= 5; threads++) {
        ro_ctx *ro = NULL;
        if (threads > 0)
            cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = threads},
                                    &ro) == RO_OK);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const uint64_t count = naive_leaves(bytes, sizes[i], leaf);
            expect_by(ro, bytes, sizes[i], leaf, count);
        }
        ro_ctx_destroy(ro);
    }
    free(bytes);
    free(leaf);
}

/* ---- kept trees ---- */

static void keep(vd_kept_trees *trees, int64_t step, uint32_t value, uint64_t count) {
    vd_tree tree = tree_of(count);
    const vd_tree *kept = vd_kept_trees_put(trees, step, value, &tree);
    cr_assert(kept->count == count && !tree.leaf);
}

Test(kept_trees, go_when_their_bytes_are_too_many_the_oldest_first) {
    vd_kept_trees trees = {.bytes_max = 3 * 199 * sizeof(vd_hash)};
    keep(&trees, 1, 5, 100);
    keep(&trees, 2, 5, 100);
    keep(&trees, 1, 6, 100);
    cr_assert(vd_kept_trees_find(&trees, 1, 5) && !vd_kept_trees_find(&trees, 2, 6));
    keep(&trees, 3, 5, 100); /* (2, 5) was used least recently */
    cr_expect(vd_kept_trees_find(&trees, 1, 5) && vd_kept_trees_find(&trees, 1, 6));
    cr_expect(vd_kept_trees_find(&trees, 3, 5) && !vd_kept_trees_find(&trees, 2, 5));
    keep(&trees, 4, 5, 300); /* larger than the limit by itself */
    cr_expect(trees.count == 1 && vd_kept_trees_find(&trees, 4, 5));
    vd_kept_trees_clear(&trees);
    cr_expect(trees.count == 0 && !vd_kept_trees_find(&trees, 4, 5));
}

Test(kept_trees, are_few_however_small) {
    vd_kept_trees trees = {.bytes_max = VD_KEPT_TREES_BYTES};
    for (uint32_t value = 0; value < 2 * VD_KEPT_TREES_MAX; value++)
        keep(&trees, 1, value, 1);
    for (uint32_t value = 0; value < 2 * VD_KEPT_TREES_MAX; value++)
        cr_expect(!vd_kept_trees_find(&trees, 1, value) == (value < VD_KEPT_TREES_MAX));
    vd_kept_trees_clear(&trees);
}
