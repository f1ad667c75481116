/* Commitments to a state that changes little per step, such as a cache that gets a row per token:
 * only what was written is hashed again. Private to verde/exec. */
#ifndef VD_LIVE_H
#define VD_LIVE_H

#include "verde/exec/exec.h"

/* A write of a step: bytes [from, from + size) of a leaf of the state. */
typedef struct {
    uint32_t leaf;
    uint64_t from, size;
} vd_written;

/* Trees of a state in host memory, with all nodes: 64 bytes for each KiB of the state. */
typedef struct {
    const vd_program *program; /* borrowed */
    vd_hash program_hash;
    vd_tree *tree;   /* of each leaf, over its bytes */
    vd_hash *tensor; /* commitment of each leaf */
    vd_tree state;   /* over the commitments */
} vd_live;

/* Hashes a whole state, by all threads of `ro`, or the caller's if it is NULL. */
VD_MUST_USE vd_status vd_live_create(ro_ctx *ro, const vd_program *program,
                                     const vd_hash *program_hash, const vd_state *state,
                                     vd_live *out, vd_err *err);
void vd_live_free(vd_live *live);
/* Hashes what was written since the last call, in any order. */
VD_MUST_USE vd_status vd_live_update(vd_live *live, const vd_state *state,
                                     const vd_written *written, uint32_t count, vd_err *err);
/* Computes S of the hashed state at step `step`, equal to vd_state_hash. */
VD_MUST_USE vd_status vd_live_commit(const vd_live *live, int64_t step, vd_hash *out, vd_err *err);
/* Hashes the whole state again. VD_ERR_LOCAL names a leaf whose root differs from the updated one:
 * memory changed by itself, or a write was not reported. */
VD_MUST_USE vd_status vd_live_check(const vd_live *live, ro_ctx *ro, const vd_state *state,
                                    vd_err *err);

#endif
