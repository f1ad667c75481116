/* A provider's knowledge of its run. The protocol asks through this table and never sees files. All
 * functions may take as long as a re-execution. Borrowed results stand until the next call. */
#ifndef VD_SOURCE_H
#define VD_SOURCE_H

#include "repops/ref.h"
#include "verde/exec/exec.h"

/* A long fold (PROTOCOL.md section 5.5): an element of an operator with several steps in SPEC.md,
 * which is disputed step by step. Stays where it is: `call` points into it. */
enum { VD_FOLD_INPUTS = 3, VD_PART_BYTES = sizeof(ro_acc) };
typedef struct {
    ro_call call;
    ro_shape input[VD_FOLD_INPUTS];
    int64_t element;
    bool bounded;   /* a free operator of a program with rounding: SPEC 14.5 */
    uint64_t parts; /* two or more */
    size_t size;    /* bytes that lead from one part to the next, at most VD_PART_BYTES */
} vd_fold;
typedef uint32_t (*vd_load)(void *user, int input, int64_t index);
/* Describes a node's element as a fold. False if it has one part or is none: it is computed whole.
 */
bool vd_fold_open(vd_fold *fold, const vd_program *program, const vd_graph *graph, uint32_t node,
                  int64_t element);
/* Computes what part `part` leaves after what the one before it left (NULL: it is the first).
 * `after` may be `before`. Any bytes have a result. */
void vd_fold_part(const vd_fold *fold, uint64_t part, const uint8_t *before, vd_load load,
                  void *user, uint8_t *after);
/* The element's bits, or its value and bound, after the last part. */
uint32_t vd_fold_element(const vd_fold *fold, const uint8_t *last);
ro_bounded vd_fold_bounded(const vd_fold *fold, const uint8_t *last);
/* Lists what each part leaves in *out. `input` is in host memory. */
VD_MUST_USE vd_status vd_fold_run(const vd_fold *fold, const void *const *input, vd_records *out,
                                  vd_err *err);

typedef struct {
    void *user;
    /* The states that the run commits to: vd_run_leaves(program) of them. */
    vd_status (*run)(void *user, vd_hash *state, vd_err *err);
    /* S_from .. S_to, by re-execution. */
    vd_status (*states)(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err);
    /* Records of step s; -1: initialisation. */
    vd_status (*trace)(void *user, int64_t step, const vd_records **out, vd_err *err);
    /* Commitments of the tensors of S_step, in layout order. */
    vd_status (*leaves)(void *user, int64_t step, vd_hash *tensor, vd_err *err);
    /* The bytes of a value of step s (numbered as in graph.h). */
    vd_status (*tensor)(void *user, int64_t step, uint32_t value, const void **data, vd_err *err);
    /* The tree over `data`, those bytes; or over what `tensor` gave for the same value earlier, as
     * trees are kept. Borrowed until the next call. NULL: whoever wants it makes it. */
    vd_status (*tree)(void *user, int64_t step, uint32_t value, const void *data,
                      const vd_tree **out, vd_err *err);
    /* The states after each part of a long fold that computes an element of a node's output. */
    vd_status (*fold)(void *user, int64_t step, uint32_t node, int64_t element, vd_records *out,
                      vd_err *err);
    /* Root over what `run` gives, and over what was emitted, if anything: as it was first stated.
     */
    vd_hash run_root;
    /* Forgets what was computed: what is asked from now on is computed again from a checkpoint. May
     * be NULL. */
    void (*forget)(void *user);
    /* Says how many steps a re-execution under way has done, and of how many. Any thread may call
     * it; may be NULL. */
    void (*progress)(void *user, int64_t *done, int64_t *of);
    /* Stops for good: a re-execution ends after its step, without a result. Any thread may call it;
     * may be NULL. */
    void (*stop)(void *user);
    /* It has a fault on purpose: nothing that it gives need fit. */
    bool dishonest;
    /* What the run emitted beside its states, in the words of its backend; NULL: nothing. */
    const struct vd_emitted_source *served;
} vd_source;

