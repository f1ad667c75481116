/* Device copies of data that consecutive programs share, such as the weights of a job's prompts or
 * batches, which are copied only once. */
#ifndef VD_SHARED_COPIES_H
#define VD_SHARED_COPIES_H

#include "verde/exec/exec.h"

/* Starts as all zeros. */
typedef struct {
    ro_ctx *ro; /* device context */
    uint32_t count;
    const void **data; /* originals of the copies; they must not change meanwhile */
    size_t *size;
    void **placed; /* NULL: there is no copy of this tensor */
} vd_shared_copies;

/* Takes copies that vd_exec_place made of data tensors from `own` on; before vd_exec_drop. */
void vd_shared_take(vd_shared_copies *shared, vd_exec *exec, uint32_t own);
/* Gives the copies to the next program where its data is the same; called before vd_exec_place. */
void vd_shared_give(vd_shared_copies *shared, vd_exec *exec);
void vd_shared_free(vd_shared_copies *shared); /* may be called twice */

#endif
