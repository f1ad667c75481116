/* One execution of one graph. Private to executor.c, executor_groups.c, executor_part.c
 * and alias.c. */
#ifndef VD_EXECUTOR_H
#define VD_EXECUTOR_H

#include "verde/exec/fuse.h"
#include "verde/exec/memory.h"
#include "verde/exec/source.h"

/* Values below `sources` are borrowed, unless the state is consumed. */
typedef struct {
    const vd_exec *exec;
    const vd_program *program; /* as executed: a fault may have changed it */
    const vd_graph *graph;
    int64_t step;
    void **value; /* of each value number; NULL once freed */
    vd_plan plan;
    const vd_exec_part *part; /* of a step; NULL: all of it is run */
    const vd_exec_part *kept; /* whose leaves this process keeps; NULL: all */
    bool *needed;             /* of each node of an initialisation: leads to such a leaf; or NULL */
    uint32_t *uses; /* of the plan: how many reads are left, plus one for a value that the next
                       state takes; of what shares its memory, too */
    uint32_t *root; /* of each value: whose memory it is; NULL: each its own */
    uint32_t sources, count;
    bool consume;  /* state tensors are freed after their last use */
    bool in_place; /* and may be overwritten by what is computed from them: nobody watches */
    int32_t step_word;
    void *placed_step; /* the same where the context computes; NULL: step_word itself */
    ro_ctx *memory;    /* of tensors; NULL: host memory */
    ro_shape shapes[RO_MAX_INPUTS];
    const void *input[RO_MAX_INPUTS];
    vd_kept_operand *operand; /* operands that stay packed; owned */
    uint32_t operand_count;
    uint32_t *operand_of; /* of both operands of each stored node: VD_NO_GROUP or which; owned.
                             NULL: there are none */
} vd_execution;

/* ---- executor.c ---- */

/* Whether the execution frees the value's tensor. */
bool vd_owned(const vd_execution *x, uint32_t value);
/* Counts a read; frees the tensor after the last one if it is owned. */
void vd_release(vd_execution *x, uint32_t value);
/* Frees a tensor that nobody reads. */
void vd_drop_unread(vd_execution *x, uint32_t value);

/* ---- alias.c ---- */

/* Finds which values share memory, where nobody watches nodes: after uses are counted. */
VD_MUST_USE vd_status vd_alias_plan(vd_execution *x, vd_err *err);
/* The value whose memory this one's is: mostly itself. */
uint32_t vd_root(const vd_execution *x, uint32_t value);
/* False: the node must run. */
bool vd_alias_bind(vd_execution *x, uint32_t node);
/* Whether the value's memory, all of which has this size, is read for the last time; and takes it
 * then. */
bool vd_may_take(const vd_execution *x, uint32_t value, size_t size);
void *vd_take_memory(vd_execution *x, uint32_t value);

/* ---- executor_groups.c ---- */

/* Runs group `first`, whose first member's turn has come, and with a step of a parameter those that
 * follow it. `node` is the node whose turn it is. */
VD_MUST_USE vd_status vd_run_group(vd_execution *x, uint32_t first, uint32_t node,
                                   uint32_t iteration, vd_err *err);

/* ---- executor_kept.c ---- */

/* Finds the operands of fixed products that several products of the graph read alike. */
VD_MUST_USE vd_status vd_kept_operands_plan(vd_execution *x, vd_err *err);
void vd_kept_operands_free(vd_execution *x);
/* A product's x and w, where one is packed for several reads; else NULL. False: neither is. */
bool vd_kept_operands_bind(const vd_execution *x, uint32_t node, vd_kept_operand *of[2]);
/* Runs a product by itself that has one; x->input is bound. */
VD_MUST_USE vd_status vd_run_kept(vd_execution *x, const ro_call *call,
                                  vd_kept_operand *const operand[2], void *output, vd_err *err);

/* ---- executor_part.c ---- */

bool vd_part_runs(const vd_execution *x, uint32_t node);
bool vd_part_waits(const vd_execution *x, uint32_t node);
bool vd_part_runs_group(const vd_execution *x, uint32_t group, uint32_t iteration);
bool vd_part_keeps(const vd_execution *x, uint32_t leaf);
/* Makes `uses` those of the part; nothing where there is none. */
VD_MUST_USE vd_status vd_part_plan(vd_execution *x, vd_err *err);
/* Before the value is read: it is fetched if it is another process's. */
VD_MUST_USE vd_status vd_part_fetch(vd_execution *x, uint32_t value, vd_err *err);
/* After the value was made, before it may be freed. */
VD_MUST_USE vd_status vd_part_made(vd_execution *x, uint32_t value, vd_err *err);

/* ---- executor_numbers.c ---- */

VD_MUST_USE vd_status vd_read_number(const vd_execution *x, const void *from, float *to, bool *has,
                                     vd_err *err);
/* After a node that is in no group ran: what exec->numbers wants of it. */
VD_MUST_USE vd_status vd_take_numbers(const vd_execution *x, uint32_t node, vd_err *err);

#endif
