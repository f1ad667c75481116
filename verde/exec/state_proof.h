/* A proof that binds the tensors of a state to a run root, so that exported weights can be
 * recognised as the run's (PROTOCOL.md section 7, "Delivered weights"). Stored as proof.json. */
#ifndef VD_STATE_PROOF_H
#define VD_STATE_PROOF_H

#include "verde/exec/run.h"

/* Limit of a proof's text: the largest program in base64 and 70 bytes for each of the most leaves
 * are 103 MiB; the rest is for white space. */
enum { VD_STATE_PROOF_BYTES_MAX = 112 << 20 };

typedef struct {
    vd_program program;
    vd_hash program_hash;
    int64_t step;
    vd_hash *tensor; /* commitment of each leaf of the layout; owned */
    bool emits;      /* a run with a backend: `emitted` is the root of its records */
    vd_hash emitted;
    vd_proof path; /* from the state's leaf in the run's tree to the root */
    vd_hash run_root;
} vd_state_proof;

void vd_state_proof_free(vd_state_proof *proof);
/* Makes the proof of checkpoint `index` of a finished run, from its tensors' commitments; copies
 * the program. VD_ERR_PEER: the commitments do not give the state that the run commits to. */
VD_MUST_USE vd_status vd_state_proof_make(const vd_exec *exec, const vd_run_log *log,
                                          uint32_t index, const vd_hash *tensor,
                                          vd_state_proof *out, vd_err *err);
/* Appends the text of proof.json. */
VD_MUST_USE vd_status vd_state_proof_put(const vd_state_proof *proof, vd_buf *out, vd_err *err);
VD_MUST_USE vd_status vd_state_proof_write(const vd_state_proof *proof, const char *path,
                                           vd_err *err);
/* Reads a proof, and checks it up to its run root. VD_ERR_PEER: it does not lead there. */
VD_MUST_USE vd_status vd_state_proof_parse(const void *text, size_t size, vd_state_proof *out,
                                           vd_err *err);
VD_MUST_USE vd_status vd_state_proof_read(const char *path, vd_state_proof *out, vd_err *err);

#endif
