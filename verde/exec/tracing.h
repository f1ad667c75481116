/* Parts of making a trace: commitments of values, by whichever process ran their nodes. For
 * verde/exec, and for teams that share a step. */
#ifndef VD_TRACING_H
#define VD_TRACING_H

#include "verde/exec/exec.h"

typedef struct {
    const vd_exec *exec; /* borrowed */
    const vd_state *before;
    const vd_program *program; /* as executed, perhaps with a fault */
    const vd_graph *graph;
    uint32_t sources;
    vd_hash *value; /* commitment of each value; owned */
    vd_program changed;
} vd_tracing;

/* Opens the trace of the step after `before`, or of initialisation (NULL); borrows both. Sets
 * commitments of data and of the step's number. May be closed after a failure too. */
VD_MUST_USE vd_status vd_tracing_open(vd_tracing *tracing, const vd_exec *exec,
                                      const vd_state *before, vd_err *err);
void vd_tracing_close(vd_tracing *tracing);
/* Runs the nodes, or those of exec->part, and hashes their outputs. */
VD_MUST_USE vd_status vd_tracing_run(vd_tracing *tracing, vd_err *err);
/* Makes all records in order. All values must be set, with the state's leaves, which come first. */
VD_MUST_USE vd_status vd_tracing_records(const vd_tracing *tracing, vd_records *out, vd_err *err);

#endif
