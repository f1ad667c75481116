/* Runs programs: initialisation and steps, with an observer for traces, and faults on purpose. */
#ifndef VD_EXEC_H
#define VD_EXEC_H

#include "verde/commit/record.h"
#include "verde/graph/graph.h"

/* ---- faults on purpose, for tests and demonstrations ---- */

typedef enum {
    VD_FAULT_NONE = 0,
    VD_FAULT_ELEMENT, /* flips a bit of an element of a node's output */
    VD_FAULT_LR,      /* uses another base learning rate */
    VD_FAULT_SKIP,    /* the state after the step is the one before it */
    VD_FAULT_POISON,  /* replaces a token of the batch */
    VD_FAULT_SEED,    /* uses another seed in all nodes that have one */
    VD_FAULT_ATTR,    /* changes an attribute of a node */
    VD_FAULT_WEIGHTS, /* initial weights of a leaf do not follow from the seed */
    VD_FAULT_HISTORY, /* a middle checkpoint's commitment is wrong, the last one is right */
    VD_FAULT_INPUT,   /* a node computes from another last input than its record says */
    VD_FAULT_FIELD,   /* errs like hardware: place and kind are drawn from a seed (vd_field) */
    VD_FAULT_SUM,     /* flips a bit of an integer sum in a fixed product, for a guard to find */
    /* The others are faults of backends that emit records of outputs. */
    VD_FAULT_STEER,        /* an output gets another possible value, and its record agrees */
    VD_FAULT_DROP_RECORD,  /* an output gets another possible value, without a record */
    VD_FAULT_FORGE_RECORD, /* an output is right, but its record names another value */
    VD_FAULT_FORGE_BOTH,   /* an output gets an impossible value, and its record agrees */
    VD_FAULT_TWO_LOGS,     /* the run commits to other logs than it signs */
} vd_fault_kind;

/* How VD_FAULT_FIELD changes a node's output. */
typedef enum {
    VD_FIELD_BIT,        /* one bit of one element */
    VD_FIELD_BITS,       /* several bits of one element */
    VD_FIELD_BURST,      /* neighbours in a row, each in bits of its own */
    VD_FIELD_LANE,       /* a bit of every 16th element is stuck */
    VD_FIELD_STALE,      /* an element of the next state keeps its old value */
    VD_FIELD_NOT_FINITE, /* one element becomes infinite or a NaN */
    VD_FIELDS
} vd_field;
const char *vd_field_name(vd_field field); /* for people: "neighbours in a row" */
/* Returns whether such an error would recur if the same machine repeats the step. */
bool vd_field_repeats(vd_field field);

typedef struct {
    vd_fault_kind kind;
    int64_t step;  /* -1: initialisation */
    uint32_t node; /* in that step's graph; for emitted records, UINT32_MAX: the first that fits */
    uint32_t element; /* VD_FAULT_ELEMENT: index of the element, modulo their number */
    uint32_t bit;     /* VD_FAULT_ELEMENT: the bit to flip */
    uint64_t seed;    /* VD_FAULT_FIELD: seed of all choices */
    vd_field field;
    uint32_t mask;
} vd_fault;

/* Parses "KIND[@step[:node]]" or "field@SEED", with a node's number or name. If a part is missing,
 * it takes the middle step, and a node that fits the kind. Errors say what was expected. */
VD_MUST_USE vd_status vd_fault_parse(const char *text, const vd_program *program, vd_fault *out,
                                     vd_err *err);
void vd_fault_print(const vd_fault *fault, const vd_program *program, char *text, size_t size);

/* ---- states ---- */

typedef struct {
    int64_t step;
    void **tensor; /* one for each leaf of the layout; owned */
    uint32_t count;
    ro_ctx *memory; /* of the tensors (memory.h), and outlives the state; NULL: host memory */
} vd_state;

void vd_state_free(vd_state *state);
/* Computes the commitments of all leaves (`tensor` may be NULL) and of the state. `program_hash` is
 * that of PROTOCOL.md section 1. Tensors in host memory are hashed by all threads of `ro`, or by
 * the caller's if it is NULL. */
VD_MUST_USE vd_status vd_state_hash(ro_ctx *ro, const vd_program *program,
                                    const vd_hash *program_hash, const vd_state *state,
                                    vd_hash *tensor, vd_hash *out, vd_err *err);
/* Computes the commitment of a checkpoint of a run that emits records: H("verde/logged/1", state ||
 * root), where root is over what was emitted since the checkpoint before. */
