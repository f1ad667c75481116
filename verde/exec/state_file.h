/* Hashing a state's file without holding it in memory. */
#ifndef VD_STATE_FILE_H
#define VD_STATE_FILE_H

#include "verde/exec/check.h"

/* Bytes hashed so far, over several files. */
typedef struct {
    const vd_check *check;
    uint64_t done, total;
} vd_hashed;

/* Size of a block, in which tensors are delivered (PROTOCOL.md section 7): a power of two of
 * leaves, so that a block is a node of the tensor's tree. */
enum { VD_BLOCK_BYTES = 1 << 20 };
uint64_t vd_tensor_blocks(const ro_shape *shape);

/* Hashes of a state's bytes. */
typedef struct {
    vd_hash *tensor; /* commitment of each leaf of the layout; owned */
    vd_hash *block;  /* roots of the blocks of all tensors, in order; owned */
    uint64_t count;  /* number of blocks */
} vd_state_blocks;
void vd_state_blocks_free(vd_state_blocks *blocks);
/* VD_ERR_PEER: the file has another size. */
VD_MUST_USE vd_status vd_state_file_blocks(const char *path, vd_hashed *hashed,
                                           vd_state_blocks *out, vd_err *err);

/* Computes the root over the commitments of the file's tensors, from which program and step give S
 * (PROTOCOL.md section 2.3). VD_ERR_PEER: the file has another size. */
VD_MUST_USE vd_status vd_state_file_root(const char *path, vd_hashed *hashed, vd_hash *root,
                                         vd_err *err);
/* Checks that the path is a file of the right size. */
VD_MUST_USE vd_status vd_state_file_fits(const char *path, const vd_program *program, vd_err *err);

#endif
