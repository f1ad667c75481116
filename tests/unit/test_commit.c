/* Hashes, RFC 6962 trees, proofs, frontiers, tensors, states. */
#include "verde/commit/commit.h"

#include "commit_vectors.h"

enum { MOST = 40 };

static void expect_hex(const vd_hash *hash, const char *hex) {
    char text[2 * VD_HASH_SIZE + 1];
    vd_hex(hash->b, VD_HASH_SIZE, text);
    cr_expect_str_eq(text, hex);
}

static vd_hash hash_of(const void *bytes, size_t size) {
    vd_hash out;
    cr_assert(vd_hash_tagged(NULL, bytes, size, &out));
    return out;
}

/* ---- SHA-256: FIPS 180-4 examples ---- */

Test(sha, known_answers) {
    vd_hash hash = hash_of("", 0);
    expect_hex(&hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash = hash_of("abc", 3);
    expect_hex(&hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash = hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56);
    expect_hex(&hash, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

Test(sha, pieces_and_reuse_give_the_hash_of_the_whole) {
    vd_sha *sha = vd_sha_create();
    cr_assert(sha);
    char million[1000];
    memset(million, 'a', sizeof million);
    vd_hash hash;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++)
            vd_sha_put(sha, million, sizeof million);
        cr_expect(vd_sha_finish(sha, &hash));
        expect_hex(&hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    }
    vd_sha_destroy(sha);
    vd_sha_destroy(NULL);
}

Test(sha, a_tag_is_a_prefix_that_ends_in_nul) {
    vd_hash tagged, whole = hash_of("verde/x\0body", 12), none = hash_of("body", 4);
    cr_expect(vd_hash_tagged("verde/x", "body", 4, &tagged) && vd_hash_equal(&tagged, &whole));
    cr_expect(vd_hash_tagged("", "body", 4, &tagged) && !vd_hash_equal(&tagged, &none));
    none.b[31] ^= 1;
    whole = none;
    whole.b[31] ^= 0x80;
    cr_expect(!vd_hash_equal(&none, &whole));
}

/* ---- trees, against the recursive definition of RFC 6962 section 2.1 ---- */

static vd_hash naive_root(const vd_hash *leaf, size_t count) {
    if (count == 1)
        return leaf[0];
    size_t k = 1;
    while (k * 2 < count)
        k *= 2;
    uint8_t message[65] = {1};
    vd_hash left = naive_root(leaf, k), right = naive_root(leaf + k, count - k);
    memcpy(message + 1, &left, 32);
    memcpy(message + 33, &right, 32);
    return hash_of(message, sizeof message);
}

static vd_hash naive_leaf(const void *data, size_t size) {
    uint8_t message[1 + VD_LEAF_SIZE] = {0};
    memcpy(message + 1, data, size);
    return hash_of(message, 1 + size);
}

static vd_tree tree_of(uint64_t count) {
    vd_hash item[MOST];
    for (uint64_t i = 0; i < count; i++)
        item[i] = hash_of(&i, sizeof i);
    vd_tree tree;
    vd_err err = {0};
    cr_assert(vd_tree_of_hashes(&tree, item, count, &err) == VD_OK, "%s", err.text);
    return tree;
}

static vd_hash root_of(const vd_tree *tree) {
    vd_hash root;
    vd_err err = {0};
    cr_assert(vd_tree_root(tree, &root, &err) == VD_OK, "%s", err.text);
    return root;
}

Test(tree, certificate_transparency_vectors) {
    FILE *file = vector_open("commit_rfc6962.txt");
    vector_line line;
    vd_hash leaf[8];
    uint64_t count = 0;
    while (count < 8 && vector_next(file, &line)) {
        uint8_t data[16];
        size_t size = strcmp(line.key, "-") ? strlen(line.key) / 2 : 0;
        cr_assert(size == 0 || vd_unhex(line.key, data, size));
        cr_assert(vd_leaf_hash(data, size, &leaf[count++]));
        vd_hash root;
        cr_assert(vd_root_of_leaves(leaf, count, &root, NULL) == VD_OK);
        expect_hex(&root, line.value);
    }
    cr_expect(count == 8);
    fclose(file);
}

Test(tree, of_1_to_40_hashes_is_the_naive_one) {
    for (uint64_t count = 1; count <= MOST; count++) {
        vd_tree tree = tree_of(count);
        vd_hash leaf[MOST];
        for (uint64_t i = 0; i < count; i++) {
            vd_hash item = hash_of(&i, sizeof i);
            leaf[i] = naive_leaf(&item, sizeof item);
        }
        vd_hash root = root_of(&tree), naive = naive_root(leaf, count);
        cr_expect(vd_hash_equal(&root, &naive), "%d leaves", (int)count);
        vd_tree_free(&tree);
    }
}

Test(tree, of_bytes_cuts_at_1024_and_keeps_a_short_last_leaf) {
    static const uint64_t sizes[] = {1, 4, 1023, 1024, 1025, 2048, 5 * 1024 - 1, 40 * 1024 - 7};
    uint8_t *bytes = malloc(40 * 1024);
    for (size_t i = 0; i < 40 * 1024; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 1024);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint64_t size = sizes[s], count = 0;
        vd_hash leaf[MOST];
        for (uint64_t at = 0; at < size; at += 1024)
            leaf[count++] = naive_leaf(bytes + at, size - at < 1024 ? size - at : 1024);
        vd_tree tree;
        cr_assert(vd_tree_of_bytes(NULL, &tree, bytes, size, NULL) == VD_OK);
        vd_hash root = root_of(&tree), naive = naive_root(leaf, count);
        cr_expect(tree.count == count && vd_hash_equal(&root, &naive), "%d bytes", (int)size);
        vd_tree_free(&tree);
    }
    free(bytes);
}

Test(tree, without_leaves_or_too_large_is_refused) {
    vd_tree tree;
    vd_err err = {0};
    cr_expect(vd_tree_of_bytes(NULL, &tree, "", 0, &err) == VD_ERR_LOCAL && !tree.leaf);
    cr_expect(vd_tree_of_hashes(&tree, NULL, 0, &err) == VD_ERR_LOCAL && !tree.leaf);
    cr_expect(vd_tree_of_bytes(NULL, &tree, "", UINT64_MAX, &err) == VD_ERR_LOCAL && !tree.leaf);
    cr_expect(vd_tree_of_hashes(&tree, NULL, UINT64_MAX / 16, &err) == VD_ERR_LOCAL);
    vd_tree_free(&tree);
    vd_tree_free(&tree);
}

/* Marks every node [lo, hi) of the tree over leaves lo to hi - 1. */
static void mark_nodes(bool node[MOST + 1][MOST + 1], uint64_t lo, uint64_t hi) {
    node[lo][hi] = true;
    if (hi - lo > 1) {
        uint64_t k = 1;
        while (k * 2 < hi - lo)
            k *= 2;
        mark_nodes(node, lo, lo + k);
        mark_nodes(node, lo + k, hi);
    }
}

Test(tree, only_nodes_have_a_hash) {
    for (uint64_t count = 1; count <= MOST; count++) {
        bool node[MOST + 1][MOST + 1] = {{false}};
        vd_tree tree = tree_of(count);
        mark_nodes(node, 0, count);
        for (uint64_t lo = 0; lo <= MOST; lo++)
            for (uint64_t hi = 0; hi <= MOST; hi++) {
                vd_hash hash;
                bool is = vd_tree_is_node(count, lo, hi);
                cr_assert(is == node[lo][hi], "[%d, %d) of %d", (int)lo, (int)hi, (int)count);
                cr_assert((vd_tree_node(&tree, lo, hi, &hash, NULL) == VD_OK) == is);
                if (!is)
                    continue;
                vd_hash naive = naive_root(tree.leaf + lo, hi - lo);
                cr_assert(vd_hash_equal(&hash, &naive));
            }
        vd_tree_free(&tree);
    }
}

Test(tree, splits_of_huge_ranges) {
    cr_expect(vd_tree_split(0, 2) == 1 && vd_tree_split(5, 8) == 7 && vd_tree_split(0, 4) == 2);
    cr_expect(vd_tree_split(0, UINT64_MAX) == UINT64_C(1) << 63);
    cr_expect(vd_tree_split(0, (UINT64_C(1) << 63) + 1) == UINT64_C(1) << 63);
    cr_expect(vd_tree_is_node(UINT64_MAX, UINT64_MAX - 1, UINT64_MAX));
    cr_expect(!vd_tree_is_node(UINT64_MAX, UINT64_MAX - 2, UINT64_MAX));
}

/* ---- proofs ---- */

static vd_proof proof_of(const vd_tree *tree, uint64_t index) {
    vd_proof proof;
    vd_err err = {0};
    cr_assert(vd_tree_prove(tree, index, &proof, &err) == VD_OK, "%s", err.text);
    return proof;
}

Test(proof, of_every_leaf_leads_to_the_root) {
    for (uint64_t count = 1; count <= MOST; count++) {
        vd_tree tree = tree_of(count);
        vd_hash root = root_of(&tree);
        for (uint64_t i = 0; i < count; i++) {
            vd_proof proof = proof_of(&tree, i);
            cr_assert(vd_proof_check(&proof, i, count, &tree.leaf[i], &root), "%d of %d", (int)i,
                      (int)count);
        }
        vd_proof proof;
        cr_expect(vd_tree_prove(&tree, count, &proof, NULL) == VD_ERR_LOCAL);
        vd_tree_free(&tree);
    }
}

/* The right length of a leaf's path in a tree: how often the range that holds the leaf is split. */
static uint32_t depth_of(uint64_t index, uint64_t count) {
    uint64_t lo = 0, hi = count;
    uint32_t depth = 0;
    for (; hi - lo > 1; depth++) {
        uint64_t split = vd_tree_split(lo, hi);
        *(index < split ? &hi : &lo) = split;
    }
    return depth;
}

static bool left_at(uint64_t index, uint64_t count, uint32_t level) {
    uint64_t lo = 0, hi = count;
    bool left = false;
    for (uint32_t i = depth_of(index, count); i > level; i--) {
        uint64_t split = vd_tree_split(lo, hi);
        left = index < split;
        *(left ? &hi : &lo) = split;
    }
    return left;
}

/* Whether two paths have the same length and turn left and right at the same levels. A proof cannot
 * tell such leaves apart. */
static bool same_turns(uint64_t i, uint64_t n, uint64_t j, uint64_t m) {
    if (depth_of(i, n) != depth_of(j, m))
        return false;
    for (uint32_t level = 0; level < depth_of(i, n); level++)
        if (left_at(i, n, level) != left_at(j, m, level))
            return false;
    return true;
}

Test(proof, for_another_index_or_count_is_refused) {
    for (uint64_t count = 1; count <= 20; count++) {
        vd_tree tree = tree_of(count);
        vd_hash root = root_of(&tree);
        for (uint64_t i = 0; i < count; i++) {
            vd_proof proof = proof_of(&tree, i);
            for (uint64_t m = 0; m <= 24; m++)
                for (uint64_t j = 0; j <= 24; j++) {
                    bool same = j < m && same_turns(i, count, j, m);
                    cr_assert(vd_proof_check(&proof, j, m, &tree.leaf[i], &root) == same,
                              "leaf %d of %d as %d of %d", (int)i, (int)count, (int)j, (int)m);
                    cr_assert(!same || m != count || j == i);
                }
        }
        vd_tree_free(&tree);
    }
}

/* Refuses every proof with one flipped bit (one path byte and bit position at a time) or another
 * length. */
static void expect_mutations_refused(const vd_tree *tree, uint64_t i, const vd_hash *root) {
    vd_proof good = proof_of(tree, i);
    vd_hash leaf = tree->leaf[i], wrong = *root;
    for (size_t byte = 0; byte < 32; byte++) {
        uint8_t bit = (uint8_t)(1 << (byte % 8));
        for (uint32_t k = 0; k < good.length; k++) {
            vd_proof bad = good;
            bad.path[k].b[byte] ^= bit;
            cr_assert(!vd_proof_check(&bad, i, tree->count, &leaf, root));
        }
        leaf.b[byte] ^= bit;
        cr_assert(!vd_proof_check(&good, i, tree->count, &leaf, root));
        leaf.b[byte] ^= bit;
        wrong.b[byte] ^= bit;
        cr_assert(!vd_proof_check(&good, i, tree->count, &leaf, &wrong));
        wrong.b[byte] ^= bit;
    }
    for (uint32_t length = 0; length <= VD_PROOF_MAX + 1; length++) {
        vd_proof bad = {.length = length};
        uint32_t kept = length < good.length ? length : good.length;
        memcpy(bad.path, good.path, kept * sizeof *bad.path);
        cr_assert(vd_proof_check(&bad, i, tree->count, &leaf, root) == (length == good.length));
    }
    good.length = UINT32_MAX;
    cr_assert(!vd_proof_check(&good, i, tree->count, &leaf, root));
}

Test(proof, mutations_are_refused) {
    static const uint64_t counts[] = {1, 2, 3, 7, 8, 13, 33};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        vd_tree tree = tree_of(counts[c]);
        vd_hash root = root_of(&tree);
        for (uint64_t i = 0; i < tree.count; i++)
            expect_mutations_refused(&tree, i, &root);
        vd_tree_free(&tree);
    }
}

