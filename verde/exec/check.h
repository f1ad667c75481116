/* Checks the files of a run: all bytes are hashed, on all threads; nothing is executed. VD_ERR_PEER
 * names the file, what was expected and what was found. */
#ifndef VD_CHECK_H
#define VD_CHECK_H

#include <stdatomic.h>

#include "verde/exec/store.h"

typedef struct {
    const char *dir;
    const vd_exec *exec; /* program; context whose threads hash; the fault in the log */
    const vd_run_log *log;
    /* Called after each piece, with bytes of all states that this call hashes; may be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
    /* Set by another thread to end the check after a piece, with VD_ERR_TIMEOUT. May be NULL. */
    const atomic_bool *stop;
} vd_check;

/* Size of a state's file in bytes. */
uint64_t vd_state_bytes(const vd_program *program);
/* Checks that the files of all states in the log exist, with the right size. */
VD_MUST_USE vd_status vd_check_sizes(const vd_check *check, vd_err *err);
/* Hashes states first .. first + count - 1 of the log, and compares their hashes. */
VD_MUST_USE vd_status vd_check_states(const vd_check *check, uint32_t first, uint32_t count,
                                      vd_err *err);
/* Finds which state of the log the file at `path` contains, whatever its name is. */
VD_MUST_USE vd_status vd_check_file(const vd_check *check, const char *path, uint32_t *index,
                                    vd_err *err);
/* Runs all these checks, quick ones first. */
VD_MUST_USE vd_status vd_check_run(const vd_check *check, vd_err *err);

#endif
