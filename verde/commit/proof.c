/* This file checks audit paths and frontiers that others sent. */
#include "verde/commit/sha.h"

/* Climbs from a leaf to the root as in RFC 9162 section 2.1.3.2. `fn` and `sn` are the indices of
 * our node and of its level's last node; a node without a sibling rises until it has one. The path
 * has the right length if its last hash leads to the root's level, sn = 0. */
static bool climb(vd_sha *sha, const vd_proof *proof, uint64_t fn, uint64_t sn, vd_hash *node) {
    for (uint32_t i = 0; i < proof->length; i++) {
        const vd_hash *sibling = &proof->path[i];
        if (sn == 0)
            return false;
        if (fn % 2 == 0 && fn != sn) {
            vd_sha_node(sha, node, sibling, node);
        } else {
            vd_sha_node(sha, sibling, node, node);
            while (fn % 2 == 0 && fn != 0) {
                fn /= 2;
                sn /= 2;
            }
        }
        fn /= 2;
        sn /= 2;
    }
    return sn == 0;
}

vd_status vd_proof_verify(const vd_proof *proof, uint64_t index, uint64_t count,
                          const vd_hash *leaf, const vd_hash *root, vd_err *err) {
    if (index >= count || proof->length > VD_PROOF_MAX)
        return vd_fail(err, VD_ERR_PEER, "no proof of %u hashes for leaf %llu of %llu exists",
                       (unsigned)proof->length, (unsigned long long)index,
                       (unsigned long long)count);
    vd_sha *sha = vd_sha_create();
    vd_hash node = *leaf;
    bool whole = sha && climb(sha, proof, index, count - 1, &node);
    bool done = sha && !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    if (!done)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed, in checking a proof");
    if (!whole)
        return vd_fail(err, VD_ERR_PEER, "a proof of %u hashes is not for leaf %llu of %llu",
                       (unsigned)proof->length, (unsigned long long)index,
                       (unsigned long long)count);
    if (!vd_hash_equal(&node, root))
        return vd_fail(err, VD_ERR_PEER, "the proof of leaf %llu of %llu leads to another root",
                       (unsigned long long)index, (unsigned long long)count);
    return VD_OK;
}

bool vd_proof_check(const vd_proof *proof, uint64_t index, uint64_t count, const vd_hash *leaf,
                    const vd_hash *root) {
    return vd_proof_verify(proof, index, count, leaf, root, NULL) == VD_OK;
}

enum { FRONTIER_DEPTH_MAX = 8 };

static size_t frontier(uint64_t lo, uint64_t hi, int depth, uint64_t *flo, uint64_t *fhi,
                       size_t count) {
    if (depth == 0 || hi - lo == 1) {
        flo[count] = lo;
        fhi[count] = hi;
        return count + 1;
    }
    uint64_t split = vd_tree_split(lo, hi);
    count = frontier(lo, split, depth - 1, flo, fhi, count);
    return frontier(split, hi, depth - 1, flo, fhi, count);
}

size_t vd_tree_frontier(uint64_t lo, uint64_t hi, int depth, uint64_t *flo, uint64_t *fhi) {
    if (lo >= hi || depth < 0 || depth > FRONTIER_DEPTH_MAX)
        return 0;
    return frontier(lo, hi, depth, flo, fhi, 0);
}

/* Joins hashes of the frontier, which are consumed from left to right. */
static bool join(vd_sha *sha, uint64_t lo, uint64_t hi, int depth, const vd_hash **next,
                 const vd_hash *end, vd_hash *out) {
    if (depth == 0 || hi - lo == 1) {
        if (*next == end)
            return false;
        *out = *(*next)++;
        return true;
    }
    uint64_t split = vd_tree_split(lo, hi);
    vd_hash left, right;
    if (!join(sha, lo, split, depth - 1, next, end, &left) ||
        !join(sha, split, hi, depth - 1, next, end, &right))
        return false;
    vd_sha_node(sha, &left, &right, out);
    return true;
}

bool vd_tree_join(uint64_t lo, uint64_t hi, int depth, const vd_hash *hashes, size_t count,
                  vd_hash *out) {
    if (lo >= hi || depth < 0 || depth > FRONTIER_DEPTH_MAX)
        return false;
    const vd_hash *next = hashes, *end = hashes + count;
    vd_sha *sha = vd_sha_create();
    bool done =
        sha && join(sha, lo, hi, depth, &next, end, out) && next == end && !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    return done;
}
