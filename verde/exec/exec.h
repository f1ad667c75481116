/* Running programs: initialisation and steps, with an observer for traces, and faults on purpose.
 */
#ifndef VD_EXEC_H
#define VD_EXEC_H

#include "verde/commit/record.h"
#include "verde/graph/graph.h"

/* ---- faults on purpose, for tests and demonstrations ---- */

typedef enum {
    VD_FAULT_NONE = 0,
    VD_FAULT_ELEMENT, /* one bit of one element of one node's output */
    VD_FAULT_LR,      /* another base learning rate */
    VD_FAULT_SKIP,    /* the state after the step is the state before it */
    VD_FAULT_POISON,  /* one token of the batch is another one */
    VD_FAULT_SEED,    /* another seed in every node that has one */
    VD_FAULT_ATTR,    /* another attribute of one node */
    VD_FAULT_WEIGHTS, /* initial weights of a leaf are not those of the seed */
    VD_FAULT_HISTORY, /* a wrong state in the middle of the commitment, the right one at the end */
    VD_FAULT_INPUT,   /* one node computes from another last input than its record says */
    VD_FAULT_FIELD,   /* as hardware errs: drawn from a seed, place and all (vd_field) */
    VD_FAULT_SUM,     /* a bit of an integer sum of a fixed product, which a guard is to find */
    /* The rest are faults of a backend that emits records of its outputs. */
    VD_FAULT_STEER,        /* an output has another possible value, and its record says so */
    VD_FAULT_DROP_RECORD,  /* an output has another possible value, and has no record */
    VD_FAULT_FORGE_RECORD, /* an output is right, and its record names another value */
    VD_FAULT_FORGE_BOTH,   /* an output has an impossible value, and its record names that */
    VD_FAULT_TWO_LOGS,     /* the run commits to other logs than those that it signs */
} vd_fault_kind;

/* What VD_FAULT_FIELD does to a node's output. */
typedef enum {
    VD_FIELD_BIT,        /* one bit of one element */
    VD_FIELD_BITS,       /* several bits of one element */
    VD_FIELD_BURST,      /* neighbours in a row, each in its own bits */
    VD_FIELD_LANE,       /* a bit that is stuck, of every 16th element */
    VD_FIELD_STALE,      /* an element of the next state stays as it was in the state before */
    VD_FIELD_NOT_FINITE, /* one element is infinite, or a NaN */
    VD_FIELDS
} vd_field;
const char *vd_field_name(vd_field field); /* "neighbours in a row" */
/* Does a machine that errs so do it again in the same step? */
bool vd_field_repeats(vd_field field);

typedef struct {
    vd_fault_kind kind;
    int64_t step; /* -1: initialisation */
    uint32_t
        node; /* in the graph of that step; of what is emitted, UINT32_MAX: the first that fits */
    uint32_t element; /* VD_FAULT_ELEMENT: which, modulo the size */
    uint32_t bit;     /* VD_FAULT_ELEMENT: which bit is flipped */
    uint64_t seed;    /* VD_FAULT_FIELD: of which all is drawn */
    vd_field field;
    uint32_t mask;
} vd_fault;

/* "KIND[@step[:node]]", or "field@SEED"; node by number or name; sentences name what was expected.
 * Where a part is left out, the middle step and a node that fits the kind are taken. */
VD_MUST_USE vd_status vd_fault_parse(const char *text, const vd_program *program, vd_fault *out,
                                     vd_err *err);
void vd_fault_print(const vd_fault *fault, const vd_program *program, char *text, size_t size);

/* ---- states ---- */

typedef struct {
    int64_t step;
    void **tensor; /* one per leaf of the layout; owned */
    uint32_t count;
    ro_ctx *memory; /* where the tensors are (memory.h); NULL: in host memory. Outlives the state */
} vd_state;

void vd_state_free(vd_state *state);
/* Commitment of each leaf (`tensor` may be NULL) and of the state. `program_hash` as in PROTOCOL.md
 * section 1. What is in host memory is hashed by all threads of `ro`; NULL: by the caller's. */
VD_MUST_USE vd_status vd_state_hash(ro_ctx *ro, const vd_program *program,
                                    const vd_hash *program_hash, const vd_state *state,
                                    vd_hash *tensor, vd_hash *out, vd_err *err);
/* Computes the commitment of a checkpoint that has more than a state: H("verde/logged/1", state ||
 * root), where root is over the records that were emitted since the checkpoint before. */