VD_MUST_USE bool vd_emitted_state(const vd_hash *state, const vd_hash *emitted, vd_hash *out);
/* Computes the commitments of the leaves in `wanted` (NULL: all); other entries of `tensor`
 * stay. */
VD_MUST_USE vd_status vd_leaves_hash(ro_ctx *ro, const vd_program *program, const vd_state *state,
                                     const bool *wanted, vd_hash *tensor, vd_err *err);
VD_MUST_USE vd_status vd_program_hash(const vd_program *program, vd_hash *out, vd_err *err);
/* Like vd_program_hash, but equal for programs that differ in names only (PROTOCOL.md section
 * 1.7). */
VD_MUST_USE vd_status vd_program_structure(const vd_program *program, vd_hash *out, vd_err *err);
size_t vd_shape_bytes(const ro_shape *shape);

/* ---- kernels of a backend, which replace those in fixed order (backend.h) ---- */

/* A node to be run by such a kernel. All is borrowed, in host memory, and valid during the call. */
typedef struct {
    const vd_program *program;
    const vd_graph *graph;
    int64_t step; /* -1: initialisation */
    uint32_t node;
    const ro_call *call;
    const void *const *input;
    void *output;
    const vd_fault *fault; /* the kernel must call vd_fault_output */
    ro_ctx *ro;            /* the kernel may compute with it */
    ro_ctx *memory;        /* context whose memory has the tensors (memory.h); NULL: host memory */
} vd_kernel_node;

/* Kernels for all nodes of free operators. */
typedef struct {
    vd_status (*run)(void *user, const vd_kernel_node *node, vd_err *err);
    void *user;
    bool keep_inputs; /* computes nothing in place, because inputs are read afterwards */
} vd_kernels;

/* ---- execution ---- */

/* Called for every node after it ran, with tensors in the memory of exec->ro (memory.h). If it
 * returns false, the run ends early, with VD_OK and without a new state. */
typedef struct {
    bool (*node)(void *user, uint32_t node, const void *const *input, const void *output);
    void *user;
} vd_observer;

/* Numbers that a step reports, if its graph has them: loss, learning rate, and the norm of the
 * whole gradient before clipping. */
typedef struct {
    float loss, lr, grad_norm;
    bool has_loss, has_lr, has_grad_norm;
    bool void_choice; /* the step made a token that does not follow from its logits (choice.h) */
} vd_step_numbers;

/* The part of a step that one of several processes runs. In an unobserved initialisation, each
 * process runs what its own leaves depend on. Values that others make are fetched when they are
 * first read. Tensors are passed in host memory, in the machine's byte order. */
typedef struct {
    bool (*runs)(void *user, uint32_t node);
    /* For nodes of a repeat: whether the node depends on another process, so that all other nodes
     * of the repeat should run first. */
    bool (*waits)(void *user, uint32_t node);
    bool (*keeps)(void *user,
                  uint32_t leaf); /* leaves of the next state to keep; others are NULL in it */
    bool (*sends)(void *user, uint32_t value);
    /* Called as soon as the value was made; `data` is borrowed during the call. */
    vd_status (*send)(void *user, uint32_t value, const void *data, size_t size, vd_err *err);
    vd_status (*fetch)(void *user, uint32_t value, void *data, size_t size, vd_err *err);
    void *user;
} vd_exec_part;

typedef struct {
    const vd_program *program;
    ro_ctx *ro;
    /* The program's data tensors, in host memory; all is borrowed. May be NULL if nothing is
     * run. */
    const void *const *data;
    /* Copies of the data in the memory of `ro`, or NULL: vd_exec_place makes them, vd_exec_drop
     * frees them. A copy of this vd_exec for another context must set this to NULL. */
    void **placed;
    /* Weights among the data that stay packed, or NULL: they are packed for each product. Made,
     * freed and set to NULL like `placed`. */
    struct vd_kept_weights *kept;
    struct vd_guard *guard;   /* checks products (guard.h); NULL: no checks */
    vd_step_numbers *numbers; /* vd_exec_step fills this in; NULL: not wanted */
    vd_fault fault;
    bool unfused; /* runs node by node, even where a fused function would give the same bytes */
    const vd_kernels *kernels; /* NULL: all nodes run in SPEC.md's orders */
    /* NULL: all of a step. Else `kernels` is NULL, and observers, who see this part, never end
     * it. */
    const vd_exec_part *part;
} vd_exec;

