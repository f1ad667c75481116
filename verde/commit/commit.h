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

/* Incremental SHA-256 through OpenSSL. Its failures are remembered and reported by finish. */
typedef struct vd_sha vd_sha;
vd_sha *vd_sha_create(void); /* NULL: out of memory */
void vd_sha_put(vd_sha *sha, const void *bytes, size_t size);
VD_MUST_USE bool vd_sha_finish(vd_sha *sha, vd_hash *out); /* ready for the next message */
void vd_sha_destroy(vd_sha *sha);

/* One message: SHA-256(tag || 0x00 || bytes), tag a string such as "verde/tensor/1"; NULL: no tag,
 * no 0x00. */
VD_MUST_USE bool vd_hash_tagged(const char *tag, const void *bytes, size_t size, vd_hash *out);

/* ---- RFC 6962 trees: leaf = H(0x00 || data), node = H(0x01 || left || right) ---- */

VD_MUST_USE bool vd_leaf_hash(const void *data, size_t size, vd_hash *out);
VD_MUST_USE bool vd_node_hash(const vd_hash *left, const vd_hash *right, vd_hash *out);

/* A tree keeps the hashes of its leaves and inner nodes, so that a node is read and a proof copied:
 * 64 bytes for each leaf, 128 MiB for a tensor of 2 GiB. count >= 1. */
typedef struct {
    vd_hash *leaf; /* count of them, and behind them the inner nodes; owned */
    vd_hash *node; /* count - 1, that of [lo, hi) at vd_tree_split(lo, hi) - 1; in leaf's block */
    uint64_t count;
} vd_tree;

void vd_tree_free(vd_tree *tree);
/* The tree over a byte string in leaves of VD_LEAF_SIZE, hashed by all threads of `ro`; NULL: by
 * the caller's. size >= 1. */
VD_MUST_USE vd_status vd_tree_of_bytes(ro_ctx *ro, vd_tree *tree, const void *bytes, uint64_t size,
                                       vd_err *err);
/* Its root alone, in the memory of one hash for each 256 KiB. */
VD_MUST_USE vd_status vd_root_of_bytes(ro_ctx *ro, const void *bytes, uint64_t size, vd_hash *out,
                                       vd_err *err);
/* The root over what already are hashes of leaves, or of nodes of one size. */
VD_MUST_USE vd_status vd_root_of_leaves(const vd_hash *leaf, uint64_t count, vd_hash *out,
                                        vd_err *err);
/* The tree over leaves of one size, one after the other; over 32-byte ones, such as states. */
VD_MUST_USE vd_status vd_tree_of_items(vd_tree *tree, const void *items, uint64_t count,
                                       size_t item_size, vd_err *err);
VD_MUST_USE vd_status vd_tree_of_hashes(vd_tree *tree, const vd_hash *item, uint64_t count,
                                        vd_err *err);
/* Brings a tree of items up to date after items [first, last) changed, at least one. */
VD_MUST_USE vd_status vd_tree_update_items(vd_tree *tree, const void *items, size_t item_size,
                                           uint64_t first, uint64_t last, vd_err *err);
/* The hash of leaves [lo, hi), which must be a node of the tree (vd_tree_split says which are).
 * This, the root and proofs take time in the tree's height alone. */
VD_MUST_USE vd_status vd_tree_node(const vd_tree *tree, uint64_t lo, uint64_t hi, vd_hash *out,
                                   vd_err *err);
VD_MUST_USE vd_status vd_tree_root(const vd_tree *tree, vd_hash *out, vd_err *err);
/* The root that the tree has if the hash of its node [lo, hi) is `node`: computed from the nodes
 * beside the way. */
VD_MUST_USE vd_status vd_tree_root_with(const vd_tree *tree, uint64_t lo, uint64_t hi,
                                        const vd_hash *node, vd_hash *out, vd_err *err);
