/* Private to verde/exec/batch*.c. */
#ifndef VD_BATCH_INTERNAL_H
#define VD_BATCH_INTERNAL_H

#include "verde/exec/batch.h"
#include "verde/exec/fuse.h"
#include "verde/exec/memory.h"

/* ---- batch_ops.c: operators that can take many rows ---- */

/* How an input of a call over R rows is given. */
typedef enum {
    VD_INPUT_NONE,     /* the operator cannot take many rows */
    VD_INPUT_ROWS,     /* R rows, one after the other */
    VD_INPUT_SHARED,   /* one tensor for all rows */
    VD_INPUT_REPEATED, /* R rows, or one row for all */
    VD_INPUT_POSITION, /* R positions, as `rope` takes them */
} vd_batch_input;
/* The kind of input i of an operator. */
vd_batch_input vd_batch_input_of(int op, int i);
/* The attribute for the operator's axis, which must not be the axis of rows; -1: none. */
int vd_batch_axis_of(int op);

/* ---- batch_plan.c: how a pass runs a step's nodes ---- */

typedef enum {
    VD_HELD_SHARED,  /* one for all programs: depends on shared data only */
    VD_HELD_PROGRAM, /* one per program, computed once */
    VD_HELD_STATE,   /* a leaf of the program's state, or what put_rows made of it in place */
    VD_HELD_ROWS,    /* one per row of a pass */
} vd_held;

typedef struct {
    vd_held held;
    uint32_t leaf; /* VD_HELD_STATE */
    uint32_t last; /* last unit that reads it; UINT32_MAX: kept until the pass ends */
    size_t size;   /* bytes per row or program */
    bool every;    /* VD_HELD_ROWS: for all rows; else for rows that make a token */
} vd_batch_value;

typedef enum {
    VD_UNIT_TOGETHER,  /* a node, in one call for all rows */
    VD_UNIT_EACH,      /* a node, row by row */
    VD_UNIT_PUT,       /* put_rows into a leaf in place, row by row */
    VD_UNIT_GROUP,     /* a group (linear layer, norm, rotary positions) for all rows */
    VD_UNIT_ATTENTION, /* a group of attention, program by program */
} vd_unit_kind;

typedef struct {
    vd_unit_kind kind;
    uint32_t index; /* of the node, or of the group in the plan */
    bool every;     /* runs for all rows; else for rows that make a token */
} vd_unit;

typedef struct {
    vd_plan plan; /* groups of the step's graph */
    uint32_t sources, count;
    vd_batch_value *value; /* of each value of the step's graph; owned */
    vd_unit *unit;         /* in order; owned */
    uint32_t unit_count;
    uint32_t *once; /* nodes whose values are VD_HELD_SHARED or _PROGRAM, in order; owned */
    uint32_t once_count;
    bool *cache;             /* of each leaf: whether attention reads it; owned */
    uint32_t token, stopped; /* indices of leaves; UINT32_MAX for `stopped`: there is none */
    uint32_t choice;         /* node of vd_choosing_node */
    uint32_t own_data;
} vd_batch_plan;

VD_MUST_USE vd_status vd_batch_plan_create(const vd_program *program, uint32_t own_data,
                                           vd_batch_plan *out, vd_err *err);
void vd_batch_plan_free(vd_batch_plan *plan);
typedef struct {
    const uint32_t *value;
    uint32_t count;
} vd_value_list;
/* The values that a unit reads, borrowed from the plan or the graph. */
vd_value_list vd_batch_inputs(const vd_batch_plan *plan, const vd_graph *graph, const vd_unit *u);
/* Checks that another program, whose plan is `theirs`, fits. VD_ERR_USAGE: shared parts differ. */
VD_MUST_USE vd_status vd_batch_plan_fits(const vd_batch_plan *plan, const vd_program *mine,
                                         const vd_program *other, const vd_plan *theirs,
                                         vd_err *err);

/* ---- batch_stop.c ---- */

/* Checks that a step changes nothing if leaf `stopped` is not 0 (UINT32_MAX: no such leaf).
 * VD_ERR_USAGE: it may change something. */
VD_MUST_USE vd_status vd_batch_check_stop(const vd_program *program, uint32_t stopped, vd_err *err);

/* ---- batch_item.c: a program in the batch ---- */

typedef struct {
    uint64_t id;
    const vd_program *program;
    const void *const *data; /* its own */
    const int32_t *prompt;
    int64_t prompt_count;
    int64_t filled; /* tokens of the prompt that are already in the caches */
    vd_state state; /* step -1 until S_0 is complete; in host memory */
    void **mirror;  /* copies of its tensors on the device; NULL: none are needed; owned */
    vd_plan plan;   /* of its own graph, since attention depends on the caches' length */
    void **value;   /* of each VD_HELD_PROGRAM value; owned, except data in host memory */
    vd_live live;   /* valid from S_0 on */
    vd_written *written;
    uint32_t written_count, written_capacity;
    bool void_choice;   /* the last step's token does not follow from its logits (choice.h) */
    int64_t first_stop; /* of an existing answer: first step so far that ends the text */
} vd_batch_item;

