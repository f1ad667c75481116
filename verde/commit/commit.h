/* Hashes, Merkle trees, keys and signed notes. verde/PROTOCOL.md sections 2 and 3. */
#ifndef VD_COMMIT_H
#define VD_COMMIT_H

#include "repops/device.h"
#include "verde/base/base.h"

enum {
    VD_HASH_SIZE = 32,
    VD_KEY_SIZE = 32,
    VD_SIGNATURE_SIZE = 64,
    VD_LEAF_SIZE = RO_TREE_LEAF, /* bytes of a tensor's leaf; the last one may be shorter */
    VD_PROOF_MAX = 64,           /* longest audit path */
};

typedef struct {
    uint8_t b[VD_HASH_SIZE];
} vd_hash;

bool vd_hash_equal(const vd_hash *a, const vd_hash *b);

/* Incremental SHA-256 through OpenSSL. A failure is remembered, and vd_sha_finish reports it. */
typedef struct vd_sha vd_sha;
vd_sha *vd_sha_create(void); /* NULL: out of memory */
void vd_sha_put(vd_sha *sha, const void *bytes, size_t size);
VD_MUST_USE bool vd_sha_finish(vd_sha *sha, vd_hash *out); /* ready for the next message */
void vd_sha_destroy(vd_sha *sha);

/* Hashes one message: SHA-256(tag || 0x00 || bytes) with a tag such as "verde/tensor/1";
 * SHA-256(bytes) if the tag is NULL. */
VD_MUST_USE bool vd_hash_tagged(const char *tag, const void *bytes, size_t size, vd_hash *out);

/* ---- RFC 6962 trees: leaf = H(0x00 || data), node = H(0x01 || left || right) ---- */

VD_MUST_USE bool vd_leaf_hash(const void *data, size_t size, vd_hash *out);
VD_MUST_USE bool vd_node_hash(const vd_hash *left, const vd_hash *right, vd_hash *out);

/* A tree keeps the hashes of all leaves and inner nodes, so that nodes and proofs are only read: 64
 * bytes per leaf, 128 MiB for a tensor of 2 GiB. count >= 1. */
typedef struct {
    vd_hash *leaf; /* `count` leaves, followed in memory by the inner nodes; owned */
    vd_hash *node; /* [lo, hi) is at vd_tree_split(lo, hi) - 1; freed with `leaf` */
    uint64_t count;
} vd_tree;

void vd_tree_free(vd_tree *tree);
/* Makes the tree over a byte string, in leaves of VD_LEAF_SIZE. All threads of `ro` hash, or the
 * caller's alone if it is NULL. size >= 1. */
VD_MUST_USE vd_status vd_tree_of_bytes(ro_ctx *ro, vd_tree *tree, const void *bytes, uint64_t size,
                                       vd_err *err);
/* Computes its root alone; takes memory for one hash per 256 KiB. */
VD_MUST_USE vd_status vd_root_of_bytes(ro_ctx *ro, const void *bytes, uint64_t size, vd_hash *out,
                                       vd_err *err);
/* The root over hashes of leaves, or over hashes of nodes that are all of one size. */
VD_MUST_USE vd_status vd_root_of_leaves(const vd_hash *leaf, uint64_t count, vd_hash *out,
                                        vd_err *err);
/* The tree over `count` items of one size, and over items of 32 bytes, such as states. */
VD_MUST_USE vd_status vd_tree_of_items(vd_tree *tree, const void *items, uint64_t count,
                                       size_t item_size, vd_err *err);
VD_MUST_USE vd_status vd_tree_of_hashes(vd_tree *tree, const vd_hash *item, uint64_t count,
                                        vd_err *err);
/* Updates a tree of items after items [first, last) changed, at least one. */
VD_MUST_USE vd_status vd_tree_update_items(vd_tree *tree, const void *items, size_t item_size,
                                           uint64_t first, uint64_t last, vd_err *err);
/* Returns the hash of leaves [lo, hi), which must be a node of the tree: see vd_tree_split. Nodes,
 * the root and proofs take time proportional to the tree's height. */
VD_MUST_USE vd_status vd_tree_node(const vd_tree *tree, uint64_t lo, uint64_t hi, vd_hash *out,
                                   vd_err *err);
VD_MUST_USE vd_status vd_tree_root(const vd_tree *tree, vd_hash *out, vd_err *err);
/* Computes the root that the tree would have if its node [lo, hi) were `node`. */
VD_MUST_USE vd_status vd_tree_root_with(const vd_tree *tree, uint64_t lo, uint64_t hi,
                                        const vd_hash *node, vd_hash *out, vd_err *err);
