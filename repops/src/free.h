/* Free kernels, as ro_free_run sees them: for each instruction set and type (binary32 or binary64)
 * there is a function that finds the kernel of an operator. */
#ifndef REPOPS_SRC_FREE_H
#define REPOPS_SRC_FREE_H

#include "repops/src/backend.h"
#include "repops/src/emit.h"

typedef struct {
    ro_ctx *ctx;
    const ro_call *call;
    const void *const *in;
    const ro_profile *profile;
    ro_emitter *emitter; /* one for each worker of the context's pool */
} ro_free_job;

/* A kernel is either a function of a range of items, which several threads call and which hands all
 * results of these items to ro_emit, or a function `run` that distributes its work itself
 * (ro_pool_for). The output may be an input where ro_op_in_place says so: a kernel reads the input
 * elements at a place before it emits the result there. */
typedef struct {
    void (*range)(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t);
    int64_t (*items)(const ro_call *call); /* items of `range`; NULL: one per output element */
    int64_t weight; /* of `range`: the work of an element, in multiples of a sum's; 0: once */
    ro_status (*run)(const ro_free_job *job);
} ro_free_kernel;

/* Runs the job on a device, in the device's order, and waits for it. */
ro_status ro_free_on_device(const ro_free_job *job, ro_device *device);

/* Returns NULL if there is no free kernel for the operator. */
typedef const ro_free_kernel *ro_free_find(int op);

/* Returns the kernels of a backend's instruction set, which compute in binary32 if f32 is nonzero,
 * else in binary64; NULL if this build has none. */
ro_free_find *ro_free_kernels(const char *backend, int f32);

#endif
