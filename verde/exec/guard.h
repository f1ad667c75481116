/* `verde run --guard`: products are checked while a run computes, so that what a processor or its
 * memory got wrong is found, computed again and told before anything is committed. Integer sums of
 * fixed products are checked by repops/guard.h. Of others a random 1/64 of the output's rows is
 * computed again by other kernels. */
#ifndef VD_GUARD_H
#define VD_GUARD_H

#include <stdatomic.h>

#include "repops/guard.h"
#include "verde/exec/exec.h"
#include "verde/exec/fuse.h"

enum {
    VD_GUARD_SHARE = 64,       /* rows of which one is computed again */
    VD_GUARD_FOUND_MAX = 1024, /* findings that a run states; later ones are told alone */
};

typedef enum { VD_GUARD_SUMS = 1, VD_GUARD_PACKED = 2, VD_GUARD_ROWS = 3 } vd_guard_kind;
const char *vd_guard_kind_name(vd_guard_kind kind); /* "sums", "packed", "rows"; NULL: none */

/* What did not fit: the first place of a block of the product, and how many. */
typedef struct vd_guard_finding {
    int64_t step; /* -1: initialisation */
    char node[96];
    int32_t kind; /* vd_guard_kind */
    bool again;   /* it did not fit the second time either: the run ended there */
    int32_t machine;
    int64_t product, chunk; /* chunk -1: of the product's result */
    int64_t row, col;       /* -1: not known */
    int64_t rows, cols;
} vd_guard_finding;

typedef struct vd_guard {
    void (*tell)(void *user, const vd_guard_finding *finding); /* or NULL */
    void *user;
    /* For tests, as in repops/guard.h; NULL: none. */
    void (*alter)(void *user, ro_guard_place place, void *data, size_t size);
    uint64_t seed;
    bool plants; /* exec->fault is VD_FAULT_SUM: a bit of a sum is to be flipped */
    /* The rest is guard.c's and guard_rows.c's. */
    atomic_bool flips;  /* in the product that runs */
    ro_ctx *ro, *other; /* other: with other kernels, ro itself on a device; NULL: there are none */
    uint64_t draws, rows;
    vd_guard_finding at; /* whose node runs */
    vd_guard_finding *found;
    uint32_t found_count;
    int64_t found_all; /* told */
} vd_guard;

/* Sets `tell`, `user`, `alter` and `seed` (0: a random one) before. */
VD_MUST_USE vd_status vd_guard_open(vd_guard *guard, ro_ctx *ro, vd_err *err);
void vd_guard_close(vd_guard *guard);
/* Forgets the first `count` findings, which somebody has taken. */
void vd_guard_forget(vd_guard *guard, uint32_t count);

void vd_guard_note(vd_guard *guard, const vd_guard_finding *finding); /* tells and keeps it */

/* For the executor, before a node or the first one of a group runs. */
void vd_guard_begin(vd_guard *guard, int64_t step, const char *node, bool flips);
/* After that: checks rows if sums are not checked. `guard` may be NULL. */
VD_MUST_USE vd_status vd_guard_node(vd_guard *guard, const ro_call *call, const void *const *in,
                                    void *out, vd_err *err);
VD_MUST_USE vd_status vd_guard_group(vd_guard *guard, const vd_fused *group,
                                     const vd_fused_memory *at, vd_kept_weights *kept, vd_err *err);

#endif