VD_MUST_USE bool vd_emitted_state(const vd_hash *state, const vd_hash *emitted, vd_hash *out);
/* Commitments of the leaves that `wanted` has (NULL: of all); the others' places in `tensor` stay
 * as they are. */
VD_MUST_USE vd_status vd_leaves_hash(ro_ctx *ro, const vd_program *program, const vd_state *state,
                                     const bool *wanted, vd_hash *tensor, vd_err *err);
VD_MUST_USE vd_status vd_program_hash(const vd_program *program, vd_hash *out, vd_err *err);
/* The same of programs that differ in nothing but names (PROTOCOL.md section 1.7). */
VD_MUST_USE vd_status vd_program_structure(const vd_program *program, vd_hash *out, vd_err *err);
size_t vd_shape_bytes(const ro_shape *shape);

/* ---- a backend's kernels, in place of the order-fixed ones (backend.h) ---- */

/* A node that such a kernel is to run, as this execution runs it. Borrowed, in host memory; stands
 * until the call returns. */
typedef struct {
    const vd_program *program;
    const vd_graph *graph;
    int64_t step; /* -1: initialisation */
    uint32_t node;
    const ro_call *call;
    const void *const *input;
    void *output;
    const vd_fault *fault; /* the kernel applies vd_fault_output */
    ro_ctx *ro;            /* free for other work */
    ro_ctx *memory;        /* of tensors (memory.h); NULL: host memory */
} vd_kernel_node;

/* Kernels for all nodes of free operators. */
typedef struct {
    vd_status (*run)(void *user, const vd_kernel_node *node, vd_err *err);
    void *user;
    bool keep_inputs; /* nothing is computed in place: the inputs are read afterwards */
} vd_kernels;

/* ---- execution ---- */

/* Sees every node after it ran, its tensors where exec->ro computes (memory.h); returning false
 * ends the run early with VD_OK and no new state. */
typedef struct {
    bool (*node)(void *user, uint32_t node, const void *const *input, const void *output);
    void *user;
} vd_observer;

/* What a step says of itself, where its graph has it: the loss, the learning rate, the norm of the
 * whole gradient before it is clipped. */
typedef struct {
    float loss, lr, grad_norm;
    bool has_loss, has_lr, has_grad_norm;
    bool void_choice; /* it made a token that does not follow from its logits (choice.h) */
} vd_step_numbers;

/* What one of several processes runs of a step; of an initialisation that nobody watches it runs
 * what leads to the leaves that it keeps. A value that it reads and does not make is fetched when
 * it is first read, all others are there. Tensors are in host memory, in the machine's byte order.
 */
typedef struct {
    bool (*runs)(void *user, uint32_t node);
    /* Of a node of a repeat: it waits for another process, or for a node that does, so this one
     * first runs all else that it runs of the repeat. */
    bool (*waits)(void *user, uint32_t node);
    bool (*keeps)(void *user, uint32_t leaf); /* of the next state; the others are NULL there */
    bool (*sends)(void *user, uint32_t value);
    /* Right after the value was made; `data` is borrowed until it returns. */
    vd_status (*send)(void *user, uint32_t value, const void *data, size_t size, vd_err *err);
    vd_status (*fetch)(void *user, uint32_t value, void *data, size_t size, vd_err *err);
    void *user;
} vd_exec_part;

typedef struct {
    const vd_program *program;
    ro_ctx *ro;
    /* One for each of the program's data tensors, in host memory; list and tensors are borrowed.
     * May be NULL where nothing is run. */
    const void *const *data;
    /* Their copies where `ro` computes, or NULL: made by vd_exec_place, freed by vd_exec_drop. Who
     * copies a vd_exec for another context sets this to NULL. */
    void **placed;
    /* Weights among the data that stay packed, or NULL: packed anew for each product. Made, freed
     * and set to NULL like `placed`. */
    struct vd_kept_weights *kept;
    struct vd_guard *guard;   /* checks products (guard.h); NULL: nothing is checked */
    vd_step_numbers *numbers; /* NULL, or what vd_exec_step fills in */
    vd_fault fault;
    bool unfused; /* run node by node even where a fused function gives the same bytes */
    const vd_kernels *kernels; /* NULL: every node as SPEC.md's orders say */
    /* NULL: all of a step. Else `kernels` is NULL, and an observer sees this part and lets it end.
     */
    const vd_exec_part *part;
} vd_exec;