/* Where RFC 6962 splits [lo, hi), hi - lo >= 2: lo + the largest power of two below hi - lo. */
uint64_t vd_tree_split(uint64_t lo, uint64_t hi);
/* Is [lo, hi) a node of a tree with `count` leaves? */
bool vd_tree_is_node(uint64_t count, uint64_t lo, uint64_t hi);

/* The frontier of [lo, hi) after `depth` splits, left to right: the subtrees that stand there,
 * single leaves staying as they are. Writes at most 2^depth ranges to (flo, fhi); returns how many.
 * depth <= 8. */
size_t vd_tree_frontier(uint64_t lo, uint64_t hi, int depth, uint64_t *flo, uint64_t *fhi);
/* The hash of [lo, hi) computed from its frontier's hashes. */
VD_MUST_USE bool vd_tree_join(uint64_t lo, uint64_t hi, int depth, const vd_hash *frontier,
                              size_t count, vd_hash *out);

typedef struct {
    vd_hash path[VD_PROOF_MAX]; /* from the leaf's sibling up to the root's child */
    uint32_t length;
} vd_proof;

VD_MUST_USE vd_status vd_tree_prove(const vd_tree *tree, uint64_t index, vd_proof *proof,
                                    vd_err *err);
/* Exact length for (index, count); true if the path leads from this leaf hash to this root. */
VD_MUST_USE bool vd_proof_check(const vd_proof *proof, uint64_t index, uint64_t count,
                                const vd_hash *leaf, const vd_hash *root);
/* The same, telling a wrong proof (VD_ERR_PEER) from trouble of this machine (VD_ERR_LOCAL): what a
 * conviction rests on must be asked this way. */
VD_MUST_USE vd_status vd_proof_verify(const vd_proof *proof, uint64_t index, uint64_t count,
                                      const vd_hash *leaf, const vd_hash *root, vd_err *err);

/* ---- tensors and states ---- */

/* Tensors are committed to as the bytes of their elements in little-endian order. Leaves of the
 * tree over them; 0 for what is no shape. */
uint64_t vd_tensor_leaves(const ro_shape *shape);
/* H("verde/tensor/1", dtype u32, ndim u32, dims u64..., byte root). */
VD_MUST_USE bool vd_tensor_commit(const ro_shape *shape, const vd_hash *byte_root, vd_hash *out);
/* Byte root and commitment of a tensor in host memory, by all threads of `ro`; NULL: by the
 * caller's. */
VD_MUST_USE vd_status vd_tensor_hash(ro_ctx *ro, const ro_shape *shape, const void *data,
                                     vd_hash *byte_root, vd_hash *commitment, vd_err *err);
/* The tree over the bytes of a tensor in host memory, likewise. */
VD_MUST_USE vd_status vd_tensor_tree(ro_ctx *ro, const ro_shape *shape, const void *data,
                                     vd_tree *tree, vd_err *err);
/* Brings such a tree up to date after bytes [from, from + size) of the tensor changed, at least
 * one: hashes the leaves that they touch and the nodes above these. */
VD_MUST_USE vd_status vd_tensor_update(const ro_shape *shape, const void *data, uint64_t from,
                                       uint64_t size, vd_tree *tree, vd_err *err);
/* S_s = H("verde/state/1", program, s as u64 (two's complement), root over the tensors'
 * commitments): from that root, and from the commitments. */
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
/* key.pem (mode 0600), key.pub (hex and a newline), tls.crt (self-signed by the same key, for
 * localhost, 127.0.0.1 and ::1). Makes the directory; refuses to overwrite key.pem. */
VD_MUST_USE vd_status vd_key_save(const vd_key *key, const char *directory, vd_err *err);
/* A key that another process holds: `sign` gets a signature from there. It has no file, and no
 * certificate can be made by it. */
typedef vd_status (*vd_signer)(void *user, const void *message, size_t size,
                               uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err);
VD_MUST_USE vd_status vd_key_elsewhere(const vd_public_key *key, vd_signer sign, void *user,
                                       vd_key **out, vd_err *err);
