/* Estimates of what a run takes, from its program alone, for machines that run foreign programs. */
#ifndef VD_ESTIMATE_H
#define VD_ESTIMATE_H

#include "verde/graph/graph.h"

/* Size of a tensor in bytes; UINT64_MAX: larger than that. */
uint64_t vd_estimate_shape(const ro_shape *shape);

/* Upper bound of bytes in memory at once, when initialisation or a step runs node by node and is
 * asked about: the state, each value from its node to its last use, the records of all nodes, and
 * what answers are made of. It leaves out data, which is mapped from files, and kernels' own
 * buffers. The estimate's time and memory depend on stored nodes, not on all that repeats mean.
 * UINT64_MAX: more than that. VD_ERR_LOCAL: out of memory for the estimate. */
VD_MUST_USE vd_status vd_estimate_memory(const vd_program *program, uint64_t *out, vd_err *err);

/* Upper bound of a kernel's own bytes, on a CPU with `threads` threads. UINT64_MAX: more than
 * that. */
uint64_t vd_estimate_kernels(const vd_program *program, int threads);

/* Bytes of the checkpoints on disk, of which `keep` are kept (0: all), and of one being written.
 * UINT64_MAX: more than that. */
uint64_t vd_estimate_disk(const vd_program *program, int64_t keep);

/* Bytes on disk besides states: the program, of `program_bytes`, losses, two copies of run.json
 * (one being written), DIR/checkpoints, and the hashes of downloadable files. UINT64_MAX: more than
 * that. */
uint64_t vd_estimate_beside(const vd_program *program, uint64_t program_bytes);

/* Upper bound of a journal's bytes, for a run whose steps write a part of the state (journal.h). */
uint64_t vd_estimate_journal(const vd_program *program);

/* Terms that a graph of the program computes, a generous estimate: products of each sum, elements
 * of all else. UINT64_MAX: more than that. */
uint64_t vd_estimate_terms(const vd_program *program, const vd_graph *graph);

/* Seconds on `cores` cores with AVX-512 that nobody else uses, within a factor of three. */
typedef struct {
    double init, step;
    double run; /* initialisation, all steps, and hashing of states */
} vd_estimated_seconds;
vd_estimated_seconds vd_estimate_seconds(const vd_program *program, int cores);

#endif
