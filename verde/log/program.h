/* The rounding logs of a program's runs: which nodes they are about, how each is rounded, and how a
 * section of a log leads to what a run commits to. PROTOCOL.md sections 11.5 and 12. */
#ifndef VD_LOG_PROGRAM_H
#define VD_LOG_PROGRAM_H

#include "verde/commit/record.h"
#include "verde/graph/graph.h"
#include "verde/log/log.h"

/* The steps whose logs a leaf of the run commits to: first .. first + count - 1, with `step`. */
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
/* A threshold for `bits` as it is at `at` bits: as far below half of a place (PROTOCOL.md section
 * 11.6). 0: it would be less. */
double vd_threshold_at(double threshold, int32_t bits, int32_t at);

/* Number of sections in a step's log for the free nodes before `node`; node_count: for all. */
uint64_t vd_graph_sections(const vd_graph *graph, uint32_t node);

/* A section of a step's log, and how it leads to L of a checkpoint (PROTOCOL.md section 12.4). */
typedef struct {
    vd_hash run, tree_root; /* of the run; over the step's sections */
    vd_log_leaf leaf;
    vd_buf bytes;     /* none if there are more than a section may have */
    vd_proof section; /* under tree_root */
    vd_proof step;    /* of the step's log under L */
} vd_section_proof;
/* Section `index` of a step, which leads to `logs`, the L of its checkpoint. *run receives what its
 * log is of. VD_ERR_PEER: it does not lead there. */
VD_MUST_USE vd_status vd_section_verify(const vd_program *program, const vd_hash *program_hash,
                                        int64_t step, uint64_t index, const vd_section_proof *proof,
                                        const vd_hash *logs, vd_log_run *run, vd_err *err);

#endif
