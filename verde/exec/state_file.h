/* Hashing a state's file without ever holding it in memory. */
#ifndef VD_STATE_FILE_H
#define VD_STATE_FILE_H

#include "verde/exec/check.h"

/* A tally of bytes over several files. */
typedef struct {
    const vd_check *check;
    uint64_t done, total;
} vd_hashed;

/* Root over the commitments of the tensors in the file: with program and step it gives S
 * (PROTOCOL.md section 2.3). VD_ERR_PEER: not a file of that size. */
VD_MUST_USE vd_status vd_state_file_root(const char *path, vd_hashed *hashed, vd_hash *root,
                                         vd_err *err);
/* Is it there, a file and of that size? */
VD_MUST_USE vd_status vd_state_file_fits(const char *path, const vd_program *program, vd_err *err);

#endif
