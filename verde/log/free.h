/* Free kernels (repops/free.h) as a run's kernels: how nodes are rounded, what kernels report. */
#ifndef VD_FREE_H
#define VD_FREE_H

#include "repops/free.h"
#include "verde/exec/exec.h"
#include "verde/log/log.h"

/* A free node that ran. All is borrowed, in host memory, and valid during the call. */
typedef struct {
    int64_t step; /* -1: initialisation */
    uint32_t node;
    const ro_shape *shape;
    float *output;
    const ro_rounding *rounding;
    const ro_free_report *report;
    const ro_call *call;
    const void *const *input; /* unchanged if vd_free.keep_inputs is set */
    ro_ctx *ro;               /* free for other work */
} vd_free_node;

typedef struct {
    const ro_profile *profile;
    ro_free_mode mode;
    int32_t bits;            /* bits to round to; outputs that become state keep 32 */
    const double *threshold; /* for SYMBOLS: RO_OP_END thresholds, one per operator */
    /* For REPLAY and FOLLOW: sets the calls or symbols of a node before it runs. */
    vd_status (*follow)(void *user, int64_t step, uint32_t node, ro_rounding *rounding,
                        vd_err *err);
    /* Called after each free node; may be NULL. */
    vd_status (*ran)(void *user, const vd_free_node *node, vd_err *err);
    void *user;
    bool keep_inputs; /* computes nothing in place, because `ran` reads the inputs */
} vd_free;

/* Kernels of a run; {0} before the first use. It must not move. */
typedef struct {
    vd_free free;
    vd_kernels kernels;
    uint8_t *symbol; /* for SYMBOLS, of the current node; owned */
    size_t symbols;
} vd_free_kernels;

/* Returns kernels for vd_exec.kernels; copies `free`. It cannot fail. */
const vd_kernels *vd_free_kernels_open(vd_free_kernels *kernels, const vd_free *free);
void vd_free_kernels_close(vd_free_kernels *kernels);

/* The values that the reference allows for an element of a node. */
vd_possible vd_free_possible(const vd_free_node *node, int64_t element);

#endif