/* An inner node's hash with the upper part of a path leads to the root, but that path has the wrong
 * length for every index. */
Test(proof, a_node_offered_as_a_leaf_is_refused) {
    for (uint64_t count = 2; count <= 17; count++) {
        vd_tree tree = tree_of(count);
        vd_hash root = root_of(&tree);
        for (uint64_t i = 0; i < count; i++) {
            vd_proof proof = proof_of(&tree, i);
            vd_hash node = tree.leaf[i];
            for (uint32_t level = 0; level < proof.length; level++) {
                bool left = left_at(i, count, level);
                const vd_hash *other = &proof.path[level];
                cr_assert(vd_node_hash(left ? &node : other, left ? other : &node, &node));
                vd_proof upper = {.length = proof.length - level - 1};
                memcpy(upper.path, proof.path + level + 1, upper.length * sizeof *upper.path);
                for (uint64_t j = 0; j < count; j++)
                    cr_assert(!vd_proof_check(&upper, j, count, &node, &root) ||
                              depth_of(j, count) == upper.length);
                cr_assert(!vd_proof_check(&upper, i, count, &node, &root));
            }
            cr_assert(vd_hash_equal(&node, &root));
        }
        vd_tree_free(&tree);
    }
}

Test(proof, says_whose_fault_it_is) {
    vd_tree tree = tree_of(5);
    vd_hash root = root_of(&tree);
    vd_proof proof = proof_of(&tree, 3);
    vd_err err = {0};
    cr_expect(vd_proof_verify(&proof, 3, 5, &tree.leaf[3], &root, &err) == VD_OK);
    cr_expect(vd_proof_verify(&proof, 3, 5, &tree.leaf[2], &root, &err) == VD_ERR_PEER);
    cr_expect_str_eq(err.text, "the proof of leaf 3 of 5 leads to another root");
    proof.length = 2;
    cr_expect(vd_proof_verify(&proof, 3, 5, &tree.leaf[3], &root, &err) == VD_ERR_PEER);
    cr_expect_str_eq(err.text, "a proof of 2 hashes is not for leaf 3 of 5");
    vd_tree_free(&tree);
}