void vd_key_destroy(vd_key *key);
void vd_key_public(const vd_key *key, vd_public_key *out);
/* What is no point of the curve is refused, and so are points of small order, which verify every
 * message, and encodings that are not canonical: VD_ERR_PEER. */
VD_MUST_USE vd_status vd_public_key_check(const vd_public_key *key, vd_err *err);
/* A key as it is written, in 64 digits; checked. VD_ERR_PEER: it is none; VD_ERR_VERSION: it is of
 * a later type, written TYPE:digits (PROTOCOL.md section 3.5). Whoever reads a key from anywhere
 * reads it by this. */
VD_MUST_USE vd_status vd_public_key_read(const char *hex, vd_public_key *out, vd_err *err);
/* "sha256//" and the SHA-256 of the key's SubjectPublicKeyInfo in base64: what curl pins. */
VD_MUST_USE bool vd_public_key_pin(const vd_public_key *key, char text[64]);
void *vd_key_evp(const vd_key *key); /* EVP_PKEY *, borrowed; for the TLS server */

VD_MUST_USE vd_status vd_sign(const vd_key *key, const void *message, size_t size,
                              uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err);
VD_MUST_USE bool vd_verify(const vd_public_key *key, const void *message, size_t size,
                           const uint8_t signature[VD_SIGNATURE_SIZE]);
/* The same, telling a wrong signature or key (VD_ERR_PEER) from trouble of this machine
 * (VD_ERR_LOCAL). */
VD_MUST_USE vd_status vd_signature_verify(const vd_public_key *key, const void *message,
                                          size_t size, const uint8_t signature[VD_SIGNATURE_SIZE],
                                          vd_err *err);

/* All payloadTypes of notes. */
#define VD_TYPE_ASSIGNMENT "application/vnd.verde.assignment+json"
#define VD_TYPE_QUESTION   "application/vnd.verde.question+json"
#define VD_TYPE_ANSWER     "application/vnd.verde.answer+json"
#define VD_TYPE_LOG        "application/vnd.verde.log+json"
#define VD_TYPE_REQUEST    "application/vnd.verde.request+json"
#define VD_TYPE_VERDICT    "application/vnd.in-toto+json"
#define VD_TYPE_RELEASE    "application/vnd.verde.release+json"

/* Appends a DSSE envelope as JSON text: {"payload": base64, "payloadType": type, "signatures":
 * [{"keyid": hex key, "sig": base64}]}, signed over the pre-authentication encoding
 * "DSSEv1 len type len payload". No newline at the end. */
VD_MUST_USE vd_status vd_note_sign(const vd_key *key, const char *type, const void *payload,
                                   size_t size, vd_buf *out, vd_err *err);
/* Opens a note of exactly one signature by exactly `key`, of exactly this type. Strict: no unknown
 * or duplicate members, canonical base64, no bytes (nor white space) around, at most `limit` bytes.
 * Appends to `payload`, which is as before after a failure. What the note does wrong is
 * VD_ERR_PEER; VD_ERR_VERSION: a type of key, or a payloadType that its key has signed, which is
 * not known. */
VD_MUST_USE vd_status vd_note_open(const void *note, size_t note_size, size_t limit,
                                   const char *type, const vd_public_key *key, vd_buf *payload,
                                   vd_err *err);
/* The same, and the signature, from which vd_note_join makes this note again. */
VD_MUST_USE vd_status vd_note_split(const void *note, size_t note_size, size_t limit,
                                    const char *type, const vd_public_key *key, vd_buf *payload,
                                    uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err);
/* Appends the note, compact. */
void vd_note_join(const char *type, const vd_public_key *key, const void *payload, size_t size,
                  const uint8_t signature[VD_SIGNATURE_SIZE], vd_buf *out);
/* Reads only the signer's claimed key, unverified. */
VD_MUST_USE vd_status vd_note_signer(const void *note, size_t note_size, size_t limit,
                                     vd_public_key *key, vd_err *err);

#endif
