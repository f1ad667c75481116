/* Rounding logs of a program's runs: the nodes with sections, their rounding, and proofs that lead
 * from a section to a run's commitment. PROTOCOL.md sections 11.5 and 12. */
#ifndef VD_LOG_PROGRAM_H
#define VD_LOG_PROGRAM_H

#include "verde/commit/record.h"
#include "verde/graph/graph.h"
#include "verde/log/log.h"

/* The steps whose logs a leaf of the run commits to: first .. first + count - 1. vd_logs_at gives
 * those of which `step` is one. */
typedef struct {
    uint64_t leaf, count;
    int64_t first;
} vd_log_range;
vd_log_range vd_logs_at(const vd_program *program, int64_t step);
/* Counts the free nodes of a step's graph, and lists them in `nodes` (of node_count) or NULL. */
uint32_t vd_free_nodes(const vd_graph *graph, vd_log_node *nodes);
/* Returns whether the node's output becomes a leaf of the next state. */
bool vd_node_is_state(const vd_program *program, const vd_graph *graph, uint32_t node);
/* Bits that a free node is rounded to; outputs that become state keep 32. */
int32_t vd_node_bits(const vd_program *program, const vd_graph *graph, uint32_t node);
/* Converts a threshold for `bits` bits to one for `at` bits, as far below half of a place
 * (PROTOCOL.md section 11.6). 0: it would be negative. */
double vd_threshold_at(double threshold, int32_t bits, int32_t at);

/* Number of sections in a step's log for the free nodes before `node`; node_count: for all. */
uint64_t vd_graph_sections(const vd_graph *graph, uint32_t node);

/* A section of a step's log, and its proof up to L of a checkpoint (PROTOCOL.md section 12.4). */
typedef struct {
    vd_hash run, tree_root; /* the run's name; root over the step's sections */
    vd_log_leaf leaf;
    vd_buf bytes;     /* empty if the section is larger than the limit */
    vd_proof section; /* proof under tree_root */
    vd_proof step;    /* proof of the step's log under L */
} vd_section_proof;
/* Verifies that section `index` of a step leads to `logs`, the L of its checkpoint. *run receives
 * the properties of the log. VD_ERR_PEER: it does not. */
VD_MUST_USE vd_status vd_section_verify(const vd_program *program, const vd_hash *program_hash,
                                        int64_t step, uint64_t index, const vd_section_proof *proof,
                                        const vd_hash *logs, vd_log_run *run, vd_err *err);

#endif
