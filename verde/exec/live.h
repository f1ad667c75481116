/* Commitments to a state that changes a little with each step, such as a cache to which a token
 * adds a row: only what was written is hashed again. Private to verde/exec. */
#ifndef VD_LIVE_H
#define VD_LIVE_H

#include "verde/exec/exec.h"

/* What a step wrote: bytes [from, from + size) of a leaf of the state. */
typedef struct {
    uint32_t leaf;
    uint64_t from, size;
} vd_written;

/* The trees of a state in host memory, with all their nodes: 64 bytes for each KiB of it. */
typedef struct {
    const vd_program *program; /* borrowed */
    vd_hash program_hash;
    vd_tree *tree;   /* over the bytes of each leaf of the layout */
    vd_hash *tensor; /* commitment of each */
    vd_tree state;   /* over these */
} vd_live;

/* Hashes all of the state, by all threads of `ro`; NULL: by the caller's. */
VD_MUST_USE vd_status vd_live_create(ro_ctx *ro, const vd_program *program,
                                     const vd_hash *program_hash, const vd_state *state,
                                     vd_live *out, vd_err *err);
void vd_live_free(vd_live *live);
/* Hashes what was written since the call before, in any order. */
VD_MUST_USE vd_status vd_live_update(vd_live *live, const vd_state *state,
                                     const vd_written *written, uint32_t count, vd_err *err);
/* S of the state that was hashed, as step `step`: what vd_state_hash gives. */
VD_MUST_USE vd_status vd_live_commit(const vd_live *live, int64_t step, vd_hash *out, vd_err *err);
/* Hashes all of the state again. VD_ERR_LOCAL, with the leaf's name, if a leaf's root is not the
 * one that the updates led to: memory changed by itself, or a write was not told. */
VD_MUST_USE vd_status vd_live_check(const vd_live *live, ro_ctx *ro, const vd_state *state,
                                    vd_err *err);

#endif