/* ---- frontiers ---- */

static void expect_frontier(const vd_tree *tree, uint64_t lo, uint64_t hi, int depth) {
    uint64_t flo[256], fhi[256];
    vd_hash hash[257], joined, node;
    size_t count = vd_tree_frontier(lo, hi, depth, flo, fhi);
    cr_assert(count >= 1 && count <= (size_t)1 << depth);
    cr_assert(flo[0] == lo && fhi[count - 1] == hi);
    for (size_t i = 0; i < count; i++) {
        cr_assert(i == 0 || flo[i] == fhi[i - 1]);
        cr_assert(vd_tree_node(tree, flo[i], fhi[i], &hash[i], NULL) == VD_OK);
    }
    cr_assert(vd_tree_node(tree, lo, hi, &node, NULL) == VD_OK);
    cr_assert(vd_tree_join(lo, hi, depth, hash, count, &joined) && vd_hash_equal(&joined, &node));
    hash[count] = hash[0];
    vd_hash *fewer = malloc((count - 1) * sizeof *fewer); /* a sanitizer sees an overrun */
    memcpy(fewer, hash, (count - 1) * sizeof *fewer);
    cr_assert(!vd_tree_join(lo, hi, depth, fewer, count - 1, &joined), "one too few");
    free(fewer);
    cr_assert(!vd_tree_join(lo, hi, depth, hash, count + 1, &joined), "one too many");
    hash[count / 2].b[7] ^= 1;
    cr_assert(vd_tree_join(lo, hi, depth, hash, count, &joined) && !vd_hash_equal(&joined, &node));
}

