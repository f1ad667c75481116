/* A crumb: one place of a run, which a checker judges without a rival. PROTOCOL.md section 13.3. */
#ifndef VD_CRUMB_H
#define VD_CRUMB_H

#include "verde/protocol/referee.h"

/* The statements for which a question has a `draw` member. */
typedef enum { VD_DRAW_SUBRUN, VD_DRAW_TRACE, VD_DRAW_FOLD, VD_DRAWS } vd_draw_kind;

typedef struct {
    int64_t step;              /* -1: initialisation */
    int64_t node;              /* -1: the place is a seam: */
    uint64_t leaf, leaf_count; /* leaves of the state after the step, compared with its trace */
    int64_t element;           /* the first element of the node's output to check, */
    int64_t count;             /* and how many, all in one leaf; 1 in a long fold */
    int64_t part;              /* the part of a long fold; else -1 */
    vd_hash draw[VD_DRAWS];    /* hashes of the secrets; zeros where no such question is asked */
    bool drawn;                /* within an audit: drawn, not one of a node that is checked whole */
} vd_crumb;

/* Returns true if the program has such a place. */
bool vd_crumb_fits(const vd_crumb *crumb, const vd_program *program);
/* Returns the run's first leaf after the step; with the leaf before it, it encloses the step. */
uint64_t vd_crumb_run_leaf(const vd_program *program, int64_t step);

json_t *vd_crumb_json(const vd_crumb *crumb);
/* Reads and validates a place. VD_ERR_PEER: it is malformed, or the program has no such place. */
VD_MUST_USE vd_status vd_crumb_read(const json_t *place, const vd_program *program, vd_crumb *out,
                                    vd_err *err);

/* Creates a referee that asks one provider (assignment of version 2) about this place, from its
 * commitment on. Outcome VD_RESULT_AGREED: the place is right. */
VD_MUST_USE vd_status vd_crumb_open(const vd_referee_options *options, const vd_crumb *crumb,
                                    vd_referee **out, vd_err *err);

#endif
