/* What a provider can tell about its run. The protocol asks through this table and never sees
 * files. All functions may take as long as a re-execution. Borrowed results stand until the next
 * call. */
#ifndef VD_SOURCE_H
#define VD_SOURCE_H

#include "verde/exec/rounded.h"

/* Which steps' logs a leaf of the run commits to: first .. first + count - 1, `step` among them. */
typedef struct {
    uint64_t leaf, count;
    int64_t first;
} vd_log_range;
vd_log_range vd_logs_at(const vd_program *program, int64_t step);
/* The free nodes of a step's graph; `nodes` (of node_count) gets them in order, or is NULL. */
uint32_t vd_free_nodes(const vd_graph *graph, vd_log_node *nodes);
/* Does the next state take this node's output? */
bool vd_node_is_state(const vd_program *program, const vd_graph *graph, uint32_t node);
/* How a free node of a step is rounded: what a state takes keeps 32 bits. */
int32_t vd_node_bits(const vd_program *program, const vd_graph *graph, uint32_t node);
/* What a threshold for `bits` is at `at` bits: as far below half of a place (PROTOCOL.md section
 * 11.6). 0: it would be less. */
double vd_threshold_at(double threshold, int32_t bits, int32_t at);

/* Of a step's log: sections of the free nodes before `node`; node_count: of all. */
uint64_t vd_graph_sections(const vd_graph *graph, uint32_t node);

/* A section of a step's log, and how it leads to L of a checkpoint (PROTOCOL.md section 12.4). */
typedef struct {
    vd_hash run, tree_root; /* of the run; over the step's sections */
    vd_log_leaf leaf;
    vd_buf bytes;     /* none if there are more than a section may have */
    vd_proof section; /* under tree_root */
    vd_proof step;    /* of the step's log under L */
} vd_section_proof;

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
    /* Has any re-execution so far given another state than the run had committed to (bit rot, a
     * bug)? */
    bool (*diverged)(void *user);
    /* Of runs with rounding logs; else the role is 0, and the rest NULL. */
    vd_role role;
    /* Which log, and L of each leaf of the run. */
    vd_status (*logs)(void *user, vd_hash *run, vd_hash *logs, vd_err *err);
    /* Section `index` of a step's log. */
    vd_status (*section)(void *user, int64_t step, uint64_t index, vd_section_proof *out,
                         vd_err *err);
    /* What the trainer signed of the log at this leaf of the run. VD_ERR_PEER: nothing is there
     * that `trainer` signed. */
    vd_status (*note)(void *user, uint64_t leaf, const vd_public_key *trainer, vd_buf *out,
                      vd_err *err);
} vd_source;

/* A source over a run directory: loads the checkpoint before what is asked and runs on from there.
 */
typedef struct vd_replay vd_replay;
/* What `exec` borrows is borrowed here too. */
VD_MUST_USE vd_status vd_replay_create(const char *dir, const vd_exec *exec, vd_replay **out,
                                       vd_err *err);
void vd_replay_destroy(vd_replay *replay);
vd_source vd_replay_source(vd_replay *replay);

/* The same run once more in a thread of its own: what a provider that was convicted contests its
 * rival's claim with. Lies in `dir`, and is resumed there. */
typedef struct vd_again vd_again;
/* `exec` is copied, with this fault in place of its own (NULL: none); its context is the second
 * run's alone. */
VD_MUST_USE vd_status vd_again_create(const char *dir, const vd_exec *exec, const vd_fault *fault,
                                      vd_again **out, vd_err *err);
void vd_again_destroy(vd_again *again); /* stops the run; accepts NULL */
/* Starts the run at the first call. VD_ERR_IO, with how far it is, until it is finished. `again` is
 * a vd_again. */
VD_MUST_USE vd_status vd_again_source(void *again, vd_source *out, vd_err *err);

/* S as the run commits to it: with VD_FAULT_HISTORY another one at one checkpoint in the middle. */
void vd_fault_state(const vd_exec *exec, int64_t step, vd_hash *state);

/* The referee's last crumb: one element by repops' reference. Reads inputs through `load`. */
VD_MUST_USE vd_status vd_leaf_element(const ro_call *call, int64_t element,
                                      uint32_t (*load)(void *user, int input, int64_t index),
                                      void *user, uint32_t *out, vd_err *err);
/* The same of a free operator's element, whose value is one of several: SPEC 14.5. */
VD_MUST_USE vd_status vd_leaf_bounded(const ro_call *call, int64_t element,
                                      uint32_t (*load)(void *user, int input, int64_t index),
                                      void *user, ro_bounded *out, vd_err *err);
/* Self-test of the reference on this machine. */
VD_MUST_USE vd_status vd_leaf_self_test(vd_err *err);

#endif