Test(frontier, joins_to_the_node_it_stands_under) {
    for (uint64_t count = 1; count <= MOST; count += 3) {
        vd_tree tree = tree_of(count);
        for (int depth = 0; depth <= 8; depth++) {
            expect_frontier(&tree, 0, count, depth);
            if (count > 1) {
                expect_frontier(&tree, 0, vd_tree_split(0, count), depth);
                expect_frontier(&tree, vd_tree_split(0, count), count, depth);
            }
        }
        vd_tree_free(&tree);
    }
}

Test(frontier, ranges_of_seven_leaves_and_bad_calls) {
    uint64_t flo[256], fhi[256];
    vd_hash hash[2] = {0}, out;
    cr_assert(vd_tree_frontier(0, 7, 2, flo, fhi) == 4);
    static const uint64_t ends[] = {2, 4, 6, 7};
    for (size_t i = 0; i < 4; i++)
        cr_expect(fhi[i] == ends[i]);
    cr_expect(vd_tree_frontier(0, UINT64_MAX, 8, flo, fhi) == 256);
    cr_expect(vd_tree_frontier(0, 7, 9, flo, fhi) == 0 && vd_tree_frontier(3, 3, 1, flo, fhi) == 0);
    cr_expect(vd_tree_frontier(4, 3, 1, flo, fhi) == 0 &&
              vd_tree_frontier(0, 7, -1, flo, fhi) == 0);
    cr_expect(!vd_tree_join(2, 2, 1, hash, 0, &out) && !vd_tree_join(0, 2, 9, hash, 2, &out));
    cr_expect(!vd_tree_join(0, 2, 1, hash, 0, &out) && vd_tree_join(0, 2, 1, hash, 2, &out));
}

