/* Do a run's files fit together? Nothing is executed: every byte is hashed, on all threads.
 * VD_ERR_PEER: something does not fit, and the sentence names the file, what was expected and what
 * was found. */
#ifndef VD_CHECK_H
#define VD_CHECK_H

#include <stdatomic.h>

#include "verde/exec/store.h"

typedef struct {
    const char *dir;
    const vd_exec *exec; /* program; `ro`, whose threads hash; the fault that the log names */
    const vd_run_log *log;
    /* After each piece; may be NULL. Bytes of all states that this call hashes. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
    /* Set by another thread: the check ends after its piece, with VD_ERR_TIMEOUT. May be NULL. */
    const atomic_bool *stop;
} vd_check;

/* Bytes of a state's file. */
uint64_t vd_state_bytes(const vd_program *program);
/* Are the files of all states in the log there, each of that size? */
VD_MUST_USE vd_status vd_check_sizes(const vd_check *check, vd_err *err);
/* Every byte of the states first .. first + count - 1 of the log against their hashes in it. */
VD_MUST_USE vd_status vd_check_states(const vd_check *check, uint32_t first, uint32_t count,
                                      vd_err *err);
/* Finds which of the log's states the file at `path` holds, whatever its name. */
VD_MUST_USE vd_status vd_check_file(const vd_check *check, const char *path, uint32_t *index,
                                    vd_err *err);
/* Makes all these checks, quick ones first. */
VD_MUST_USE vd_status vd_check_run(const vd_check *check, vd_err *err);

#endif
