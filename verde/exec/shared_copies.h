/* Copies of data on a device, for programs that run one after the other and share some of it: the
 * weights of a job's prompts or batches are copied once. */
#ifndef VD_SHARED_COPIES_H
#define VD_SHARED_COPIES_H

#include "verde/exec/exec.h"

/* Empty to begin with. */
typedef struct {
    ro_ctx *ro; /* where they are */
    uint32_t count;
    const void **data; /* what they are copies of: these must stay as they are meanwhile */
    size_t *size;
    void **placed; /* NULL: there is none of this one */
} vd_shared_copies;

/* Before vd_exec_drop: takes what vd_exec_place made of the data tensors from number `own` on. */
void vd_shared_take(vd_shared_copies *shared, vd_exec *exec, uint32_t own);
/* Before vd_exec_place of the next program: gives it those that it has, too. */
void vd_shared_give(vd_shared_copies *shared, vd_exec *exec);
void vd_shared_free(vd_shared_copies *shared); /* harmless twice */

#endif