/* ---- tensors and states ---- */

Test(tensor, commitment_is_the_hash_of_its_written_form) {
    float data[600];
    for (int i = 0; i < 600; i++)
        data[i] = (float)i / 7;
    ro_shape shape = {.dtype = RO_F32, .ndim = 2, .dim = {20, 30}};
    vd_hash root, commitment, expected, leaves_root;
    vd_tree tree, own;
    cr_assert(vd_tensor_hash(NULL, &shape, data, &root, &commitment, NULL) == VD_OK);
    cr_assert(vd_tensor_tree(NULL, &shape, data, &tree, NULL) == VD_OK);
    cr_assert(vd_tree_of_bytes(NULL, &own, data, sizeof data, NULL) == VD_OK);
    leaves_root = root_of(&own);
    cr_expect(vd_hash_equal(&root, &leaves_root) && tree.count == 3);
    cr_expect(vd_tensor_leaves(&shape) == 3);
    uint8_t message[15 + 4 + 4 + 16 + 32] =
        "verde/tensor/1\0\x01\0\0\0\x02\0\0\0\x14\0\0\0\0\0\0\0\x1e";
    memcpy(message + 39, &root, 32);
    expected = hash_of(message, sizeof message);
    cr_expect(vd_hash_equal(&commitment, &expected));
    vd_tree_free(&tree);
    vd_tree_free(&own);
}

