/* What is kept between steps: weights of products and convolutions, packed (repops/packed.h) or
 * transposed, as long as their data exists; and the plan of a step. Other operands stay packed
 * within a step (executor_kept.c). Private to verde/exec. */
#ifndef VD_KEPT_WEIGHTS_H
#define VD_KEPT_WEIGHTS_H

#include "verde/exec/fuse.h"

/* Bytes that kept weights may take in a process with a memory limit (UINT64_MAX: none): a quarter
 * of the machine's memory, or of the limit if that is less, and then no more than the program
 * leaves of it. */
uint64_t vd_kept_weights_room(const vd_program *program, uint64_t limit);

/* Creates a keeper in the memory of `memory`, a device's context, or in host memory if it is NULL.
 * On a device it takes at most a quarter of what is free, and what the program leaves of that.
 * NULL: out of memory. */
vd_kept_weights *vd_kept_weights_create(const vd_program *program, ro_ctx *memory);
void vd_kept_weights_destroy(vd_kept_weights *kept); /* accepts NULL */
/* Drops all packed weights, as they may be damaged; they are packed anew when next read. Only the
 * thread that runs products may call it, between two products. Accepts NULL. */
void vd_kept_weights_forget(vd_kept_weights *kept);
/* Frees an operand's packed form, if there is one. */
void vd_kept_operand_drop(vd_kept_operand *operand, vd_kept_weights *kept);
/* The bytes packed now, and how often something was packed to be kept. */
size_t vd_kept_weights_bytes(const vd_kept_weights *kept);
uint64_t vd_kept_weights_packings(const vd_kept_weights *kept);

/* Gets the plan for a graph, and *root, both as they were put; the keeper owns them. False: none is
 * kept. *status: whether memory sufficed. */
bool vd_kept_plan(const vd_kept_weights *kept, const vd_graph *graph, vd_fuses fuses, vd_plan *plan,
                  uint32_t **root, vd_status *status, vd_err *err);
/* Keeps an unused plan of a graph with `values` values, and `root`; the keeper owns both then. Does
 * nothing if it has a plan, or without memory. */
void vd_kept_plan_put(vd_kept_weights *kept, const vd_graph *graph, vd_fuses fuses, uint32_t values,
                      vd_plan *plan, uint32_t *root);

/* Runs a linear layer. Weights that are data are packed at their first read, if there is room, and
 * operands while more reads follow; `kept` may be NULL. */
VD_MUST_USE vd_status vd_linear_run(const vd_fused *group, const vd_fused_memory *at, ro_ctx *ro,
                                    vd_kept_weights *kept, vd_err *err);
/* Runs a convolution in the same way. */
VD_MUST_USE vd_status vd_conv_run(const vd_fused *group, const vd_fused_memory *at, ro_ctx *ro,
                                  vd_kept_weights *kept, vd_err *err);

#endif
