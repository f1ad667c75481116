/* Draws an audit's places from seeds that nobody could foresee. PROTOCOL.md section 13.4. */
#ifndef VD_AUDIT_DRAW_H
#define VD_AUDIT_DRAW_H

#include "verde/protocol/crumb.h"

/* Computes H("verde/secret/1", secret), which a question carries as `draw`. */
VD_MUST_USE bool vd_secret_hash(const vd_hash *secret, vd_hash *out);
/* Computes H("verde/seed/1", secret || root). `secret`: a question's, or the beacon's value;
 * `root`: stated after it. */
VD_MUST_USE bool vd_draw_seed(const void *secret, size_t size, const vd_hash *root, vd_hash *out);
/* Computes draw `index` of a seed: a number in 0..below-1, all equally likely. */
VD_MUST_USE bool vd_draw_below(const vd_hash *seed, uint64_t index, uint64_t below, uint64_t *out);

/* The steps between two checkpoints; initialisation is an interval of its own, from -1 to 0. */
typedef struct {
    int64_t from, to;
    uint32_t steps; /* number of its steps to draw */
} vd_drawn_interval;

/* Draws `steps` different ones among initialisation and all steps of the program, as intervals in
 * ascending order. `steps` is at most the program's steps + 1. The caller frees *list. */
VD_MUST_USE vd_status vd_draw_intervals(const vd_program *program, const vd_hash *seed,
                                        uint32_t steps, vd_drawn_interval **list, uint32_t *count,
                                        vd_err *err);
/* Returns the number of intervals: initialisation, and those between checkpoints. */
uint64_t vd_interval_count(const vd_program *program);
/* Draws `wanted` of all intervals, to be executed again. The caller frees *list. */
VD_MUST_USE vd_status vd_draw_again(const vd_program *program, const vd_hash *seed, uint32_t wanted,
                                    vd_drawn_interval **list, uint32_t *count, vd_err *err);
/* Draws interval->steps different steps of one interval, in ascending order. */
VD_MUST_USE vd_status vd_draw_steps(const vd_drawn_interval *interval, const vd_hash *seed,
                                    int64_t *step, vd_err *err);

enum { VD_WHOLE_MAX = 1 << 16 }; /* largest output, in elements, of a node that is checked whole */
/* Returns true if every element of the node is checked: it has one, or no more than VD_WHOLE_MAX
 * and reads data, a few elements for each of its own. */
bool vd_is_whole(const vd_program *program, const vd_graph *graph, uint32_t node);
/* Returns true if vd_is_whole holds for each node that reads data. */
bool vd_reads_are_whole(const vd_program *program, const vd_graph *graph);
/* Lists all crumbs of a drawn step: its seams, its whole nodes, and `count` drawn elements, ordered
 * by node. `part` is -1 in all of them: it is drawn once the fold is stated. The caller frees
 * *list. */
VD_MUST_USE vd_status vd_draw_crumbs(const vd_program *program, int64_t step, const vd_hash *seed,
                                     uint32_t count, vd_crumb **list, size_t *listed, vd_err *err);

#endif
