/* Checks what others send of a state (PROTOCOL.md section 7, "Delivered states"). A tensor comes in
 * blocks of VD_BLOCK_BYTES, the last one shorter, each a node of its tree. VD_ERR_PEER: the bytes
 * are not those that were committed to. */
#ifndef VD_BLOCKS_H
#define VD_BLOCKS_H

#include "verde/exec/state_file.h"

/* Largest number of blocks in a delivered tensor: 1 TiB. */
enum { VD_TENSOR_BLOCKS_MAX = 1 << 20 };

/* Returns the number of bytes in block `k`. */
size_t vd_block_size(const ro_shape *shape, uint64_t k);
/* Checks that these bytes are the hashes of all blocks of the tensor with this commitment. */
VD_MUST_USE vd_status vd_block_list_check(const ro_shape *shape, const vd_hash *commitment,
                                          const void *bytes, size_t size, vd_err *err);
/* Checks that these bytes are block `k`. `block`: its hash, from a list that was checked; NULL if
 * it is the only block, which is checked by the commitment. */
VD_MUST_USE vd_status vd_block_check(const ro_shape *shape, const vd_hash *commitment,
                                     const vd_hash *block, uint64_t k, const void *bytes,
                                     size_t size, vd_err *err);

#endif
