/* What stays from step to step: weights of products and convolutions that are packed
 * (repops/packed.h) or transposed, for as long as the data that they are, and the plan of a step.
 * Other operands stay packed within a step (executor_kept.c). Private to verde/exec. */
#ifndef VD_KEPT_WEIGHTS_H
#define VD_KEPT_WEIGHTS_H

#include "verde/exec/fuse.h"

/* Bytes that they may take in a process with a limit (UINT64_MAX: without one): a quarter of its
 * memory, and of a limit no more than the program leaves. */
uint64_t vd_kept_weights_room(const vd_program *program, uint64_t limit);

/* In the memory of `memory`, a context on a device, or host memory, if it is NULL. Of what the
 * device has left they take a quarter at most, as of a limit. NULL: out of memory. */
vd_kept_weights *vd_kept_weights_create(const vd_program *program, ro_ctx *memory);
void vd_kept_weights_destroy(vd_kept_weights *kept); /* accepts NULL */
/* Has all weights packed anew when they are read next, as what was packed may be damaged. Only
 * between products, by the thread that runs them; accepts NULL. */
void vd_kept_weights_forget(vd_kept_weights *kept);
/* Frees what is packed of an operand, if anything is. */
void vd_kept_operand_drop(vd_kept_operand *operand, vd_kept_weights *kept);
/* Bytes that are packed now; how often something was packed to stay. */
size_t vd_kept_weights_bytes(const vd_kept_weights *kept);
uint64_t vd_kept_weights_packings(const vd_kept_weights *kept);

/* The plan of a graph of `values` values, as it was put, and *root, which stay the keeper's. False:
 * there is none. *status: whether there was memory. */
bool vd_kept_plan(const vd_kept_weights *kept, const vd_graph *graph, vd_fuses fuses, vd_plan *plan,
                  uint32_t **root, vd_status *status, vd_err *err);
/* Keeps a plan that nothing has run by, and root, both of which become the keeper's. Does nothing
 * where one is kept, or without memory. */
void vd_kept_plan_put(vd_kept_weights *kept, const vd_graph *graph, vd_fuses fuses, uint32_t values,
                      vd_plan *plan, uint32_t *root);

/* Runs a linear layer. Weights that are data are packed the first time that they are read, if there
 * is room, and operands for as long as further reads are left; `kept` may be NULL. */
VD_MUST_USE vd_status vd_linear_run(const vd_fused *group, const vd_fused_memory *at, ro_ctx *ro,
                                    vd_kept_weights *kept, vd_err *err);
/* The same of a convolution. */
VD_MUST_USE vd_status vd_conv_run(const vd_fused *group, const vd_fused_memory *at, ro_ctx *ro,
                                  vd_kept_weights *kept, vd_err *err);

#endif