struct vd_batch {
    vd_exec exec;
    vd_batch_options options;
    ro_ctx *memory; /* device context that computes; NULL: the host computes */
    vd_batch_plan plan;
    void **shared; /* of each VD_HELD_SHARED value; owned, except data in host memory */
    vd_batch_item **item;
    uint32_t count, capacity;
    double commit_s, pass_s; /* seconds so far in commitments, and in passes */
};

/* Computes all values held as `held` into item->value, or batch->shared if `item` is NULL. */
VD_MUST_USE vd_status vd_batch_compute_once(vd_batch *b, vd_batch_item *item, vd_err *err);
/* Where a value of a program is, unless it is VD_HELD_ROWS. */
const void *vd_batch_held(const vd_batch *b, const vd_batch_item *item, uint32_t value);
/* Copies to where the batch computes. The caller frees *out. */
VD_MUST_USE vd_status vd_batch_copy(const vd_batch *b, const void *host, size_t size, void **out,
                                    vd_err *err);
/* Completes the mirror of item->state, if the batch is on a device, with what it lacks. */
VD_MUST_USE vd_status vd_batch_mirror(const vd_batch *b, vd_batch_item *item, vd_err *err);
/* Allocates a joining program's memory, and computes its VD_HELD_PROGRAM values. */
VD_MUST_USE vd_status vd_batch_open_item(vd_batch *b, vd_batch_item *item, vd_err *err);
/* Computes S_0, with caches left as zeros. */
VD_MUST_USE vd_status vd_batch_begin(const vd_batch *b, vd_batch_item *item, vd_err *err);
/* Computes all of S_0 by the program's own graph. */
VD_MUST_USE vd_status vd_batch_begin_strange(const vd_batch *b, vd_batch_item *item, vd_err *err);
void vd_batch_item_free(const vd_batch *b, vd_batch_item *item); /* accepts NULL */
VD_MUST_USE vd_status vd_batch_wrote(vd_batch_item *item, uint32_t leaf, uint64_t from,
                                     uint64_t size, vd_err *err);

/* ---- batch_run.c: one pass ---- */

typedef struct {
    vd_batch_item *item;
    int32_t step; /* below 0 for tokens of the prompt except its last one */
    int32_t token;
} vd_batch_row;

/* Values of the rows of a pass, or of some of them. */
typedef struct vd_batch_rows {
    vd_batch *b;
    const vd_graph *graph;
    const vd_batch_row *row;
    int64_t rows, tokens; /* number of rows, of which the first `tokens` make a token */
    uint8_t **at;         /* of each VD_HELD_ROWS value: its rows */
    uint8_t **host;       /* copies of values read from a device; owned, or NULL */
    bool *stays;          /* values to read from the device when all units have run; or NULL */
    const struct vd_batch_rows *from; /* rows whose values these borrow; NULL: none */
    vd_err *err;
} vd_batch_rows;

/* Prepares rows before the first unit. The caller sets the values that rows borrow. */
VD_MUST_USE vd_status vd_batch_rows_open(vd_batch_rows *rows);
VD_MUST_USE vd_status vd_batch_rows_unit(vd_batch_rows *rows, const vd_unit *u);
int64_t vd_batch_rows_count(const vd_batch_rows *rows, bool every);
/* Returns the value that the program of row r reads, where the batch computes. */
const void *vd_batch_of_row(const vd_batch_rows *rows, uint32_t value, int64_t r);
/* Like vd_batch_of_row, in host memory; a device copies all rows at once. NULL: see rows->err. */
const void *vd_batch_row_in_host(vd_batch_rows *rows, uint32_t value, int64_t r);
/* Frees values after unit `i` of the plan, which reads them last, except those in `kept` (may be
 * NULL). Values that no unit reads are kept until vd_batch_rows_free. */
void vd_batch_rows_free_after(vd_batch_rows *rows, uint32_t i, const bool *kept);
void vd_batch_rows_free(vd_batch_rows *rows); /* may follow a failed vd_batch_rows_open */

/* ---- batch_put.c ---- */

/* Puts a unit's rows into their programs' leaves; on a device, into its copies of them. */
VD_MUST_USE vd_status vd_batch_put(vd_batch_rows *rows, const vd_unit *u);
/* After all units ran, repeats in host memory what a device has put into its copies. */
VD_MUST_USE vd_status vd_batch_put_in_host(vd_batch_rows *rows);

/* Runs a pass. Rows of a program are adjacent and ascend; each of the first `tokens` rows makes a
 * token. Advances the states to the next step, and notes what was written. */
VD_MUST_USE vd_status vd_batch_run(vd_batch *b, const vd_batch_row *row, int64_t rows,
                                   int64_t tokens, vd_err *err);

#endif
