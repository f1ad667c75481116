/* A provider's knowledge of its run, as functions. The protocol asks these, and never sees files.
 * Each may take as long as a re-execution. Borrowed results are valid until the next call. */
#ifndef VD_SOURCE_H
#define VD_SOURCE_H

#include "repops/ref.h"
#include "verde/exec/exec.h"

/* A long fold (PROTOCOL.md section 5.5): an element of an operator that takes several steps in
 * SPEC.md, and is disputed step by step. Must not move, as `call` points into it. */
enum { VD_FOLD_INPUTS = 3, VD_PART_BYTES = sizeof(ro_acc) };
typedef struct {
    ro_call call;
    ro_shape input[VD_FOLD_INPUTS];
    int64_t element;
    bool bounded;   /* it is of a free operator in a program with rounding: SPEC 14.5 */
    uint64_t parts; /* number of parts, two or more */
    size_t size;    /* bytes of the state between two parts, at most VD_PART_BYTES */
} vd_fold;
typedef uint32_t (*vd_load)(void *user, int input, int64_t index);
/* Describes a node's element as a fold. False: it is none, or has only one part, and is computed as
 * a whole. */
bool vd_fold_open(vd_fold *fold, const vd_program *program, const vd_graph *graph, uint32_t node,
                  int64_t element);
/* Computes the state `after` part `part` from the state `before` it (NULL: part 0). `after` may be
 * `before`. All bytes are accepted. */
void vd_fold_part(const vd_fold *fold, uint64_t part, const uint8_t *before, vd_load load,
                  void *user, uint8_t *after);
/* The element's bits, or its value and bound, from the state after the last part. */
uint32_t vd_fold_element(const vd_fold *fold, const uint8_t *last);
ro_bounded vd_fold_bounded(const vd_fold *fold, const uint8_t *last);
/* Lists the state after each part in *out. `input` is in host memory. */
VD_MUST_USE vd_status vd_fold_run(const vd_fold *fold, const void *const *input, vd_records *out,
                                  vd_err *err);

typedef struct {
    void *user;
    /* Gets the states that the run commits to, vd_run_leaves(program) of them. */
    vd_status (*run)(void *user, vd_hash *state, vd_err *err);
    /* Computes S_from .. S_to, by re-execution. */
    vd_status (*states)(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err);
    /* Gets the records of step s; -1: initialisation. */
    vd_status (*trace)(void *user, int64_t step, const vd_records **out, vd_err *err);
    /* Gets the commitments of the tensors of S_step, in layout order. */
    vd_status (*leaves)(void *user, int64_t step, vd_hash *tensor, vd_err *err);
    /* Gets the bytes of a value of step s (numbered as in graph.h). */
    vd_status (*tensor)(void *user, int64_t step, uint32_t value, const void **data, vd_err *err);
    /* Gets the tree over `data`, the bytes of this value; it may be one that was kept for an
     * earlier question. Borrowed until the next call. NULL: callers make it themselves. */
    vd_status (*tree)(void *user, int64_t step, uint32_t value, const void *data,
                      const vd_tree **out, vd_err *err);
    /* Gets the states after each part of a long fold, for an element of a node's output. */
    vd_status (*fold)(void *user, int64_t step, uint32_t node, int64_t element, vd_records *out,
                      vd_err *err);
    /* Root over the states of `run` and what was emitted, as first stated. */
    vd_hash run_root;
    /* Drops results, so that later questions are computed anew from a checkpoint. May be NULL. */
    void (*forget)(void *user);
    /* Gets the progress of the current re-execution: steps done, and in all. Any thread may call
     * it; may be NULL. */
    void (*progress)(void *user, int64_t *done, int64_t *of);
    /* Stops for good: a re-execution ends after its step, without a result. Any thread may call it;
     * may be NULL. */
    void (*stop)(void *user);
    /* The run has a fault on purpose, so results need not be consistent. */
    bool dishonest;
    /* Questions about emitted records, defined by the run's backend; NULL: there are none. */
    const struct vd_emitted_source *served;
} vd_source;

