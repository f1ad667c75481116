/* What binds the tensors of one state to a run root, so that weights that left a run are still
 * known to be its own (PROTOCOL.md section 7, "Delivered weights"). Kept as proof.json. */
#ifndef VD_STATE_PROOF_H
#define VD_STATE_PROOF_H

#include "verde/exec/run.h"

/* The largest program in base64, and 70 bytes for each of the most leaves: 103 MiB; and some white
 * space. */
enum { VD_STATE_PROOF_BYTES_MAX = 112 << 20 };

typedef struct {
    vd_program program;
    vd_hash program_hash;
    int64_t step;
    vd_hash *tensor; /* commitment of each leaf of the layout; owned */
    bool emits;      /* a run with a backend: what was emitted up to the checkpoint has this root */
    vd_hash emitted;
    vd_proof path; /* from the state's leaf in the run's tree */
    vd_hash run_root;
} vd_state_proof;

void vd_state_proof_free(vd_state_proof *proof);
/* Makes the proof of checkpoint `index` of a finished run, whose tensors have these commitments. It
 * encodes the program again for its contents. VD_ERR_PEER: the commitments do not give the state
 * that the run commits to. */
VD_MUST_USE vd_status vd_state_proof_make(const vd_exec *exec, const vd_run_log *log,
                                          uint32_t index, const vd_hash *tensor,
                                          vd_state_proof *out, vd_err *err);
/* Appends what stands in proof.json. */
VD_MUST_USE vd_status vd_state_proof_put(const vd_state_proof *proof, vd_buf *out, vd_err *err);
VD_MUST_USE vd_status vd_state_proof_write(const vd_state_proof *proof, const char *path,
                                           vd_err *err);
/* Reads one, and checks that its commitments lead to its run root. VD_ERR_PEER: they do not, or it
 * is no proof. */
VD_MUST_USE vd_status vd_state_proof_parse(const void *text, size_t size, vd_state_proof *out,
                                           vd_err *err);
VD_MUST_USE vd_status vd_state_proof_read(const char *path, vd_state_proof *out, vd_err *err);

#endif