/* Bytes of tensors that a replay keeps for what may be asked next, beside a node's own. */
enum { VD_REPLAY_WINDOW_BYTES = 256 << 20 };

/* A source over a run directory: loads the checkpoint before what is asked and runs on from there.
 */
typedef struct vd_replay vd_replay;
/* The source borrows what `exec` borrows. */
VD_MUST_USE vd_status vd_replay_create(const char *dir, const vd_exec *exec, vd_replay **out,
                                       vd_err *err);
/* The same of a run that may not be finished: its checkpoints so far, whose root is no run root. */
VD_MUST_USE vd_status vd_replay_create_so_far(const char *dir, const vd_exec *exec, vd_replay **out,
                                              vd_err *err);
/* From here on it loads states and executes nothing: what is not stored, or is damaged, is an
 * error. */
void vd_replay_only_stored(vd_replay *replay);
/* Checkpoints that the source's `run` lists. */
uint32_t vd_replay_checkpoints(const vd_replay *replay);
void vd_replay_destroy(vd_replay *replay);
vd_source vd_replay_source(vd_replay *replay);
/* Steps that were executed again so far, whole or up to a node: a provider's work. Any thread. */
uint64_t vd_replay_executed(const vd_replay *replay);

/* What a provider measures of its machine and its run, and states in its commitment (PROTOCOL.md
 * section 8.3). All zeros: nothing was measured. */
typedef struct {
    int64_t plain_us;     /* a step */
    int64_t committed_us; /* a step, and its state hashed */
    int64_t traced_us;    /* the records of a step, or of initialisation if that takes longer */
    int64_t distance;     /* most steps from one stored state to the next */
} vd_pace;
enum { VD_PACE_US_LIMIT = 1000000000 }; /* of each of the times: 1,000 s */
/* Executes one step of the run in each of these ways. */
VD_MUST_USE vd_status vd_replay_measure(vd_replay *replay, vd_pace *out, vd_err *err);

/* A second run in a thread of its own, with which a convicted provider contests its rival's claim.
 * Lies in `dir`, and is resumed there. */
typedef struct vd_again vd_again;
/* `exec` is copied, with this fault in place of its own (NULL: none); its context is the second
 * run's alone. `keep` states stay on disk, as of the first run; 0: all. */
VD_MUST_USE vd_status vd_again_create(const char *dir, const vd_exec *exec, const vd_fault *fault,
                                      int32_t keep, vd_again **out, vd_err *err);
void vd_again_destroy(vd_again *again); /* stops the run; accepts NULL */
/* Starts the run at the first call. VD_ERR_IO, with how far it is, until it is finished;
 * VD_ERR_LOCAL, with the reason, if it failed. `again` is a vd_again. */
VD_MUST_USE vd_status vd_again_source(void *again, vd_source *out, vd_err *err);

/* S as the run commits to it: with VD_FAULT_HISTORY another one at one checkpoint in the middle. */
void vd_fault_state(const vd_exec *exec, int64_t step, vd_hash *state);
/* Does the finished run in DIR commit to anything else than an honest one would, at the first
 * checkpoint that exec->fault can change? Executes the steps that lead there again. Runs on
 * another backend are taken to be changed. */
VD_MUST_USE vd_status vd_fault_changed(const char *dir, const vd_exec *exec, bool *changed,
                                       vd_err *err);

/* Computes one element by repops' reference, which decides. Reads inputs through `load`. */
VD_MUST_USE vd_status vd_leaf_element(const ro_call *call, int64_t element, vd_load load,
                                      void *user, uint32_t *out, vd_err *err);
/* As vd_leaf_element for a free operator, whose value is one of several: SPEC 14.5. */
VD_MUST_USE vd_status vd_leaf_bounded(const ro_call *call, int64_t element, vd_load load,
                                      void *user, ro_bounded *out, vd_err *err);
/* Self-test of the reference on this machine. */
VD_MUST_USE vd_status vd_leaf_self_test(vd_err *err);

#endif
