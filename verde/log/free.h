/* Free kernels (repops/free.h) as the kernels of a run: how each free node of a step is rounded,
 * and what its kernel reports. */
#ifndef VD_FREE_H
#define VD_FREE_H

#include "repops/free.h"
#include "verde/exec/exec.h"
#include "verde/log/log.h"

/* A free node that ran. Borrowed, in host memory; stands until the call returns. */
typedef struct {
    int64_t step; /* -1: initialisation */
    uint32_t node;
    const ro_shape *shape;
    float *output;
    const ro_rounding *rounding;
    const ro_free_report *report;
    const ro_call *call;
    const void *const *input; /* as the node read them if vd_free.keep_inputs is set */
    ro_ctx *ro;               /* free for other work */
} vd_free_node;

typedef struct {
    const ro_profile *profile;
    ro_free_mode mode;
    int32_t bits;            /* to round to; what a state takes keeps 32 */
    const double *threshold; /* SYMBOLS: of each operator, RO_OP_END of them */
    /* REPLAY and FOLLOW: sets the calls or symbols of a node before it runs. */
    vd_status (*follow)(void *user, int64_t step, uint32_t node, ro_rounding *rounding,
                        vd_err *err);
    /* After each free node; may be NULL. */
    vd_status (*ran)(void *user, const vd_free_node *node, vd_err *err);
    void *user;
    bool keep_inputs; /* nothing is computed in place: `ran` reads the inputs */
} vd_free;

/* What runs them; {0} before the first use. Stays where it is. */
typedef struct {
    vd_free free;
    vd_kernels kernels;
    uint8_t *symbol; /* SYMBOLS: of the node that runs; owned */
    size_t symbols;
} vd_free_kernels;

/* For vd_exec.kernels; takes a copy of `free`. Nothing can fail here. */
const vd_kernels *vd_free_kernels_open(vd_free_kernels *kernels, const vd_free *free);
void vd_free_kernels_close(vd_free_kernels *kernels);

/* The values that the reference allows for an element of a node. */
vd_possible vd_free_possible(const vd_free_node *node, int64_t element);

#endif
