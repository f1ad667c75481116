/* Free kernels, as ro_free_run sees them: for each instruction set and type a function from
 * operators to kernels. */
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

/* One of: a function of a range of items, which is called from several threads and hands all
 * results of these items to ro_emit; or a function that plans for itself (ro_pool_for). The output
 * may be an input where ro_op_in_place says so: an element is read before results of its place are
 * emitted. */
typedef struct {
    void (*range)(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t);
    int64_t (*items)(const ro_call *call); /* of `range`; NULL: the elements of the output */
    int64_t weight; /* of `range`: how many times the work of a sum an element is; 0: once */
    ro_status (*run)(const ro_free_job *job);
} ro_free_kernel;

/* Runs the job on a device, in the device's order. Waits. */
ro_status ro_free_on_device(const ro_free_job *job, ro_device *device);

/* NULL: no free kernel for it. */
typedef const ro_free_kernel *ro_free_find(int op);

/* The kernels of a backend's instruction set that compute in binary32, or else in binary64; NULL:
 * this build has none. */
ro_free_find *ro_free_kernels(const char *backend, int f32);

#endif
