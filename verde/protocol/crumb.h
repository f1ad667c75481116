/* A crumb: one place of one provider's run, which is judged alone. PROTOCOL.md section 13.3. */
#ifndef VD_CRUMB_H
#define VD_CRUMB_H

#include "verde/protocol/referee.h"

/* What a question with `draw` states. */
typedef enum { VD_DRAW_SUBRUN, VD_DRAW_TRACE, VD_DRAW_FOLD, VD_DRAWS } vd_draw_kind;

typedef struct {
    int64_t step;              /* -1: initialisation */
    int64_t node;              /* -1: of no node, but a seam: */
    uint64_t leaf, leaf_count; /* leaves of the state after the step, against its trace */
    int64_t element;           /* of the node's output, */
    int64_t count;          /* and those behind it, all in one leaf; more than one: no long fold */
    int64_t part;           /* of a long fold; else -1 */
    vd_hash draw[VD_DRAWS]; /* hashes of the secrets, as far as there is such a question */
    bool drawn;             /* an audit's own: it is one of the elements that were drawn */
} vd_crumb;

/* Is there such a place? */
bool vd_crumb_fits(const vd_crumb *crumb, const vd_program *program);
/* The first leaf of the run that is not before the step, which with the one before it holds it. */
uint64_t vd_crumb_run_leaf(const vd_program *program, int64_t step);

json_t *vd_crumb_json(const vd_crumb *crumb);
/* VD_ERR_PEER: it is no place, or none of this program. */
VD_MUST_USE vd_status vd_crumb_read(const json_t *place, const vd_program *program, vd_crumb *out,
                                    vd_err *err);

/* A referee of an assignment of version 2: it asks the one provider about this place, from its
 * commitment on. Its outcome is VD_RESULT_AGREED if what was said is right there. */
VD_MUST_USE vd_status vd_crumb_open(const vd_referee_options *options, const vd_crumb *crumb,
                                    vd_referee **out, vd_err *err);

#endif
