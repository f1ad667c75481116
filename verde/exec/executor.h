/* One execution of a graph. Private to executor*.c and alias.c. */
#ifndef VD_EXECUTOR_H
#define VD_EXECUTOR_H

#include "verde/exec/fuse.h"
#include "verde/exec/memory.h"
#include "verde/exec/source.h"

/* Values below `sources` are borrowed, except the tensors of a consumed state. */
typedef struct {
    const vd_exec *exec;
    const vd_program *program; /* as executed; a fault may have changed it */
    const vd_graph *graph;
    int64_t step;
    void **value; /* of each value; NULL after it was freed */
    vd_plan plan;
    const vd_exec_part *part; /* of a step; NULL: all of it runs */
    const vd_exec_part *kept; /* decides which leaves this process keeps; NULL: all */
    bool *needed;   /* of each node of an initialisation: such a leaf depends on it; or NULL */
    uint32_t *uses; /* reads left of the value and its sharers, plus one for the next state */
    uint32_t *root; /* of each value: the value whose memory it uses; NULL: its own */
    uint32_t sources, count;
    bool consume;  /* state tensors are freed after their last use */
    bool in_place; /* tensors may be overwritten by what is computed from them: nobody watches */
    int32_t step_word;
    void *placed_step; /* the step where the context computes; NULL: step_word itself */
    ro_ctx *memory;    /* context whose memory has the tensors; NULL: host memory */
    ro_shape shapes[RO_MAX_INPUTS];
    const void *input[RO_MAX_INPUTS];
    vd_kept_operand *operand; /* packed operands; owned */
    uint32_t operand_count;
    uint32_t *operand_of; /* two per stored node: an operand or VD_NO_GROUP; NULL: none; owned */
} vd_execution;

/* ---- executor.c ---- */

/* Returns whether the execution frees the value's tensor. */
bool vd_owned(const vd_execution *x, uint32_t value);
/* Counts a read; frees the tensor after the last one if it is owned. */
void vd_release(vd_execution *x, uint32_t value);
/* Frees a tensor that nobody reads. */
void vd_drop_unread(vd_execution *x, uint32_t value);

/* ---- alias.c ---- */

/* Finds the values that share memory, if nobody observes nodes. Call it after uses are counted. */
VD_MUST_USE vd_status vd_alias_plan(vd_execution *x, vd_err *err);
/* The value whose memory a value uses, mostly its own. */
uint32_t vd_root(const vd_execution *x, uint32_t value);
/* Lets a node share its input's memory. False: the node must run. */
bool vd_alias_bind(vd_execution *x, uint32_t node);
/* Returns whether a value's memory has exactly this size and is read for the last time, so that its
 * reader may take it over; vd_take_memory does so. */
bool vd_may_take(const vd_execution *x, uint32_t value, size_t size);
void *vd_take_memory(vd_execution *x, uint32_t value);

/* ---- executor_groups.c ---- */

/* Runs group `first`, whose turn comes with its member `node`. If it is a parameter's step, later
 * ones that are ready run with it. */
VD_MUST_USE vd_status vd_run_group(vd_execution *x, uint32_t first, uint32_t node,
                                   uint32_t iteration, vd_err *err);

/* ---- executor_kept.c ---- */

/* Finds operands of fixed products that several products read in the same way. */
VD_MUST_USE vd_status vd_kept_operands_plan(vd_execution *x, vd_err *err);
void vd_kept_operands_free(vd_execution *x);
/* Gets the packed operands x and w of a product, NULL where it is not packed. False: none is. */
bool vd_kept_operands_bind(const vd_execution *x, uint32_t node, vd_kept_operand *of[2]);
/* Runs such a product by itself; x->input has its inputs. */
VD_MUST_USE vd_status vd_run_kept(vd_execution *x, const ro_call *call,
                                  vd_kept_operand *const operand[2], void *output, vd_err *err);

/* ---- executor_part.c ---- */

bool vd_part_runs(const vd_execution *x, uint32_t node);
bool vd_part_waits(const vd_execution *x, uint32_t node);
bool vd_part_runs_group(const vd_execution *x, uint32_t group, uint32_t iteration);
bool vd_part_keeps(const vd_execution *x, uint32_t leaf);
/* Recounts `uses` for the part, if there is one. */
VD_MUST_USE vd_status vd_part_plan(vd_execution *x, vd_err *err);
/* Fetches a value from another process, if necessary, before it is read. */
VD_MUST_USE vd_status vd_part_fetch(vd_execution *x, uint32_t value, vd_err *err);
/* Sends a value to others that read it, before it may be freed. */
VD_MUST_USE vd_status vd_part_made(vd_execution *x, uint32_t value, vd_err *err);

/* ---- executor_numbers.c ---- */

VD_MUST_USE vd_status vd_read_number(const vd_execution *x, const void *from, float *to, bool *has,
                                     vd_err *err);
/* After an ungrouped node ran, takes from it what exec->numbers reports. */
VD_MUST_USE vd_status vd_take_numbers(const vd_execution *x, uint32_t node, vd_err *err);

#endif