/* Where RFC 6962 splits [lo, hi), hi - lo >= 2: lo + the largest power of two below hi - lo. */
uint64_t vd_tree_split(uint64_t lo, uint64_t hi);
/* Returns whether [lo, hi) is a node of a tree with `count` leaves. */
bool vd_tree_is_node(uint64_t count, uint64_t lo, uint64_t hi);

/* The frontier of [lo, hi): its subtrees after `depth` splits, left to right; leaves are not split.
 * Writes at most 2^depth ranges [flo, fhi), and returns their number. depth <= 8. */
size_t vd_tree_frontier(uint64_t lo, uint64_t hi, int depth, uint64_t *flo, uint64_t *fhi);
/* Computes the hash of [lo, hi) from the hashes of its frontier. */
VD_MUST_USE bool vd_tree_join(uint64_t lo, uint64_t hi, int depth, const vd_hash *frontier,
                              size_t count, vd_hash *out);

typedef struct {
    vd_hash path[VD_PROOF_MAX]; /* from the leaf's sibling up to a child of the root */
    uint32_t length;
} vd_proof;

VD_MUST_USE vd_status vd_tree_prove(const vd_tree *tree, uint64_t index, vd_proof *proof,
                                    vd_err *err);
/* Returns whether the path leads from leaf to root, and has the length for (index, count). */
VD_MUST_USE bool vd_proof_check(const vd_proof *proof, uint64_t index, uint64_t count,
                                const vd_hash *leaf, const vd_hash *root);
/* Like vd_proof_check, but tells a wrong proof (VD_ERR_PEER) from a failure of this machine
 * (VD_ERR_LOCAL). Use it wherever a conviction depends on the answer. */
VD_MUST_USE vd_status vd_proof_verify(const vd_proof *proof, uint64_t index, uint64_t count,
                                      const vd_hash *leaf, const vd_hash *root, vd_err *err);

/* ---- tensors and states ---- */

/* A tensor's commitment covers its elements' bytes in little-endian order. This is the number of
 * leaves of the tree over them; 0 for an invalid shape. */
uint64_t vd_tensor_leaves(const ro_shape *shape);
/* H("verde/tensor/1", dtype u32, ndim u32, dims u64..., byte root). */
VD_MUST_USE bool vd_tensor_commit(const ro_shape *shape, const vd_hash *byte_root, vd_hash *out);
/* Hashes a tensor in host memory: its byte root and its commitment. All threads of `ro` hash, or
 * the caller's alone if it is NULL. */
VD_MUST_USE vd_status vd_tensor_hash(ro_ctx *ro, const ro_shape *shape, const void *data,
                                     vd_hash *byte_root, vd_hash *commitment, vd_err *err);
/* Makes the tree over the bytes of a tensor in host memory, in the same way. */
VD_MUST_USE vd_status vd_tensor_tree(ro_ctx *ro, const ro_shape *shape, const void *data,
                                     vd_tree *tree, vd_err *err);
/* Updates such a tree after bytes [from, from + size) of the tensor changed, at least one: hashes
 * the leaves that contain them and the nodes above. */
VD_MUST_USE vd_status vd_tensor_update(const ro_shape *shape, const void *data, uint64_t from,
                                       uint64_t size, vd_tree *tree, vd_err *err);
/* S_s = H("verde/state/1", program, s as u64 (two's complement), root over the tensors'
 * commitments). The first takes that root, the second the commitments. */
VD_MUST_USE bool vd_state_of_root(const vd_hash *program, int64_t step, const vd_hash *root,
                                  vd_hash *out);
VD_MUST_USE vd_status vd_state_commit(const vd_hash *program, int64_t step, const vd_hash *tensor,
                                      uint64_t count, vd_hash *out, vd_err *err);

/* ---- keys and notes ---- */

typedef struct {
    uint8_t b[VD_KEY_SIZE];
} vd_public_key;

typedef struct vd_key vd_key; /* an Ed25519 private key */

VD_MUST_USE vd_status vd_key_generate(vd_key **out, vd_err *err);
/* For tests. */
VD_MUST_USE vd_status vd_key_from_seed(const uint8_t seed[32], vd_key **out, vd_err *err);
VD_MUST_USE vd_status vd_key_load(const char *pem_path, vd_key **out, vd_err *err);
/* Writes key.pem (mode 0600), key.pub (hex and a newline) and tls.crt (self-signed, for localhost,
 * 127.0.0.1 and ::1). Creates the directory; refuses to overwrite key.pem. */