/* Bytes of tensors that a replay caches for later questions, besides one node's own. */
enum { VD_REPLAY_WINDOW_BYTES = 256 << 20 };

/* A source for a run directory: loads the checkpoint before a question, and executes from there. */
typedef struct vd_replay vd_replay;
/* Creates a replay. Its source borrows all that `exec` borrows. */
VD_MUST_USE vd_status vd_replay_create(const char *dir, const vd_exec *exec, vd_replay **out,
                                       vd_err *err);
/* Like vd_replay_create, for a run that may be unfinished; its root so far is no run root. */
VD_MUST_USE vd_status vd_replay_create_so_far(const char *dir, const vd_exec *exec, vd_replay **out,
                                              vd_err *err);
/* From now on only loads states, without executing: if a state is missing or damaged, that is an
 * error. */
void vd_replay_only_stored(vd_replay *replay);
/* Number of checkpoints that the source's `run` lists. */
uint32_t vd_replay_checkpoints(const vd_replay *replay);
void vd_replay_destroy(vd_replay *replay);
vd_source vd_replay_source(vd_replay *replay);
/* Steps executed again so far, whole or in part: a provider's work. Any thread may call it. */
uint64_t vd_replay_executed(const vd_replay *replay);

/* Measurements of a provider's machine and run, which its commitment states (PROTOCOL.md section
 * 8.3). All zeros: nothing was measured. */
typedef struct {
    int64_t plain_us;     /* time of a step */
    int64_t committed_us; /* time of a step and of hashing its state */
    int64_t traced_us; /* time of a trace: of a step, or of initialisation if that takes longer */
    int64_t distance;  /* most steps between two stored states */
} vd_pace;
enum { VD_PACE_US_LIMIT = 1000000000 }; /* limit of each time: 1,000 s */
/* Measures these times on one step of the run. */
VD_MUST_USE vd_status vd_replay_measure(vd_replay *replay, vd_pace *out, vd_err *err);

/* A second run in its own thread, by which a convicted provider contests its rival's claim. Its
 * directory is `dir`, from which it is also resumed. */
typedef struct vd_again vd_again;
/* Copies `exec`, with `fault` in place of its own (NULL: none); only this run may use its context.
 * `keep` states stay on disk; 0: all. */
VD_MUST_USE vd_status vd_again_create(const char *dir, const vd_exec *exec, const vd_fault *fault,
                                      int32_t keep, vd_again **out, vd_err *err);
void vd_again_destroy(vd_again *again); /* stops the run; accepts NULL */
/* Starts the run when first called. VD_ERR_IO, with the progress, until it is finished;
 * VD_ERR_LOCAL, with the reason, if it failed. `again` is a vd_again. */
VD_MUST_USE vd_status vd_again_source(void *again, vd_source *out, vd_err *err);

/* Changes S to what the run commits to: VD_FAULT_HISTORY alters it at one middle checkpoint. */
void vd_fault_state(const vd_exec *exec, int64_t step, vd_hash *state);
/* Sets *changed: whether the finished run in DIR commits to another state than an honest run, at
 * the first checkpoint that exec->fault can change. Executes the steps before it again. For runs on
 * another backend, *changed is true. */
VD_MUST_USE vd_status vd_fault_changed(const char *dir, const vd_exec *exec, bool *changed,
                                       vd_err *err);

/* Computes one element by repops' reference, which is decisive. Reads inputs through `load`. */
VD_MUST_USE vd_status vd_leaf_element(const ro_call *call, int64_t element, vd_load load,
                                      void *user, uint32_t *out, vd_err *err);
/* Like vd_leaf_element, for a free operator, which has several possible values: SPEC 14.5. */
VD_MUST_USE vd_status vd_leaf_bounded(const ro_call *call, int64_t element, vd_load load,
                                      void *user, ro_bounded *out, vd_err *err);
/* Tests the reference on this machine. */
VD_MUST_USE vd_status vd_leaf_self_test(vd_err *err);

#endif
