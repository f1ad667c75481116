/* `verde run --guard`: checks products while a run computes, so that errors of a processor or its
 * memory are found, reported and repaired by computing again, before anything is committed. Integer
 * sums of fixed products are checked by repops/guard.h. Of other products a random 1/64 of the
 * output's rows is computed again by other kernels. */
#ifndef VD_GUARD_H
#define VD_GUARD_H

#include <stdatomic.h>

#include "repops/guard.h"
#include "verde/exec/exec.h"
#include "verde/exec/fuse.h"

enum {
    VD_GUARD_SHARE = 64,       /* one of this many rows is computed again */
    VD_GUARD_FOUND_MAX = 1024, /* findings that run.json lists; later ones are only reported */
};

typedef enum { VD_GUARD_SUMS = 1, VD_GUARD_PACKED = 2, VD_GUARD_ROWS = 3 } vd_guard_kind;
const char *
vd_guard_kind_name(vd_guard_kind kind); /* "sums", "packed" or "rows"; NULL: unknown kind */

/* A finding: values that differ, as the first position in a block of the product, and its size. */
typedef struct vd_guard_finding {
    int64_t step; /* -1: initialisation */
    char node[96];
    int32_t kind; /* vd_guard_kind */
    bool again;   /* it differed again when computed again, and ended the run */
    int32_t machine;
    int64_t product, chunk; /* chunk -1: found in the product's result */
    int64_t row, col;       /* -1: unknown */
    int64_t rows, cols;
} vd_guard_finding;

typedef struct vd_guard {
    void (*tell)(void *user, const vd_guard_finding *finding); /* may be NULL */
    void *user;
    /* Alters data, for tests, as in repops/guard.h; may be NULL. */
    void (*alter)(void *user, ro_guard_place place, void *data, size_t size);
    uint64_t seed;
    bool plants; /* exec->fault is VD_FAULT_SUM: a bit of a sum will be flipped */
    /* Private to guard.c and guard_rows.c: */
    atomic_bool flips;  /* the current product's sum will be flipped */
    ro_ctx *ro, *other; /* has other kernels: `ro` on a device; NULL: there are none */
    uint64_t draws, rows;
    vd_guard_finding at; /* has step and name of the current node */
    vd_guard_finding *found;
    uint32_t found_count;
    int64_t found_all; /* number of findings reported */
} vd_guard;

/* Opens a guard. `tell`, `user`, `alter` and `seed` (0: random) are set before. */
VD_MUST_USE vd_status vd_guard_open(vd_guard *guard, ro_ctx *ro, vd_err *err);
void vd_guard_close(vd_guard *guard);
/* Forgets the first `count` findings, which the caller has taken. */
void vd_guard_forget(vd_guard *guard, uint32_t count);

void vd_guard_note(vd_guard *guard, const vd_guard_finding *finding); /* reports and keeps it */

/* Called by the executor before a node runs, or the first one of a group. */
void vd_guard_begin(vd_guard *guard, int64_t step, const char *node, bool flips);
/* Called after it ran: checks rows if sums are not checked. `guard` may be NULL. */
VD_MUST_USE vd_status vd_guard_node(vd_guard *guard, const ro_call *call, const void *const *in,
                                    void *out, vd_err *err);
VD_MUST_USE vd_status vd_guard_group(vd_guard *guard, const vd_fused *group,
                                     const vd_fused_memory *at, vd_kept_weights *kept, vd_err *err);

#endif