VD_MUST_USE vd_status vd_key_save(const vd_key *key, const char *directory, vd_err *err);
/* Makes a key whose private part another process holds: `sign` gets signatures from there. It
 * cannot be saved, and cannot make a certificate. */
typedef vd_status (*vd_signer)(void *user, const void *message, size_t size,
                               uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err);
VD_MUST_USE vd_status vd_key_elsewhere(const vd_public_key *key, vd_signer sign, void *user,
                                       vd_key **out, vd_err *err);
void vd_key_destroy(vd_key *key);
void vd_key_public(const vd_key *key, vd_public_key *out);
/* Refuses, with VD_ERR_PEER, a key that is no point of the curve, is not canonically encoded, or is
 * of small order, which would accept any message. */
VD_MUST_USE vd_status vd_public_key_check(const vd_public_key *key, vd_err *err);
/* Reads and checks a key of 64 hexadecimal digits. VD_ERR_PEER: it is no key; VD_ERR_VERSION: it is
 * of a later type, written TYPE:digits (PROTOCOL.md section 3.5). All keys from outside are read by
 * this. */
VD_MUST_USE vd_status vd_public_key_read(const char *hex, vd_public_key *out, vd_err *err);
/* Writes the key for curl's pinning: "sha256//", base64 of the SHA-256 of its
 * SubjectPublicKeyInfo. */
VD_MUST_USE bool vd_public_key_pin(const vd_public_key *key, char text[64]);
void *vd_key_evp(const vd_key *key); /* EVP_PKEY *, borrowed; for the TLS server */

VD_MUST_USE vd_status vd_sign(const vd_key *key, const void *message, size_t size,
                              uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err);
VD_MUST_USE bool vd_verify(const vd_public_key *key, const void *message, size_t size,
                           const uint8_t signature[VD_SIGNATURE_SIZE]);
/* Verifies a signature. VD_ERR_PEER: it or the key is wrong; VD_ERR_LOCAL: this machine failed. */
VD_MUST_USE vd_status vd_signature_verify(const vd_public_key *key, const void *message,
                                          size_t size, const uint8_t signature[VD_SIGNATURE_SIZE],
                                          vd_err *err);

/* payloadType of each kind of note. */
#define VD_TYPE_ASSIGNMENT "application/vnd.verde.assignment+json"
#define VD_TYPE_QUESTION   "application/vnd.verde.question+json"
#define VD_TYPE_ANSWER     "application/vnd.verde.answer+json"
#define VD_TYPE_LOG        "application/vnd.verde.log+json"
#define VD_TYPE_REQUEST    "application/vnd.verde.request+json"
#define VD_TYPE_VERDICT    "application/vnd.in-toto+json"
#define VD_TYPE_RELEASE    "application/vnd.verde.release+json"

/* Appends a DSSE envelope as JSON text: {"payload": base64, "payloadType": type, "signatures":
 * [{"keyid": hex key, "sig": base64}]}. The signature covers the pre-authentication encoding
 * "DSSEv1 len type len payload". No newline follows. */
VD_MUST_USE vd_status vd_note_sign(const vd_key *key, const char *type, const void *payload,
                                   size_t size, vd_buf *out, vd_err *err);
/* Opens a note with exactly one signature, by `key`, of type `type`. It is strict: no unknown or
 * duplicate members, canonical base64, nothing around the JSON, at most `limit` bytes. Appends to
 * `payload`, which is unchanged after a failure. VD_ERR_PEER: the note is wrong; VD_ERR_VERSION:
 * its type of key is unknown, or its payloadType is, though `key` has signed it. */
VD_MUST_USE vd_status vd_note_open(const void *note, size_t note_size, size_t limit,
                                   const char *type, const vd_public_key *key, vd_buf *payload,
                                   vd_err *err);
/* Like vd_note_open, and also gives the signature, so that vd_note_join can make the note again. */
VD_MUST_USE vd_status vd_note_split(const void *note, size_t note_size, size_t limit,
                                    const char *type, const vd_public_key *key, vd_buf *payload,
                                    uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err);
/* Appends the note from its parts, without white space. */
void vd_note_join(const char *type, const vd_public_key *key, const void *payload, size_t size,
                  const uint8_t signature[VD_SIGNATURE_SIZE], vd_buf *out);
/* Reads only the key that the note names as its signer; nothing is verified. */
VD_MUST_USE vd_status vd_note_signer(const void *note, size_t note_size, size_t limit,
                                     vd_public_key *key, vd_err *err);

#endif