Test(tensor, shape_and_type_are_bound_in) {
    int32_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const ro_shape shapes[] = {{RO_I32, 1, {8}},    {RO_I32, 2, {8, 1}}, {RO_I32, 2, {1, 8}},
                                      {RO_I32, 2, {2, 4}}, {RO_F32, 1, {8}},    {RO_U8, 1, {32}},
                                      {RO_U16, 1, {16}},   {RO_I8, 1, {32}}};
    enum { COUNT = sizeof shapes / sizeof *shapes };
    vd_hash root[COUNT], commitment[COUNT];
    for (int i = 0; i < COUNT; i++) {
        vd_status status = vd_tensor_hash(NULL, &shapes[i], data, &root[i], &commitment[i], NULL);
        cr_assert(status == VD_OK && vd_hash_equal(&root[0], &root[i]));
        for (int j = 0; j < i; j++)
            cr_expect(!vd_hash_equal(&commitment[i], &commitment[j]), "%d %d", i, j);
    }
}

Test(tensor, what_is_no_shape_is_refused) {
    static const ro_shape bad[] = {{RO_F32, 0, {0}},
                                   {RO_F32, 6, {1, 1, 1, 1, 1}},
                                   {RO_F32, -1, {1}},
                                   {RO_F32, 1, {0}},
                                   {99, 1, {4}},
                                   {RO_F32, 1, {-4}},
                                   {RO_F32, 2, {INT64_MAX, 2}},
                                   {RO_F32, 2, {INT64_C(1) << 40, 2}},
                                   {RO_F32, 5, {INT64_C(1) << 33, INT64_C(1) << 33, 1, 1, 1}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        vd_hash root = {0}, out;
        cr_expect(vd_tensor_leaves(&bad[i]) == 0, "%zu", i);
        cr_expect(!vd_tensor_commit(&bad[i], &root, &out), "%zu", i);
        vd_tree tree = {0};
        cr_expect(vd_tensor_tree(NULL, &bad[i], "", &tree, NULL) == VD_ERR_LOCAL && !tree.leaf);
        cr_expect(vd_tensor_hash(NULL, &bad[i], "", &root, &out, NULL) == VD_ERR_LOCAL, "%zu", i);
    }
}

Test(state, binds_program_step_and_every_tensor_in_order) {
    vd_hash program = hash_of("p", 1), tensor[3], state, other;
    for (uint8_t i = 0; i < 3; i++)
        tensor[i] = hash_of(&i, 1);
    cr_assert(vd_state_commit(&program, -1, tensor, 3, &state, NULL) == VD_OK);
    vd_hash leaf[3];
    for (int i = 0; i < 3; i++)
        leaf[i] = naive_leaf(&tensor[i], 32);
    uint8_t message[14 + 32 + 8 + 32] = "verde/state/1";
    memcpy(message + 14, &program, 32);
    memset(message + 46, 0xff, 8);
    vd_hash root = naive_root(leaf, 3);
    memcpy(message + 54, &root, 32);
    other = hash_of(message, sizeof message);
    cr_expect(vd_hash_equal(&state, &other));
    cr_expect(vd_state_of_root(&program, -1, &root, &other) && vd_hash_equal(&state, &other));

    cr_assert(vd_state_commit(&program, 0, tensor, 3, &other, NULL) == VD_OK);
    cr_expect(!vd_hash_equal(&state, &other));
    cr_assert(vd_state_commit(&tensor[0], -1, tensor, 3, &other, NULL) == VD_OK);
    cr_expect(!vd_hash_equal(&state, &other));
    cr_assert(vd_state_commit(&program, -1, tensor, 2, &other, NULL) == VD_OK);
    cr_expect(!vd_hash_equal(&state, &other));
    vd_hash swapped[3] = {tensor[1], tensor[0], tensor[2]};
    cr_assert(vd_state_commit(&program, -1, swapped, 3, &other, NULL) == VD_OK);
    cr_expect(!vd_hash_equal(&state, &other));
    cr_expect(vd_state_commit(&program, 0, tensor, 0, &other, NULL) == VD_ERR_LOCAL);
}