/* For a program's main. Steps free and allocate the same tensors again and again: keep their pages.
 * By default large blocks go back to the kernel each time, or the heap's end does, depending on
 * what happens to lie there, and up to a third of the time goes into fresh pages. */
void vd_keep_pages(void);

/* Before exec->ro runs anything: copies the data to where it computes, if that is a device, and
 * lets it keep packed weights. The data stay as they are until vd_exec_drop. */
VD_MUST_USE vd_status vd_exec_place(vd_exec *exec, vd_err *err);
void vd_exec_drop(vd_exec *exec); /* what vd_exec_place made */
/* Moves a state that was read from disk there; vd_exec_step and vd_exec_observe want it so. */
VD_MUST_USE vd_status vd_state_place(const vd_exec *exec, vd_state *state, vd_err *err);
/* exec->ro if it computes on a device; NULL: in host memory. */
ro_ctx *vd_exec_memory(const vd_exec *exec);

/* Computes S_0 into *out. States lie in the memory where exec->ro computes. */
VD_MUST_USE vd_status vd_exec_init(const vd_exec *exec, const vd_observer *observer, vd_state *out,
                                   vd_err *err);
/* Computes state s + 1 from state s. *state is replaced if the step ran to its end. Old tensors are
 * freed after their last use. `loss` may be NULL. */
VD_MUST_USE vd_status vd_exec_step(const vd_exec *exec, const vd_observer *observer,
                                   vd_state *state, float *loss, vd_err *err);
/* The same into *next, and `before` stays as it is. Without a fault. */
VD_MUST_USE vd_status vd_exec_next(const vd_exec *exec, const vd_state *before, vd_state *next,
                                   float *loss, vd_err *err);
/* Runs step s from `before`, which stays as it is. No new state. */
VD_MUST_USE vd_status vd_exec_observe(const vd_exec *exec, const vd_observer *observer,
                                      const vd_state *before, vd_err *err);

/* How a node runs, where nobody looks at single ones. */
typedef enum {
    VD_RUNS_ITSELF,
    VD_RUNS_FUSED,  /* as part of a function of several nodes */
    VD_RUNS_SHARED, /* not at all: its value is in the memory of what it reads */
    VD_RUNS_NOT,    /* nor this: who reads it does without */
} vd_node_how;
typedef struct {
    vd_node_how how;
    const char *function; /* VD_RUNS_FUSED: which, and the number of its application */
    uint32_t number;
} vd_node_run;
/* Of each node; `out` has room for them. */
VD_MUST_USE vd_status vd_exec_runs(const vd_program *program, const vd_graph *graph,
                                   vd_node_run *out, vd_err *err);

/* The program as this executor runs step s: with another attribute where a fault says so. *changed
 * is owned by the caller if it was needed (vd_program_free); else the given program is returned. */
VD_MUST_USE vd_status vd_fault_program(const vd_exec *exec, int64_t step, vd_program *changed,
                                       const vd_program **out, vd_err *err);
/* Makes *copy of a node's last input, with every number altered, and *input that, if the fault says
 * so; else *copy is NULL. The caller frees it, where `ro` computes. */
VD_MUST_USE vd_status vd_fault_input(const vd_fault *fault, int64_t step, uint32_t node,
                                     const ro_call *call, ro_ctx *ro, const void **input,
                                     void **copy, vd_err *err);
/* Alters a node's output, where `ro` computes, if the fault says so. */
VD_MUST_USE vd_status vd_fault_output(const vd_fault *fault, int64_t step, uint32_t node,
                                      const ro_shape *shape, ro_ctx *ro, void *output, vd_err *err);
/* Is it one of what a backend emits? */
bool vd_fault_is_emitted(const vd_fault *fault);

/* ---- traces ---- */

/* Of the records of a step, in memory while questions about them are answered. */
#define VD_TRACE_BYTES_MAX (UINT64_C(8) << 30)
/* VD_ERR_USAGE: a step of the program, or its initialisation, means more records than that, so that
 * nobody could answer for it. */
VD_MUST_USE vd_status vd_trace_fits(const vd_program *program, vd_err *err);

/* Records of one step (before: S_s), or of initialisation (before: NULL). */
VD_MUST_USE vd_status vd_trace(const vd_exec *exec, const vd_state *before, vd_records *out,
                               vd_err *err);

#endif
