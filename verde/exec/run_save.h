/* Writing the states of a run. Private to verde/exec. */
#ifndef VD_RUN_SAVE_H
#define VD_RUN_SAVE_H

#include <pthread.h>

#include "verde/exec/run.h"

/* Writes a state and gives its commitment. `ro` as in vd_state_hash. */
VD_MUST_USE vd_status vd_save_state(const vd_run_options *options, ro_ctx *ro,
                                    const vd_hash *program_hash, const vd_state *state,
                                    vd_hash *commitment, vd_err *err);

/* The same in a thread, while the next step runs. Stays where it is; all zeros: none is written. */
typedef struct {
    bool busy;
    vd_state state; /* stands, and is read, until vd_saving_free */
    vd_hash commitment;
    /* The thread's: */
    pthread_t thread;
    const vd_run_options *options;
    const vd_hash *program_hash;
    vd_status status;
    vd_err err;
} vd_saving;

/* Takes the state, which is in host memory, but for its step. */
VD_MUST_USE vd_status vd_saving_start(vd_saving *saving, const vd_run_options *options,
                                      const vd_hash *program_hash, vd_state *state, vd_err *err);
/* Waits until it is written. */
VD_MUST_USE vd_status vd_saving_end(vd_saving *saving, vd_err *err);
/* Waits, whatever became of it, and frees the state. */
void vd_saving_free(vd_saving *saving);

#endif
