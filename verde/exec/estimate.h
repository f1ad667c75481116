/* What a run will take, from its program alone: for whoever runs programs of strangers. */
#ifndef VD_ESTIMATE_H
#define VD_ESTIMATE_H

#include "verde/graph/graph.h"

/* Bytes of a tensor. UINT64_MAX: more than that. */
uint64_t vd_estimate_shape(const ro_shape *shape);

/* Bytes that stand in memory at once, at most, in initialisation or a step that is run node by node
 * and asked about: the state, and each value from its node to its last use; the records of all
 * nodes, and what is made of them for an answer. Data is not counted, which is mapped from files;
 * nor are a kernel's own buffers. Takes time and memory for nodes as they are stored, not for
 * all that repeats mean. UINT64_MAX: more than that. VD_ERR_LOCAL: out of memory for the
 * estimate. */
VD_MUST_USE vd_status vd_estimate_memory(const vd_program *program, uint64_t *out, vd_err *err);

/* Bytes that a kernel takes for itself beside that, at most, with so many threads of a CPU.
 * UINT64_MAX: more than that. */
uint64_t vd_estimate_kernels(const vd_program *program, int threads);

/* Bytes of the checkpoints that stay on disk, `keep` of them (0: all), and one while it is written.
 * UINT64_MAX: more than that. */
uint64_t vd_estimate_disk(const vd_program *program, int64_t keep);

/* Bytes of all that a run keeps beside its states, whose program has `program_bytes`: this, its
 * losses, run.json twice, as while it is written, and what is appended to it, and the hashes of
 * what can be downloaded of it. UINT64_MAX: more than that. */
uint64_t vd_estimate_beside(const vd_program *program, uint64_t program_bytes);

/* Bytes of the journal of a run whose steps write a part of the state (journal.h), at most. */
uint64_t vd_estimate_journal(const vd_program *program);

/* Terms that one of the program's two graphs computes: products of each sum, elements of all else;
 * a generous estimate. UINT64_MAX: more than that. */
uint64_t vd_estimate_terms(const vd_program *program, const vd_graph *graph);

/* Seconds that a program takes: within a factor of three on so many cores with AVX-512, if nobody
 * else uses them. */
typedef struct {
    double init, step;
    double run; /* initialisation, all steps, and the hashes of states */
} vd_estimated_seconds;
vd_estimated_seconds vd_estimate_seconds(const vd_program *program, int cores);

#endif
