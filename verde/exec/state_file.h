/* Hashing a state's file without ever holding it in memory. */
#ifndef VD_STATE_FILE_H
#define VD_STATE_FILE_H

#include "verde/exec/check.h"

/* A tally of bytes over several files. */
typedef struct {
    const vd_check *check;
    uint64_t done, total;
} vd_hashed;

/* A block of a tensor, as they are delivered (PROTOCOL.md section 7): a power of two of leaves, so
 * that each is a node of the tensor's tree. */
enum { VD_BLOCK_BYTES = 1 << 20 };
uint64_t vd_tensor_blocks(const ro_shape *shape);

/* What a state's bytes give. */
typedef struct {
    vd_hash *tensor; /* commitment of each leaf of the layout; owned */
    vd_hash *block;  /* of all tensors, one after the other; owned */
    uint64_t count;  /* of blocks */
} vd_state_blocks;
void vd_state_blocks_free(vd_state_blocks *blocks);
/* VD_ERR_PEER: not a file of that size. */
VD_MUST_USE vd_status vd_state_file_blocks(const char *path, vd_hashed *hashed,
                                           vd_state_blocks *out, vd_err *err);

/* Root over the commitments of the tensors in the file: with program and step it gives S
 * (PROTOCOL.md section 2.3). VD_ERR_PEER: not a file of that size. */
VD_MUST_USE vd_status vd_state_file_root(const char *path, vd_hashed *hashed, vd_hash *root,
                                         vd_err *err);
/* Is it there, a file and of that size? */
VD_MUST_USE vd_status vd_state_file_fits(const char *path, const vd_program *program, vd_err *err);

#endif
