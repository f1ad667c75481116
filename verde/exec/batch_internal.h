/* Private to verde/exec/batch*.c. */
#ifndef VD_BATCH_INTERNAL_H
#define VD_BATCH_INTERNAL_H

#include "verde/exec/batch.h"
#include "verde/exec/fuse.h"
#include "verde/exec/memory.h"

/* ---- batch_ops.c: operators that take rows together ---- */

/* What an input of a call over R rows is. */
typedef enum {
    VD_INPUT_NONE,     /* the operator takes no rows together */
    VD_INPUT_ROWS,     /* R of them, one after the other */
    VD_INPUT_SHARED,   /* one for all rows */
    VD_INPUT_REPEATED, /* R, or one for all rows */
    VD_INPUT_POSITION, /* R numbers, as `rope` takes them */
} vd_batch_input;
/* Of input i of an operator. */
vd_batch_input vd_batch_input_of(int op, int i);
/* Attribute of the operator's axis, which must not be the rows'; -1: it has none. */
int vd_batch_axis_of(int op);

/* ---- batch_plan.c: what a step's nodes do in a pass ---- */

typedef enum {
    VD_HELD_SHARED,  /* one for all programs: follows from shared data */
    VD_HELD_PROGRAM, /* one for each program, for good */
    VD_HELD_STATE,   /* a leaf of its state, or what put_rows made of it, in its place */
    VD_HELD_ROWS,    /* one for each row of a pass */
} vd_held;

typedef struct {
    vd_held held;
    uint32_t leaf; /* VD_HELD_STATE */
    uint32_t last; /* the unit that reads it last; UINT32_MAX: it stays until the pass ends */
    size_t size;   /* bytes of one */
    bool every;    /* VD_HELD_ROWS: of every row; else of those that make a token */
} vd_batch_value;

typedef enum {
    VD_UNIT_TOGETHER,  /* a node over all rows */
    VD_UNIT_EACH,      /* a node, row by row */
    VD_UNIT_PUT,       /* put_rows into a leaf in place, row by row */
    VD_UNIT_GROUP,     /* linear layers, norms and rotary positions over all rows */
    VD_UNIT_ATTENTION, /* a group, program by program */
} vd_unit_kind;

typedef struct {
    vd_unit_kind kind;
    uint32_t index; /* of the node, or of the group in the plan */
    bool every;     /* runs for every row; else for those that make a token */
} vd_unit;

typedef struct {
    vd_plan plan; /* groups of the step's graph */
    uint32_t sources, count;
    vd_batch_value *value; /* of each value of the step's graph; owned */
    vd_unit *unit;         /* in order; owned */
    uint32_t unit_count;
    uint32_t *once; /* nodes whose values are VD_HELD_SHARED or _PROGRAM, in order; owned */
    uint32_t once_count;
    bool *cache;             /* of each leaf: attention reads it; owned */
    uint32_t token, stopped; /* leaves; `stopped` UINT32_MAX: there is none */
    uint32_t choice;         /* vd_choosing_node */
    uint32_t own_data;
} vd_batch_plan;

VD_MUST_USE vd_status vd_batch_plan_create(const vd_program *program, uint32_t own_data,
                                           vd_batch_plan *out, vd_err *err);
void vd_batch_plan_free(vd_batch_plan *plan);
typedef struct {
    const uint32_t *value;
    uint32_t count;
} vd_value_list;
/* What a unit reads. Borrowed from the plan or the graph. */
vd_value_list vd_batch_inputs(const vd_batch_plan *plan, const vd_graph *graph, const vd_unit *u);
/* VD_ERR_USAGE: what is shared or runs together is another thing in this program, whose own plan
 * is `theirs`. */
VD_MUST_USE vd_status vd_batch_plan_fits(const vd_batch_plan *plan, const vd_program *mine,
                                         const vd_program *other, const vd_plan *theirs,
                                         vd_err *err);

/* ---- batch_stop.c ---- */

/* VD_ERR_USAGE: leaf `stopped` (UINT32_MAX: there is none) does not say that the step changes
 * nothing. */
VD_MUST_USE vd_status vd_batch_check_stop(const vd_program *program, uint32_t stopped, vd_err *err);

/* ---- batch_item.c: a program in the batch ---- */

typedef struct {
    uint64_t id;
    const vd_program *program;
    const void *const *data; /* its own */
    const int32_t *prompt;
    int64_t prompt_count;
    int64_t filled; /* tokens of the prompt that are in the caches */
    vd_state state; /* of step -1 until S_0 is complete; in host memory */
    void **mirror;  /* its tensors where the batch computes; NULL: there. Owned */
    vd_plan plan;   /* of its own graph: attention differs by the length of the caches */
    void **value;   /* of each value of the step's graph that is VD_HELD_PROGRAM; owned, but for
                       own data in host memory */
    vd_live live;   /* once there is S_0 */
    vd_written *written;
    uint32_t written_count, written_capacity;
    bool void_choice;   /* of the last step: its token does not follow from its logits (choice.h) */
    int64_t first_stop; /* of a given answer: the first step so far that ends the text */
} vd_batch_item;

