/* Saving the states of a run. Private to verde/exec. */
#ifndef VD_RUN_SAVE_H
#define VD_RUN_SAVE_H

#include <pthread.h>

#include "verde/exec/run.h"

/* Writes a state, and sets its commitment. `ro` is as in vd_state_hash. */
VD_MUST_USE vd_status vd_save_state(const vd_run_options *options, ro_ctx *ro,
                                    const vd_hash *program_hash, const vd_state *state,
                                    vd_hash *commitment, vd_err *err);

/* Saving in a thread, during the next step. Must not move; all zeros: nothing is being saved. */
typedef struct {
    bool busy;
    vd_state state; /* valid and only read until vd_saving_free */
    vd_hash commitment;
    /* Used by the thread: */
    pthread_t thread;
    const vd_run_options *options;
    const vd_hash *program_hash;
    vd_status status;
    vd_err err;
} vd_saving;

/* Takes the state's tensors, which are in host memory, and leaves its step. */
VD_MUST_USE vd_status vd_saving_start(vd_saving *saving, const vd_run_options *options,
                                      const vd_hash *program_hash, vd_state *state, vd_err *err);
/* Waits until the state is written. */
VD_MUST_USE vd_status vd_saving_end(vd_saving *saving, vd_err *err);
/* Waits, ignores errors, and frees the state. */
void vd_saving_free(vd_saving *saving);

#endif
