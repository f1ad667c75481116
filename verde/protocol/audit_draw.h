/* What an audit looks at, drawn from what nobody could foresee. PROTOCOL.md section 13.4. */
#ifndef VD_AUDIT_DRAW_H
#define VD_AUDIT_DRAW_H

#include "verde/protocol/crumb.h"

/* H("verde/secret/1", secret): what a question carries. */
VD_MUST_USE bool vd_secret_hash(const vd_hash *secret, vd_hash *out);
/* H("verde/seed/1", secret || root): a beacon's value or a secret, and what was stated after it. */
VD_MUST_USE bool vd_draw_seed(const void *secret, size_t size, const vd_hash *root, vd_hash *out);
/* Draw `index` of a seed: a number below `below`, each as likely. */
VD_MUST_USE bool vd_draw_below(const vd_hash *seed, uint64_t index, uint64_t below, uint64_t *out);

/* What lies between two states of the run; initialisation is one of its own, from -1 to 0. */
typedef struct {
    int64_t from, to;
    uint32_t steps; /* so many of its steps are drawn */
} vd_drawn_interval;

/* Draws `steps` different steps of initialisation and the program's, as intervals in ascending
 * order; *list is the caller's. `steps` is at most what there is. */
VD_MUST_USE vd_status vd_draw_intervals(const vd_program *program, const vd_hash *seed,
                                        uint32_t steps, vd_drawn_interval **list, uint32_t *count,
                                        vd_err *err);
/* Initialisation and the intervals between checkpoints: so many there are. */
uint64_t vd_interval_count(const vd_program *program);
/* Draws `wanted` different ones, to be executed again, at most as many as there are. */
VD_MUST_USE vd_status vd_draw_again(const vd_program *program, const vd_hash *seed, uint32_t wanted,
                                    vd_drawn_interval **list, uint32_t *count, vd_err *err);
/* Draws interval->steps different steps of one, ascending. */
VD_MUST_USE vd_status vd_draw_steps(const vd_drawn_interval *interval, const vd_hash *seed,
                                    int64_t *step, vd_err *err);

enum { VD_WHOLE_MAX = 1 << 16 }; /* elements of a node that is checked whole in a drawn step */
/* Has the node one element, or does it read data, a few elements for each of its own? */
bool vd_is_whole(const vd_program *program, const vd_graph *graph, uint32_t node);
/* Is each node that reads data checked whole? */
bool vd_reads_are_whole(const vd_program *program, const vd_graph *graph);
/* All crumbs of a drawn step: its seam, its whole nodes, and `count` drawn ones, by node. Parts of
 * long folds are -1 until their folds are stated; of a whole one likewise. *list is the caller's.
 */
VD_MUST_USE vd_status vd_draw_crumbs(const vd_program *program, int64_t step, const vd_hash *seed,
                                     uint32_t count, vd_crumb **list, size_t *listed, vd_err *err);

#endif