struct vd_batch {
    vd_exec exec;
    vd_batch_options options;
    ro_ctx *memory; /* the device's that computes; NULL: the host's */
    vd_batch_plan plan;
    void **shared; /* of each value that is VD_HELD_SHARED; owned, but for data in host memory */
    vd_batch_item **item;
    uint32_t count, capacity;
    double commit_s, pass_s; /* seconds spent on commitments, and in passes, so far */
};

/* Computes the values of nodes that are held as `held`, into item->value, or batch->shared if there
 * is no item. */
VD_MUST_USE vd_status vd_batch_compute_once(vd_batch *b, vd_batch_item *item, vd_err *err);
/* Where a value of a row's program is that is not VD_HELD_ROWS. */
const void *vd_batch_held(const vd_batch *b, const vd_batch_item *item, uint32_t value);
/* Makes a copy where the batch computes, owned by the caller. */
VD_MUST_USE vd_status vd_batch_copy(const vd_batch *b, const void *host, size_t size, void **out,
                                    vd_err *err);
/* Once item->state is there: makes what the mirror lacks, if the batch has one. What is there
 * already is not written again. */
VD_MUST_USE vd_status vd_batch_mirror(const vd_batch *b, vd_batch_item *item, vd_err *err);
/* Makes room for a program that joins, and computes what it holds for good. */
VD_MUST_USE vd_status vd_batch_open_item(vd_batch *b, vd_batch_item *item, vd_err *err);
/* S_0 but for the caches, which are zeros. */
VD_MUST_USE vd_status vd_batch_begin(const vd_batch *b, vd_batch_item *item, vd_err *err);
/* All of S_0, by the program's own graph. */
VD_MUST_USE vd_status vd_batch_begin_strange(const vd_batch *b, vd_batch_item *item, vd_err *err);
void vd_batch_item_free(const vd_batch *b, vd_batch_item *item); /* accepts NULL */
VD_MUST_USE vd_status vd_batch_wrote(vd_batch_item *item, uint32_t leaf, uint64_t from,
                                     uint64_t size, vd_err *err);

/* ---- batch_run.c: one pass ---- */

typedef struct {
    vd_batch_item *item;
    int32_t step; /* of the graph; below 0 for tokens of the prompt but the last */
    int32_t token;
} vd_batch_row;

/* What a pass, or a part of its rows, has computed. */
typedef struct vd_batch_rows {
    vd_batch *b;
    const vd_graph *graph;
    const vd_batch_row *row;
    int64_t rows, tokens;             /* rows; those in front that make a token */
    uint8_t **at;                     /* of each value that is VD_HELD_ROWS: the rows' */
    uint8_t **host;                   /* of values that were read from a device; owned, or NULL */
    bool *stays;                      /* values that are read from it once all units ran; or NULL */
    const struct vd_batch_rows *from; /* whose values these rows borrow; NULL: nobody's */
    vd_err *err;
} vd_batch_rows;

/* Before the first unit. Rows that borrow get what they borrow from the caller. */
VD_MUST_USE vd_status vd_batch_rows_open(vd_batch_rows *rows);
VD_MUST_USE vd_status vd_batch_rows_unit(vd_batch_rows *rows, const vd_unit *u);
int64_t vd_batch_rows_count(const vd_batch_rows *rows, bool every);
/* Returns what the program of row r reads as a value, where the batch computes. */
const void *vd_batch_of_row(const vd_batch_rows *rows, uint32_t value, int64_t r);
/* Returns the same in host memory: from a device all rows come at once. NULL: rows->err says why.
 */
const void *vd_batch_row_in_host(vd_batch_rows *rows, uint32_t value, int64_t r);
/* Frees what unit `i` of the plan read last, but for values that are `kept` (NULL: none is). What
 * nobody reads stays until the rows go. */
void vd_batch_rows_free_after(vd_batch_rows *rows, uint32_t i, const bool *kept);
void vd_batch_rows_free(vd_batch_rows *rows); /* harmless if vd_batch_rows_open failed */

/* ---- batch_put.c ---- */

/* Puts the rows of a unit into their programs' leaves. A device puts them into its copies. */
VD_MUST_USE vd_status vd_batch_put(vd_batch_rows *rows, const vd_unit *u);
/* Puts, once all units ran, what a device has put into its copies. */
VD_MUST_USE vd_status vd_batch_put_in_host(vd_batch_rows *rows);

/* Rows of a program are next to each other and ascend; the `tokens` first make a token each. Brings
 * the states' tensors to the next step, and notes what was written. */
VD_MUST_USE vd_status vd_batch_run(vd_batch *b, const vd_batch_row *row, int64_t rows,
                                   int64_t tokens, vd_err *err);

#endif
