/* The parts of `verde inspect` that execute a step of a run again. */
#ifndef VD_INSPECT_STEP_H
#define VD_INSPECT_STEP_H

#include "verde/exec/source.h"
#include "verde/load/load.h"

/* Prints the records of a step, -1 for initialisation, with each node's name and operator. */
VD_MUST_USE vd_status vd_print_trace(int64_t step, const vd_loaded *loaded, const vd_source *source,
                                     bool json, vd_err *err);
/* Prints a leaf of a tensor with its proof, which is checked. `name` is STEP:VALUE:LEAF as the user
 * wrote it; VD_ERR_USAGE: it names no leaf. */
VD_MUST_USE vd_status vd_print_proof(const char *name, const vd_loaded *loaded,
                                     const vd_source *source, bool json, vd_err *err);

#endif
