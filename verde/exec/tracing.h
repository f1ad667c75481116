/* What the trace of a step is made of: the commitments of its values, by whoever ran their nodes.
 * For verde/exec, and for teams that share a step. */
#ifndef VD_TRACING_H
#define VD_TRACING_H

#include "verde/exec/exec.h"

typedef struct {
    const vd_exec *exec; /* borrowed */
    const vd_state *before;
    const vd_program *program; /* as executed */
    const vd_graph *graph;
    uint32_t sources;
    vd_hash *value; /* the commitment of each value; owned */
    vd_program changed;
} vd_tracing;

/* Of the step after `before`, or of initialisation (NULL); both are borrowed. Knows the data and
 * the step's number. May be closed after a failure too. */
VD_MUST_USE vd_status vd_tracing_open(vd_tracing *tracing, const vd_exec *exec,
                                      const vd_state *before, vd_err *err);
void vd_tracing_close(vd_tracing *tracing);
/* Runs the nodes, those of exec->part if there is one, and hashes what they put out. */
VD_MUST_USE vd_status vd_tracing_run(vd_tracing *tracing, vd_err *err);
/* All records in order. Every value is known: leaves of the state are the first. */
VD_MUST_USE vd_status vd_tracing_records(const vd_tracing *tracing, vd_records *out, vd_err *err);

#endif