/* Makes the heap keep its pages; called by a program's main. Steps free and allocate the same
 * tensors again and again. By default, large blocks or the heap's end may be returned to the kernel
 * each time, and up to a third of the time is spent on new pages. */
void vd_keep_pages(void);

/* Copies the data to the device that exec->ro computes on, if any, and allows packed weights. Call
 * it before exec->ro runs anything. The data must not change until vd_exec_drop. */
VD_MUST_USE vd_status vd_exec_place(vd_exec *exec, vd_err *err);
void vd_exec_drop(vd_exec *exec); /* frees what vd_exec_place made */
/* Moves a state read from disk to the memory of exec->ro, as vd_exec_step and _observe need it. */
VD_MUST_USE vd_status vd_state_place(const vd_exec *exec, vd_state *state, vd_err *err);
/* exec->ro if it computes on a device; else NULL, for host memory. */
ro_ctx *vd_exec_memory(const vd_exec *exec);

/* Computes S_0 into *out. States are in the memory of exec->ro. */
VD_MUST_USE vd_status vd_exec_init(const vd_exec *exec, const vd_observer *observer, vd_state *out,
                                   vd_err *err);
/* Computes state s + 1 from state s. *state is replaced if the step ran to its end. Old tensors are
 * freed after their last use. `loss` may be NULL. */
VD_MUST_USE vd_status vd_exec_step(const vd_exec *exec, const vd_observer *observer,
                                   vd_state *state, float *loss, vd_err *err);
/* Like vd_exec_step, but puts the new state into *next and keeps `before`. It applies no fault. */
VD_MUST_USE vd_status vd_exec_next(const vd_exec *exec, const vd_state *before, vd_state *next,
                                   float *loss, vd_err *err);
/* Runs step s from `before`, which it keeps, for the observer only; it makes no new state. */
VD_MUST_USE vd_status vd_exec_observe(const vd_exec *exec, const vd_observer *observer,
                                      const vd_state *before, vd_err *err);

/* How a node runs if nobody observes single nodes. */
typedef enum {
    VD_RUNS_ITSELF,
    VD_RUNS_FUSED,  /* as part of a fused function */
    VD_RUNS_SHARED, /* not at all: its value shares its input's memory */
    VD_RUNS_NOT,    /* not at all: fused readers of its value do without it */
} vd_node_how;
typedef struct {
    vd_node_how how;
    const char *function; /* VD_RUNS_FUSED: the function, and the number of its call */
    uint32_t number;
} vd_node_run;
/* Finds this for each node; `out` has room for all nodes. */
VD_MUST_USE vd_status vd_exec_runs(const vd_program *program, const vd_graph *graph,
                                   vd_node_run *out, vd_err *err);

/* Returns the program as this executor runs step s: a fault may change an attribute. If so, it is
 * *changed, which the caller frees (vd_program_free); else the given program. */
VD_MUST_USE vd_status vd_fault_program(const vd_exec *exec, int64_t step, vd_program *changed,
                                       const vd_program **out, vd_err *err);
/* If the fault alters this node's input: makes *copy of the last input with all numbers altered,
 * and sets *input to it; else *copy is NULL. The caller frees *copy, in the memory of `ro`. */
VD_MUST_USE vd_status vd_fault_input(const vd_fault *fault, int64_t step, uint32_t node,
                                     const ro_call *call, ro_ctx *ro, const void **input,
                                     void **copy, vd_err *err);
/* Alters a node's output, in the memory of `ro`, if the fault is about it. */
VD_MUST_USE vd_status vd_fault_output(const vd_fault *fault, int64_t step, uint32_t node,
                                      const ro_shape *shape, ro_ctx *ro, void *output, vd_err *err);
/* Returns whether it is a fault of records that a backend emits. */
bool vd_fault_is_emitted(const vd_fault *fault);

/* ---- traces ---- */

/* Limit on the records of a step, which are in memory while questions about them are answered. */
#define VD_TRACE_BYTES_MAX (UINT64_C(8) << 30)
/* Checks this limit, for initialisation and a step. VD_ERR_USAGE: nobody could answer questions. */
VD_MUST_USE vd_status vd_trace_fits(const vd_program *program, vd_err *err);

/* Makes the records of a step from S_s, `before`, or of initialisation (NULL). */
VD_MUST_USE vd_status vd_trace(const vd_exec *exec, const vd_state *before, vd_records *out,
                               vd_err *err);

#endif
